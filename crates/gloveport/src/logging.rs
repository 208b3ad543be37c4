//! The log of a command for people goes to standard error, short and coloured.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt};

use crate::visible;

/// For a server that operators watch: with times, at the level of `LOG_LEVEL`, and as JSON if `LOG_JSON` is set.
pub(crate) fn for_operators() {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| ["1", "true", "True"].contains(&value.as_str()));
    let level = std::env::var("LOG_LEVEL").unwrap_or_default().to_lowercase();
    let filter = EnvFilter::try_from_env("GLOVEPORT_LOG")
        .or_else(|_| EnvFilter::try_new(if level.is_empty() { "warn" } else { level.as_str() }))
        .unwrap_or_else(|_| EnvFilter::new("warn"));
    if is_set("LOG_JSON") {
        fmt().with_env_filter(filter).with_writer(std::io::stderr).json().init();
    } else {
        fmt().with_env_filter(filter).with_writer(|| visible::Log).with_ansi(false).with_target(false).init();
    }
}

/// Warnings only, unless `GLOVEPORT_LOG` says otherwise.
pub(crate) fn for_people() {
    // What ends a connection of MCP is in the error that the command prints.
    let filter = EnvFilter::try_from_env("GLOVEPORT_LOG").unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = fmt().with_env_filter(filter).with_writer(|| visible::Log).with_ansi(colours).without_time();
    subscriber.with_target(false).init();
}
