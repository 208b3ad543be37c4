//! Measures a server beside the reference and prints the numbers. Run it through `scripts/bench`.
//!
//! | module | idea |
//! |---|---|
//! | [`client`] | one HTTP connection with as little around it as possible |
//! | [`server`] | a server process: its start, its memory, its end |
//! | [`files`] | the measurements of the file actions |
//! | [`history`] | the measurements of the event stream |
//! | [`commands`] | the measurements of the runtime `cli` |
//! | [`browser`] | the measurements of the browser, beside Chromium alone |
//! | [`cells`] | the measurements of the notebook |
//! | [`mcp`] | the measurements of a sandbox as an MCP server |
//! | [`containers`] | the measurements of containers, where there is an engine |
//! | [`sandboxes`] | the measurements of sandboxes of this machine, cold, warm and many |
//! | [`gateway`] | the measurements of the gateway: its way, large bodies, WebSockets, many sandboxes, warm ones |
//! | [`measure`] | the measurements, the same for every server |
//! | [`table`] | the bounds, the ratios, and how they are printed |
//! | [`plot`] | the picture of the numbers that the documentation has |

mod browser;
mod cells;
mod client;
mod commands;
mod containers;
mod files;
mod gateway;
mod history;
mod mcp;
mod measure;
mod plot;
mod sample;
mod sandboxes;
mod server;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;

use crate::{
    measure::{Amount, measure},
    server::Program,
    table::{Sizes, Table},
};

/// What was asked for.
#[derive(Debug)]
enum Asked {
    Measure(Arguments),
    /// A picture of the numbers in a page; nothing is measured.
    Plot {
        page: PathBuf,
        picture: PathBuf,
    },
}

/// What can be measured alone.
#[derive(Debug, Clone, Copy)]
enum Part {
    Gateway,
    Sandboxes,
}

/// What is to be measured, and how.
#[derive(Debug, Default)]
struct Arguments {
    /// Our binary.
    binary: PathBuf,
    /// The program that goes into sandboxes; the same if none is given.
    sandbox_binary: Option<PathBuf>,
    /// Python of the reference's environment.
    reference: Option<PathBuf>,
    /// The script that measures the reference's browser.
    browser_times: Option<PathBuf>,
    /// Address of a Docker engine.
    docker: Option<String>,
    /// Where the JSON goes.
    json: Option<PathBuf>,
    /// Nothing but this.
    only: Option<Part>,
    /// Few repetitions: shows that everything works, not how fast it is.
    smoke: bool,
}

#[expect(clippy::print_stderr, reason = "this is where errors reach the user")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints numbers")]
fn run() -> anyhow::Result<()> {
    let arguments = match parse()? {
        Asked::Measure(arguments) => arguments,
        Asked::Plot { page, picture } => return plot::plot(&page, &picture),
    };
    let inside = arguments.sandbox_binary.as_ref().unwrap_or(&arguments.binary);
    let amount = if arguments.smoke { Amount::SMOKE } else { Amount::FULL };
    match arguments.only {
        Some(Part::Gateway) => {
            eprintln!("measuring gateways, one of them over {} sandboxes ...", amount.gateway.crowd);
            let numbers = gateway::measure(&arguments.binary, arguments.docker.as_deref(), amount.gateway)?;
            println!("{}", table::gateway_alone(&numbers));
            return write(&arguments, || serde_json::to_string_pretty(&numbers));
        }
        Some(Part::Sandboxes) => {
            eprintln!("measuring sandboxes, and {} of them at once ...", amount.sandboxes.crowd);
            let numbers = sandboxes::measure(inside, amount.sandboxes)?;
            println!("{}", table::sandboxes_alone(&numbers));
            return write(&arguments, || serde_json::to_string_pretty(&numbers));
        }
        None => {}
    }
    eprintln!("measuring gloveport ...");
    let ours = measure(&Program::Gloveport(arguments.binary.clone()), &amount)?;
    eprintln!("measuring sandboxes, and {} of them at once ...", amount.sandboxes.crowd);
    let sandboxes = sandboxes::measure(inside, amount.sandboxes)?;
    let containers = match &arguments.docker {
        Some(engine) => {
            eprintln!("measuring containers ...");
            Some(containers::measure(engine, inside, amount.containers)?)
        }
        None => None,
    };
    eprintln!("measuring gateways, one of them over {} sandboxes ...", amount.gateway.crowd);
    let gateway = gateway::measure(&arguments.binary, arguments.docker.as_deref(), amount.gateway)?;
    eprintln!("measuring single commands ...");
    let commands = commands::measure(&arguments.binary, amount.spawn, amount.mcp)?;
    eprintln!("measuring the history ...");
    let history = history::measure(amount.history)?;
    eprintln!("measuring the browser ...");
    let of_reference = arguments.reference.as_deref().zip(arguments.browser_times.as_deref());
    let browser = browser::measure(&arguments.binary, of_reference, amount.browser)?;
    let reference = match &arguments.reference {
        Some(python) => {
            eprintln!("measuring the reference ...");
            Some(measure(&Program::Reference(python.clone()), &Amount::REFERENCE)?)
        }
        None => None,
    };
    let size = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path).context("cannot read our binary")?.len());
    let sizes = Sizes { whole: size(&arguments.binary)?, sandbox: size(inside)? };
    let mut table = Table::new(&ours, reference.as_ref(), &sandboxes, containers.as_ref(), &commands, &history, sizes);
    table.add_browser(browser);
    table.add_gateway(gateway);
    println!("{}", table.text());
    write(&arguments, || table.json())
}

/// Writes the numbers to where they were asked for.
fn write(arguments: &Arguments, json: impl FnOnce() -> serde_json::Result<String>) -> anyhow::Result<()> {
    if let Some(path) = &arguments.json {
        fs::write(path, json()?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn parse() -> anyhow::Result<Asked> {
    let mut arguments = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--binary" => arguments.binary = value()?.into(),
            "--sandbox-binary" => arguments.sandbox_binary = Some(value()?.into()),
            "--reference" => arguments.reference = Some(value()?.into()),
            "--browser-times" => arguments.browser_times = Some(value()?.into()),
            "--docker" => arguments.docker = Some(value()?),
            "--json" => arguments.json = Some(value()?.into()),
            "--only" => {
                arguments.only = Some(match value()?.as_str() {
                    "gateway" => Part::Gateway,
                    "sandboxes" => Part::Sandboxes,
                    other => anyhow::bail!("`gateway` or `sandboxes` can be measured alone, not `{other}`"),
                });
            }
            "--smoke" => arguments.smoke = true,
            "--plot" => return Ok(Asked::Plot { page: value()?.into(), picture: value()?.into() }),
            other => anyhow::bail!("unknown argument {other}; see scripts/bench --help"),
        }
    }
    anyhow::ensure!(arguments.binary.is_file(), "--binary must name our release binary");
    Ok(Asked::Measure(arguments))
}
