//! The measurements of the notebook.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    client::{Client, action_body},
    sample::{Sample, repeat},
    server::{Program, Server},
};

/// Commands before memory is measured.
const COMMANDS: usize = 20;

/// How often each thing is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellAmount {
    pub(crate) starts: usize,
    pub(crate) cells: usize,
}

/// What was measured of one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CellNumbers {
    /// From the start of the server to the result of the first cell.
    pub(crate) first: Sample,
    /// `1+1`.
    pub(crate) cell: Sample,
    /// What the server's own memory is larger behind all cells than that of a server without a notebook, both behind the
    /// same commands, in bytes.
    pub(crate) growth: u64,
}

/// Measures; `None` where there is no Python with `ipykernel` for our server.
pub(crate) fn measure(program: &Program, amount: CellAmount) -> anyhow::Result<Option<CellNumbers>> {
    let environment = match program {
        Program::Gloveport(_) => match python() {
            Some(directory) => vec![("VIRTUAL_ENV", directory)],
            None => return Ok(None),
        },
        Program::Reference(python) => {
            let Some(packages) = reference_packages(python) else { return Ok(None) };
            vec![("LOCAL_RUNTIME_MODE", "1".into()), ("OPENHANDS_REPO_PATH", packages)]
        }
    };
    let plugins = ["--plugins", "agent_skills", "jupyter"];
    let mut first = Vec::new();
    for _start in 1..amount.starts {
        let (server, took) = Server::start_with(program, &plugins, &environment, first_cell)?;
        first.push(took);
        server.stop()?;
    }
    let (server, took) = Server::start_with(program, &plugins, &environment, first_cell)?;
    first.push(took);
    let mut client = Client::connect(server.port)?;
    let cell = repeat(amount.cells, || one_cell(&mut client))?;
    let with = resident_behind_commands(&server)?;
    server.stop()?;
    let (plain, _) = Server::start(program)?;
    let growth = with.saturating_sub(resident_behind_commands(&plain)?);
    plain.stop()?;
    Ok(Some(CellNumbers { first: Sample::new(first), cell, growth }))
}

fn resident_behind_commands(server: &Server) -> anyhow::Result<u64> {
    let mut client = Client::connect(server.port)?;
    for _command in 0..COMMANDS {
        client.run("echo hi")?;
    }
    Ok(server.resident())
}

/// `None` while nothing listens.
fn first_cell(port: u16) -> Option<anyhow::Result<()>> {
    let mut client = Client::connect(port).ok()?;
    Some(one_cell(&mut client))
}

fn one_cell(client: &mut Client) -> anyhow::Result<()> {
    let body = action_body("run_ipython", &json!({"code": "1+1", "include_extra": false}));
    let observation = client.execute(&body)?;
    let content = observation.get("content").and_then(Value::as_str);
    anyhow::ensure!(content == Some("2"), "1+1: {observation}");
    Ok(())
}

/// The environment that `scripts/setup` makes.
fn python() -> Option<PathBuf> {
    let directory = PathBuf::from(std::env::var_os("HOME")?).join(".cache/gloveport/python");
    directory.join("bin/python").is_file().then_some(directory)
}

/// Where the package of the reference is.
fn reference_packages(python: &Path) -> Option<PathBuf> {
    let library = python.parent()?.parent()?.join("lib");
    let versions = std::fs::read_dir(library).ok()?;
    versions.flatten().map(|entry| entry.path().join("site-packages")).find(|path| path.join("openhands").is_dir())
}
