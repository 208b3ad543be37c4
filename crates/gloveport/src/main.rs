//! The binary: flags, wiring, and output for people.

mod approve;
mod argv;
mod attach;
mod cli;
mod compat;
mod completions;
mod config;
mod confined;
mod conformance;
mod container_health;
mod container_server;
mod describe;
mod doctor;
mod explain;
mod files;
mod follow;
mod gate;
mod image;
mod input;
mod ipython;
mod key_file;
mod local;
mod logging;
mod login;
mod operate;
mod output;
mod paint;
mod plugin;
mod plugins;
mod provider;
mod providers;
mod replay;
mod run;
mod sandbox_server;
mod serve;
mod session;
mod visible;

use std::{process::ExitCode, sync::Arc};

use gloveport_sys::{Guard, Spawner};

use crate::cli::{Cli, Command};
pub(crate) use crate::explain::explained;

/// Exit code when gloveport itself fails, so that it is not taken for the command's.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    // Before all else: this may be the process that reads a document.
    if let Some(code) = gloveport_documents::run_if_asked(std::env::args_os()) {
        return code;
    }
    gloveport_documents::choose_program("/proc/self/exe");
    let cli = cli::parse(argv::normalize(std::env::args_os().collect()));
    let own_failure = match &cli.command {
        Command::Run(_) | Command::Ipython(_) => OWN_FAILURE,
        Command::Session(arguments) if arguments.runs_a_command() => OWN_FAILURE,
        _ => 1,
    };
    match start(cli) {
        Ok(code) => code,
        Err(error) if output::is_unread(&error) => ExitCode::from(follow::UNREAD),
        Err(error) => {
            report(&error);
            ExitCode::from(own_failure)
        }
    }
}

/// Tells a person what failed.
fn report(error: &anyhow::Error) {
    output::tell(&format!("gloveport: {}", explained(error)));
}

fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(arguments) if arguments.no_tty || arguments.runtime.as_deref() == Some(confined::NAME) => {
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
            local::hide();
            let owner = Owner::start()?;
            logging::for_people();
            runtime()?.block_on(serve::serve(arguments, &owner))
        }
        Command::ActionExecutionServer(arguments) => {
            local::hide();
            let owner = Owner::start()?;
            logging::for_server();
            runtime()?.block_on(compat::serve(arguments, &owner))
        }
        Command::SandboxServer(arguments) => {
            let inside = sandbox_server::enter(&arguments)?;
            let owner = Owner::start()?;
            logging::for_sandbox(inside.log()?);
            runtime()?.block_on(sandbox_server::serve(inside, &owner))
        }
        Command::SandboxKeeper(arguments) => people(session::waiting::keep(arguments)),
        Command::ContainerServer(_) if std::process::id() == 1 => {
            local::hide();
            container_server::init()
        }
        Command::ContainerServer(arguments) => {
            local::hide();
            let owner = Owner::start()?;
            logging::for_server();
            let runtime = runtime()?;
            let served = runtime.block_on(container_server::serve(arguments, &owner));
            // A thread may read standard input, for which nobody waits.
            runtime.shutdown_background();
            served
        }
        Command::ContainerHealth(arguments) => container_health::check(&arguments),
        Command::Gate(arguments) => {
            logging::for_server();
            runtime()?.block_on(gate::gate(arguments))
        }
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

/// What is told of a server that ended because its guard was killed.
pub(crate) const GUARD_LOST: &str = "its process guard was killed, and with it everything that it had started";

/// The owner of every process that is started.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) spawner: Spawner,
    pub(crate) pid: u32,
}

impl Owner {
    fn start() -> anyhow::Result<Self> {
        let guard = Guard::start()?;
        let pid = guard.pid();
        Ok(Self { spawner: Spawner::Guarded(Arc::new(guard)), pid })
    }

    /// Ends when the guard was killed; what it owned has been ended then.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let lost = match &self.spawner {
            Spawner::Guarded(guard) => guard.lost(),
            Spawner::Direct => Err(std::io::ErrorKind::Unsupported.into()),
        };
        async {
            match lost {
                Ok(lost) => lost.await,
                Err(error) => {
                    tracing::warn!(%error, "the process guard cannot be watched");
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Whether the guard still lives. A server whose guard was killed can start nothing, and ends.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let lives = gloveport_sys::process::stat(self.pid).is_some_and(|stat| stat.state != 'Z');
        anyhow::ensure!(lives, "{GUARD_LOST}");
        Ok(())
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}
