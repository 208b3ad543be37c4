//! The binary: flags, wiring, and output for people.

mod approve;
mod attach;
mod cli;
mod completions;
mod config;
mod confined;
mod conformance;
mod describe;
mod doctor;
mod exit;
mod explain;
mod files;
mod follow;
mod image;
mod input;
mod ipython;
mod key_file;
mod logging;
mod login;
mod operate;
mod output;
mod paint;
mod plugin;
mod provider;
mod providers;
mod replay;
mod run;
mod serve;
mod session;
mod signals;
mod terminal;
mod visible;

use std::process::ExitCode;

pub(crate) use gloveport_sandbox::{Owner, plugins, tools};
use gloveport_sandbox::{argv, runtime};

use crate::cli::{Cli, Command};
pub(crate) use crate::explain::explained;

fn main() -> ExitCode {
    // Before all else: this may be the process that reads a document.
    if let Some(code) = gloveport_documents::run_if_asked(std::env::args_os()) {
        return code;
    }
    gloveport_documents::choose_program("/proc/self/exe");
    terminal::prepare();
    let cli = cli::parse(argv::normalize(std::env::args_os().collect()));
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
            ExitCode::from(own_failure)
        }
    }
}

fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(arguments) if arguments.no_tty || arguments.runtime.as_deref() == Some(providers::CLI) => {
            confined::run(&arguments)
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
            let owner = Owner::start()?;
            logging::for_people();
            runtime()?.block_on(run::here(&arguments, &owner))
        }
        Command::Ipython(arguments) if arguments.url.is_some() => people(ipython::on_server(arguments)),
        Command::Ipython(arguments) => {
            let owner = Owner::start()?;
            logging::for_people();
            runtime()?.block_on(ipython::here(arguments, &owner))
        }
        Command::Serve(arguments) => {
            tools::hide();
            let owner = Owner::start()?;
            logging::for_people();
            runtime()?.block_on(serve::serve(arguments, &owner))
        }
        Command::Inside(command) => gloveport_sandbox::run(command),
        Command::SandboxKeeper(arguments) => people(session::waiting::keep(arguments)),
        Command::Replay(arguments) => {
            let owner = Owner::start()?;
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
        Command::Provider(arguments) => people(provider::provider(arguments)),
        Command::Plugin(arguments) => {
            let owner = Owner::start()?;
            logging::for_people();
            runtime()?.block_on(plugin::plugin(arguments, &owner))
        }
        Command::Config(arguments) => config::config(arguments),
        Command::Doctor(arguments) => {
            let owner = Owner::start();
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
