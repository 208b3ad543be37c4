//! The commands, and what each needs before its first thread.

use std::process::ExitCode;

use clap::Subcommand;
use gloveport_sys::owners;

use crate::{
    Owner, agent_server, argv,
    container::{health, install, server as container_server},
    gate,
    local::{gvisor, inside::SharedLog, server as local_server},
    logging, openhands, relayed, swerex, tools,
};

/// What a provider, an engine or a backend of OpenHands starts in a sandbox or beside it.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a sandbox like the OpenHands 0.62 action execution server, with its flags.
    #[command(name = argv::SERVER)]
    ActionExecutionServer(openhands::ServerArgs),
    /// Serve clients of SWE-ReX (SWE-agent, mini-swe-agent), in place of `swerex-remote`.
    #[command(name = argv::SWEREX, disable_version_flag = true)]
    Swerex(swerex::ServerArgs),
    /// Serve clients of OpenHands' SDK 1.x, in place of its `agent-server`.
    #[command(name = argv::AGENT_SERVER, disable_version_flag = true)]
    AgentServer(agent_server::ServerArgs),
    /// Serve a sandbox of the runtime `local`, which starts it.
    #[command(hide = true)]
    SandboxServer(local_server::ServerArgs),
    /// Give files of a sandbox to others, or remove them, as standard input says.
    #[command(hide = true)]
    OwnersWork,
    /// Serve a sandbox of the runtimes `docker` and `kubernetes`, whose container starts it.
    #[command(hide = true)]
    ContainerServer(container_server::ServerArgs),
    /// Check whether the server in this container answers.
    #[command(hide = true)]
    ContainerHealth(health::HealthArgs),
    /// Copy this program to where another container starts it.
    #[command(hide = true)]
    ContainerInstall(install::InstallArgs),
    /// Serve a sandbox that only its agent-server can reach, which starts it.
    #[command(hide = true)]
    RelayedServer(relayed::server::ServerArgs),
    /// Ask such a server.
    #[command(hide = true)]
    RelayedCall(relayed::call::CallArgs),
    /// Be the only way out of and into a sandbox whose network is closed, as providers start it.
    #[command(hide = true)]
    Gate(gate::GateArgs),
    /// Tell such a one what else it lets through, and print what it does then.
    #[command(hide = true)]
    GateChange(gate::change::ChangeArgs),
}

/// Runs one of them to its end. Call it while this is the only thread: the guard of processes must be made then.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::ActionExecutionServer(arguments) => {
            tools::hide();
            let owner = Owner::start()?;
            logging::for_server();
            runtime()?.block_on(openhands::serve(arguments, &owner))
        }
        Command::Swerex(arguments) => {
            if arguments.is_about_version() {
                return swerex::version();
            }
            tools::hide();
            let owner = Owner::start()?;
            logging::for_server();
            runtime()?.block_on(swerex::serve(arguments, &owner))
        }
        Command::AgentServer(arguments) => {
            if arguments.is_about_version() {
                return agent_server::version();
            }
            tools::hide();
            let owner = Owner::start()?;
            logging::for_server();
            runtime()?.block_on(agent_server::serve(arguments, &owner))
        }
        Command::SandboxServer(arguments) => {
            if let Some(code) = arguments.tried() {
                return Ok(code);
            }
            match local_server::enter(&arguments)? {
                local_server::Entered::Server(inside, owner) => {
                    logging::for_sandbox(inside.log()?);
                    runtime()?.block_on(local_server::serve(inside, &owner))
                }
                local_server::Entered::Front(inside, processes) => {
                    let log = SharedLog::new(inside.log()?);
                    logging::for_sandbox(log.clone());
                    runtime()?.block_on(gvisor::front(inside, log, processes))
                }
            }
        }
        Command::OwnersWork => {
            owners::work::serve(std::io::stdin(), std::io::stdout())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::ContainerServer(_) if std::process::id() == 1 => {
            tools::hide();
            container_server::init()
        }
        Command::ContainerServer(arguments) => {
            tools::hide();
            let owner = Owner::start()?;
            logging::for_server();
            let runtime = runtime()?;
            let served = runtime.block_on(container_server::serve(arguments, &owner));
            // A thread may read standard input, for which nobody waits.
            runtime.shutdown_background();
            served
        }
        Command::ContainerHealth(arguments) => health::check(&arguments),
        Command::ContainerInstall(arguments) => install::install(&arguments),
        Command::RelayedServer(arguments) => {
            tools::hide();
            let owner = Owner::start()?;
            logging::for_server();
            runtime()?.block_on(relayed::server::serve(arguments, &owner))
        }
        Command::RelayedCall(arguments) => relayed::call::call(&arguments),
        Command::Gate(mut arguments) => {
            arguments.close()?;
            logging::for_server();
            let runtime = runtime()?;
            let served = runtime.block_on(gate::gate(arguments));
            // A thread may wait for standard input, which nobody does any more.
            runtime.shutdown_background();
            served
        }
        Command::GateChange(arguments) => gate::change::change(&arguments),
    }
}

/// Where the tasks of a program run that serves.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}
