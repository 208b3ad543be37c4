//! The log of a command for people goes to standard error, short and coloured.

use std::io::IsTerminal as _;

use tracing_subscriber::{
    EnvFilter, Layer as _, fmt, layer::SubscriberExt as _, registry, util::SubscriberInitExt as _,
};

use crate::{traces::Traces, visible};
use gloveport_gateway::TRACE_TARGET;

/// For a server that operators watch: with times, at the level of `LOG_LEVEL`, and as JSON if `LOG_JSON` is set; and with traces,
/// if there are any.
pub(crate) fn for_operators(traces: Option<&Traces>) {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| ["1", "true", "True"].contains(&value.as_str()));
    let level = std::env::var("LOG_LEVEL").unwrap_or_default().to_lowercase();
    let filter = EnvFilter::try_from_env("GLOVEPORT_LOG")
        .or_else(|_| EnvFilter::try_new(if level.is_empty() { "warn" } else { level.as_str() }))
        .unwrap_or_else(|_| EnvFilter::new("warn"));
    let not_traces = format!("{TRACE_TARGET}=off").parse();
    let filter = not_traces.map_or_else(|_| filter.clone(), |directive| filter.clone().add_directive(directive));
    let lines = fmt::layer();
    let lines = if is_set("LOG_JSON") {
        lines.with_writer(std::io::stderr).json().boxed()
    } else {
        lines.with_writer(|| visible::Log).with_ansi(false).with_target(false).boxed()
    };
    registry().with(lines.with_filter(filter)).with(traces.map(Traces::layer)).init();
}

/// Warnings only, unless `GLOVEPORT_LOG` says otherwise.
pub(crate) fn for_people() {
    // What ends a connection of MCP is in the error that the command prints.
    let filter = EnvFilter::try_from_env("GLOVEPORT_LOG").unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = fmt().with_env_filter(filter).with_writer(|| visible::Log).with_ansi(colours).without_time();
    subscriber.with_target(false).init();
}
