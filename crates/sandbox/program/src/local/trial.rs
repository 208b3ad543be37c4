//! Whether this machine can make containers, found out by making one that does nothing.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use anyhow::Context as _;
use gloveport_contract::local::lifeline::Reply;
use gloveport_sys::container::{self, Container, ContainerError, Network, Place};

/// Why there are no containers, and what helps.
pub type Missing = String;

/// Has this program, by its file, try it.
///
/// # Errors
///
/// It cannot be tried.
pub fn containers(program: &Path) -> anyhow::Result<Result<(), Missing>> {
    let directory = std::env::temp_dir();
    let directory = std::fs::canonicalize(&directory).with_context(|| format!("cannot use {}", directory.display()))?;
    let mut command = Command::new(program);
    command.args(["sandbox-server", "--state", "/", "--try-container"]).arg(&directory);
    let ran = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", program.display()))?;
    if ran.status.success() {
        return Ok(Ok(()));
    }
    let told: Option<Reply> = serde_json::from_slice(&ran.stdout).ok();
    Ok(Err(match told {
        Some(Reply::Refused { reason } | Reply::Failed { reason }) => reason,
        _ => format!("it ended with {}: {}", ran.status, String::from_utf8_lossy(&ran.stderr).trim()),
    }))
}

/// Tries it here, with a directory that is written in it.
pub(super) fn make_one(directory: &Path) -> ExitCode {
    let place = Place { target: "/tmp".into(), source: directory.to_owned(), is_written: true };
    let container = Container { root: None, places: vec![place], network: Network::Machine, processes: None };
    match container::enter(&container, None, |(): ()| Ok(Vec::new())) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let _nobody_reads = why_not(&error).tell(std::io::stdout()).and_then(|()| std::io::stdout().flush());
            ExitCode::FAILURE
        }
    }
}

/// What a backend is told of it.
pub(super) fn why_not(error: &ContainerError) -> Reply {
    match error.refusal() {
        Some(reason) => Reply::Refused { reason },
        None => Reply::Failed { reason: error.to_string() },
    }
}
