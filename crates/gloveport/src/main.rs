//! The binary: flags, wiring, and output for people.

mod approve;
mod attach;
mod audit;
mod cli;
mod completions;
mod config;
mod conformance;
mod describe;
mod directory;
mod doctor;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tests try on Linux what other systems use"))]
mod elsewhere;
mod exit;
mod explain;
mod files;
mod follow;
mod gateway;
#[cfg(target_os = "linux")]
mod here;
mod image;
mod input;
mod ipython;
mod key_file;
mod logging;
mod mcp;
mod names;
mod operate;
mod output;
mod paint;
mod plugin;
mod provider;
mod providers;
mod replay;
mod run;
mod session;
mod signals;
mod terminal;
mod traces;
mod visible;

use std::process::ExitCode;

#[cfg(not(target_os = "linux"))]
use elsewhere as here;

use crate::cli::{Cli, Command};
pub(crate) use crate::explain::explained;

fn main() -> ExitCode {
    // Before all else: this may be the process that reads a document.
    if let Some(code) = here::begin() {
        return code;
    }
    terminal::prepare();
    let cli = cli::parse(here::command_line());
    let own_failure = match &cli.command {
        Command::Run(_) | Command::Ipython(_) => exit::OWN_FAILURE,
        Command::Session(arguments) if arguments.runs_a_command() => exit::OWN_FAILURE,
        _ => 1,
    };
    match start(cli) {
        Ok(code) => code,
        Err(error) if output::is_unread(&error) => ExitCode::from(exit::UNREAD),
        Err(error) => {
            exit::report(&error);
            ExitCode::from(if here::is_missing(&error) { exit::WRONG_COMMAND_LINE } else { own_failure })
        }
    }
}

fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(arguments) if arguments.no_tty || arguments.runtime.as_deref() == Some(names::CLI) => {
            here::confined(&arguments)
        }
        Command::Run(arguments) if arguments.runtime.is_some() || arguments.of_sandbox.is_some() => {
            people(session::run_in_fresh(*arguments))
        }
        Command::Run(arguments) if arguments.url.is_some() => {
            logging::for_people();
            runtime()?.block_on(run::on_server(*arguments))
        }
        Command::Run(arguments) => {
            // The guard must be made while this is the only thread.
            let owner = here::Owner::start()?;
            logging::for_people();
            runtime()?.block_on(here::run(&arguments, &owner))
        }
        Command::Ipython(arguments) if arguments.url.is_some() => people(ipython::on_server(arguments)),
        Command::Ipython(arguments) => {
            let owner = here::Owner::start()?;
            logging::for_people();
            runtime()?.block_on(here::ipython(arguments, &owner))
        }
        Command::Serve(arguments) => {
            here::hide();
            let owner = here::Owner::start()?;
            logging::for_people();
            runtime()?.block_on(here::serve(arguments, &owner))
        }
        Command::Inside(command) => here::inside(command),
        Command::SandboxKeeper(arguments) => people(here::keep(arguments)),
        Command::Replay(arguments) => {
            let owner = here::Owner::start()?;
            logging::for_people();
            runtime()?.block_on(replay::replay(arguments, &owner))
        }
        Command::Conformance(arguments) => {
            logging::for_people();
            runtime()?.block_on(conformance::conformance(&arguments))
        }
        Command::View(arguments) => people(files::view(arguments)),
        Command::Write(arguments) => people(files::write(arguments)),
        Command::Edit(arguments) => people(files::edit(arguments)),
        Command::Ls(arguments) => people(files::list(arguments)),
        Command::Cp(arguments) => people(files::copy(arguments)),
        Command::Session(arguments) => people(session::session(arguments)),
        Command::Image(arguments) => people(image::image(arguments)),
        Command::Gateway(arguments) => {
            let traces = traces::Traces::of_environment()?;
            logging::for_operators(traces.as_ref());
            let done = runtime_beside(1)?.block_on(gateway::gateway(*arguments));
            if let Some(traces) = traces {
                traces.end();
            }
            done
        }
        Command::Provider(arguments) => people(provider::provider(arguments)),
        Command::Plugin(arguments) => {
            let owner = here::Owner::start()?;
            logging::for_people();
            runtime()?.block_on(here::plugin(arguments, &owner))
        }
        Command::Mcp(arguments) => {
            logging::for_people();
            let runtime = runtime()?;
            let done = runtime.block_on(mcp::mcp(arguments));
            // A thread may still read standard input, which stays open as long as a client likes.
            runtime.shutdown_background();
            done
        }
        Command::Audit(arguments) => audit::audit(arguments),
        Command::Config(arguments) => config::config(arguments),
        Command::Doctor(arguments) => {
            let owner = here::Owner::start();
            runtime()?.block_on(doctor::doctor(&arguments, owner))
        }
        Command::Completions(arguments) => completions::completions(arguments),
    }
}

/// A command for people that starts no processes.
fn people(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    logging::for_people();
    runtime()?.block_on(command)
}

/// Where the tasks of this program run.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    runtime_of(workers)
}

/// The same of a program that passes on what others do, and leaves them so many processors: a worker more than that wakes up for
/// each message, and finds that it has come in vain.
fn runtime_beside(others: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    runtime_of(processors.saturating_sub(others).clamp(1, 8))
}

fn runtime_of(workers: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}
