//! The log of a command for people goes to standard error, short and coloured.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt};

use crate::visible;

/// Warnings only, unless `GLOVEPORT_LOG` says otherwise.
pub(crate) fn for_people() {
    // What ends a connection of MCP is in the error that the command prints.
    let filter = EnvFilter::try_from_env("GLOVEPORT_LOG").unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = fmt().with_env_filter(filter).with_writer(|| visible::Log).with_ansi(colours).without_time();
    subscriber.with_target(false).init();
}
