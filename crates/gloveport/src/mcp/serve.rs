//! `gloveport mcp`: a sandbox as an MCP server on standard input and output.

use std::{env, io::IsTerminal as _, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use gloveport_mcp_server::{Computer as _, McpServer, Tool};
use rmcp::{
    ServiceExt as _,
    transport::{async_rw::AsyncRwTransport, io::stdio_pipes},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{arguments::ServeArgs, computer::Remote};
use crate::{
    exit::INTERRUPTED,
    output::tell,
    session::{FreshComputer, Which, borrow},
    signals,
};

/// How long the client waits for a sandbox that is quick to start, so that an error ends this process at once. One that takes
/// longer is waited for by its tools: clients give up a server that does not answer.
const QUICK: Duration = Duration::from_secs(2);
/// Longest message of a client: that of an HTTP request of a sandbox's server.
const LONGEST: usize = 64 * 1024 * 1024;
/// What a person sees who runs it by hand.
const FOR_PROGRAMS: &str = "note: this is a server for MCP clients, which start it and speak JSON with it; C-d ends it. \
    `gloveport mcp install` sets it up in a client";

pub(super) async fn serve(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let ServeArgs { runtime, session, url, key, key_file, mut tools, keep, env: variables, make, approve } = arguments;
    if tools.is_empty() {
        tools = Tool::ALL.to_vec();
    }
    tools.sort_by_key(|tool| Tool::ALL.iter().position(|one| one == tool));
    tools.dedup();
    let which = match (session, url) {
        (Some(id), _) => Which::Session(id),
        (None, Some(url)) => Which::Server { url, key: key.or_else(|| env::var("GLOVEPORT_KEY").ok()), key_file },
        (None, None) => {
            let has_python = tools.contains(&Tool::Python);
            Which::Fresh(Box::new(FreshComputer { runtime, make, variables, has_python, keep }))
        }
    };
    if std::io::stdin().is_terminal() {
        tell(FOR_PROGRAMS);
    }
    let stop = signals::stop()?;
    // Whichever end comes first, a sandbox that is being made is given up.
    let ending = CancellationToken::new();
    let remote = Arc::new(Remote::new(ending.clone()));
    // A runtime may hold its thread up while it begins.
    let serving = tokio::spawn({
        let (remote, ending) = (Arc::clone(&remote), ending.clone());
        async move {
            let served = tokio::select! {
                served = serve_when_ready(&remote, tools) => served,
                () = stop.cancelled() => Ok(End::Signal),
            };
            ending.cancel();
            served
        }
    });
    let made = match Box::pin(borrow(which, approve, ending)).await {
        Ok(sandbox) => {
            remote.set(sandbox);
            Ok(())
        }
        Err(error) => {
            remote.fail(&error);
            Err(error)
        }
    };
    let served = serving.await.context("the MCP server stopped")?;
    remote.end().await;
    match served? {
        End::Client => made.map(|()| ExitCode::SUCCESS),
        End::Signal => Ok(ExitCode::from(INTERRUPTED)),
        End::NoSandbox => made.map(|()| ExitCode::FAILURE),
    }
}

/// Why it ends.
enum End {
    Client,
    Signal,
    NoSandbox,
}

async fn serve_when_ready(remote: &Arc<Remote>, tools: Vec<Tool>) -> anyhow::Result<End> {
    if let Ok(Err(_)) = timeout(QUICK, remote.ready()).await {
        return Ok(End::NoSandbox);
    }
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(LONGEST);
    let server = McpServer::new(Arc::<Remote>::clone(remote), tools);
    match server.serve(transport).await {
        Ok(running) => {
            running.waiting().await.context("the MCP server stopped")?;
            Ok(End::Client)
        }
        Err(error) => Err(error).context("the client did not begin to speak MCP"),
    }
}
