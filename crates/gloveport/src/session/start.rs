//! `gloveport session start`.

use std::process::ExitCode;

use anyhow::Context as _;
use gloveport_config::McpStdioServer;
use gloveport_hosting::client;
use gloveport_protocol::McpServerEntry;
use gloveport_provider::{PhaseTiming, Provider, Sandbox, SandboxSpec, SessionId};
use serde_json::json;

use super::{
    arguments::StartArgs,
    isolation,
    launch::{Launch, launch},
    report::Report,
    runtimes::Runtimes,
    settings::wanted,
};
use crate::{
    here,
    names::LOCAL,
    output::{print, print_json},
    signals,
};

pub(super) async fn start(runtimes: &Runtimes, arguments: Box<StartArgs>) -> anyhow::Result<ExitCode> {
    let (runtime, provider) = runtimes.one()?;
    let how = Launch { until_alive: !arguments.no_wait, limit: arguments.timeout, stop: signals::stop()? };
    let (as_json, report) = (arguments.json, Report::new(arguments.quiet));
    let session_id = match arguments.name.or(arguments.id) {
        Some(id) => SessionId::new(id)?,
        None => random_id()?,
    };
    provider.learn().await?;
    let can = provider.capabilities();
    let wanted = wanted(runtimes, &runtime, &can, session_id, arguments.make, arguments.env)?.kept_apart(&can);
    // It outlives this command, whatever the configuration says of sessions of a backend.
    let spec = SandboxSpec { keep_alive: true, ..wanted.spec };
    let progress = report.progress();
    let launched = launch(&*provider, &spec, &progress, &how).await;
    if let Ok(sandbox) = &launched {
        if how.until_alive {
            set_mcp_servers(&runtimes.context.config.mcp.stdio_servers, sandbox).await;
        }
        if isolation::is_none(sandbox) {
            here::refill_waiting(&runtime, &runtimes.context).await;
        }
        if runtime == LOCAL && !arguments.quiet {
            report.clear();
            crate::output::tell(&isolation::note(sandbox, &spec));
        }
    }
    tell(&*provider, &report, &progress.timings(), launched, as_json).await
}

/// Sends the configured MCP servers that are programs to the sandbox, which starts them when they are used. A session without
/// its tools is still of use.
async fn set_mcp_servers(servers: &[McpStdioServer], sandbox: &Sandbox) {
    if servers.is_empty() {
        return;
    }
    let entries: Vec<McpServerEntry> = servers.iter().map(McpServerEntry::from).collect();
    let set = async { anyhow::Ok(client(sandbox)?.update_mcp_servers(&entries).await?) };
    match set.await {
        Ok(answer) if answer.router_error_log.is_empty() => {}
        Ok(answer) => tracing::warn!("MCP servers of the configuration: {}", answer.router_error_log),
        Err(error) => tracing::warn!("the MCP servers of the configuration are not in the sandbox: {error:#}"),
    }
}

/// What was made stays without us, and is told; or what went wrong is.
pub(super) async fn tell(
    provider: &dyn Provider,
    report: &Report,
    timings: &[PhaseTiming],
    made: anyhow::Result<Sandbox>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let sandbox = match made {
        Ok(sandbox) => sandbox,
        Err(error) => {
            report.clear();
            provider.close().await;
            return Err(error);
        }
    };
    let released = provider.release(&sandbox.id).await;
    provider.close().await;
    report.finish(timings);
    released
        .with_context(|| format!("the session `{}` runs, but may be mistaken for an orphan", sandbox.session_id))?;
    if as_json {
        let mut shown = serde_json::to_value(&sandbox)?;
        shown["phases"] = timings.iter().map(phase).collect();
        print_json(&shown)?;
    } else {
        print(&format!("{}\n", sandbox.session_id))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn phase(timing: &PhaseTiming) -> serde_json::Value {
    json!({
        "phase": timing.phase,
        "began_seconds": timing.began.as_secs_f64(),
        "took_seconds": timing.took.as_secs_f64(),
    })
}

/// An id for a session that got none.
pub(crate) fn random_id() -> anyhow::Result<SessionId> {
    SessionId::random().map_err(|error| anyhow::anyhow!("cannot make a random id: {error}"))
}
