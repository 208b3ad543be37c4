//! A server for clients of another runtime, from its start to its end.

use std::{net::SocketAddr, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use gloveport_executor::{Executor, ExecutorError, ExecutorOptions};
use gloveport_server::{DrainEnd, ServerOptions, StrangeNames, Wire};

use crate::{
    Owner,
    tools::{self, bind},
};

/// A sandbox without a shell of its own: their clients have shells and processes of theirs.
pub(crate) async fn executor(tools: ExecutorOptions) -> Result<Arc<Executor>, ExecutorError> {
    Executor::start(ExecutorOptions { has_shell: false, ..tools }).await
}

/// Serves them until it is told to stop; `whose` says in the log whose clients they are.
pub(crate) async fn serve(
    owner: &Owner,
    tools: ExecutorOptions,
    address: SocketAddr,
    server: ServerOptions,
    whose: &str,
) -> anyhow::Result<ExitCode> {
    let stop = tools::server_stop(owner)?;
    let executor = executor(tools).await?;
    let listener = bind(address).await?;
    let address = listener.local_addr().context("the address of the server is not known")?;
    tracing::info!(%address, directory = %executor.working_directory().display(), "ready for clients of {whose}");
    if let Wire::Deferred(_) = server.wire {
        tracing::info!("it waits for its settings: POST /api/init");
    } else if server.session_key.is_none() {
        tracing::warn!(%address, "no key: everybody who reaches this address can run commands here");
    }
    // Clients ask by whatever name leads into a container, as those of OpenHands 0.62 do.
    let server = ServerOptions { strange_names: StrangeNames::OfPrograms, ..server };
    let end = gloveport_server::serve(listener, executor.clone(), server, stop, tools::DRAIN).await;
    executor.close().await;
    if let DrainEnd::CutOff { open } = end? {
        tracing::warn!(open, "requests were cut off");
    }
    owner.check()?;
    Ok(ExitCode::SUCCESS)
}
