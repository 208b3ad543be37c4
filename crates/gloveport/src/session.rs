//! `gloveport session`: sandboxes with a history, over any provider.

mod arguments;
mod audit;
mod computer;
mod copy;
mod events;
mod exec;
mod files;
mod fresh;
mod gc;
mod handling;
mod history;
mod hosted;
mod inside;
mod ipython;
mod isolation;
mod known;
mod launch;
mod life;
mod list;
mod logs;
mod network;
mod operations;
mod own;
mod report;
mod runtimes;
mod secrets;
mod service;
mod settings;
mod show;
mod snapshot;
mod snapshots;
mod start;
pub(crate) mod table;
mod terminal;
pub(crate) mod values;

use std::process::ExitCode;

pub(crate) use arguments::{MakeArgs, SessionArgs};
use arguments::{SessionCommand, SnapshotsCommand};
pub(crate) use computer::{Borrowed, FreshComputer, Which, borrow};
pub(crate) use fresh::run_in_fresh;
use gloveport_protocol::Secret;
pub(crate) use hosted::{Fresh, hosted};
pub(crate) use known::known;
use runtimes::Runtimes;
pub(crate) use service::{GatewayFlags, Service};
pub(crate) use start::random_id;

use crate::exit::{WRONG_COMMAND_LINE, report};

/// Where the server of a session is, which answers now, and its key.
pub(crate) async fn address(id: &str) -> anyhow::Result<(String, Option<Secret>)> {
    let mut found = Runtimes::of_environment()?.find(id).await?;
    let client = found.client().await?;
    Ok((client.url().to_owned(), found.sandbox.session_key))
}

/// Runs the command.
pub(crate) async fn session(arguments: SessionArgs) -> anyhow::Result<ExitCode> {
    let service = match arguments.gateway.service(arguments.runtime.as_deref()) {
        Ok(service) => service,
        Err(error) => {
            report(&error.into());
            return Ok(ExitCode::from(WRONG_COMMAND_LINE));
        }
    };
    let runtimes = Runtimes::with(arguments.runtime, service)?;
    match arguments.command {
        SessionCommand::Start(arguments) => start::start(&runtimes, arguments).await,
        SessionCommand::Exec(arguments) => exec::exec(&runtimes, arguments).await,
        SessionCommand::Ipython(arguments) => ipython::ipython(&runtimes, arguments).await,
        SessionCommand::View(arguments) => files::view(&runtimes, arguments).await,
        SessionCommand::Write(arguments) => files::write(&runtimes, arguments).await,
        SessionCommand::Edit(arguments) => files::edit(&runtimes, arguments).await,
        SessionCommand::Ps(arguments) => inside::list(&runtimes, arguments).await,
        SessionCommand::Interrupt(arguments) => inside::interrupt(&runtimes, arguments).await,
        SessionCommand::Kill(arguments) => inside::kill(&runtimes, arguments).await,
        SessionCommand::Attach(arguments) => terminal::attach(&runtimes, arguments).await,
        SessionCommand::Events(arguments) => events::events(&runtimes, &arguments).await,
        SessionCommand::Ls(arguments) => list::list(&runtimes, arguments).await,
        SessionCommand::Show(arguments) => show::show(&runtimes, &arguments).await,
        SessionCommand::Pause(arguments) => life::pause(&runtimes, &arguments).await,
        SessionCommand::Resume(arguments) => life::resume(&runtimes, &arguments).await,
        SessionCommand::Stop(arguments) => life::stop(&runtimes, &arguments).await,
        SessionCommand::Rm(arguments) => life::remove(&runtimes, &arguments).await,
        SessionCommand::Snapshot(arguments) => snapshot::snapshot(&runtimes, &arguments).await,
        SessionCommand::Snapshots(SnapshotsCommand::Ls(arguments)) => snapshots::list(&runtimes, &arguments).await,
        SessionCommand::Snapshots(SnapshotsCommand::Rm(arguments)) => snapshots::remove(&runtimes, &arguments).await,
        SessionCommand::Fork(arguments) => snapshot::fork(&runtimes, &arguments).await,
        SessionCommand::Network(command) => network::network(&runtimes, command).await,
        SessionCommand::Logs(arguments) => logs::logs(&runtimes, &arguments).await,
        SessionCommand::Audit(arguments) => audit::audit(&runtimes, &arguments).await,
        SessionCommand::Cp(arguments) => copy::copy(&runtimes, arguments).await,
        SessionCommand::Gc(arguments) => gc::collect(&runtimes, &arguments).await,
        SessionCommand::Url(arguments) => show::url(&runtimes, &arguments).await,
        SessionCommand::Env(arguments) => show::environment(&runtimes, &arguments).await,
    }
}
