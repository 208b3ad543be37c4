//! The log of a server: whole lines, as JSON where that is asked for.

use tracing_subscriber::{EnvFilter, fmt};

/// To standard error, with the level and the form that the variables of the reference ask for (`action-execution-api` 1.3).
pub(crate) fn for_server() {
    to(std::io::stderr);
}

/// The same for the log of a sandbox.
pub(crate) fn for_sandbox(writer: impl std::io::Write + Send + 'static) {
    to(std::sync::Mutex::new(writer));
}

fn to(writer: impl for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static) {
    let truthy = |name: &str| std::env::var(name).is_ok_and(|value| ["1", "true", "True"].contains(&value.as_str()));
    let level = if truthy("DEBUG") { "debug".to_owned() } else { std::env::var("LOG_LEVEL").unwrap_or_default() };
    // The SDK for MCP tells each message and each end of a connection as news.
    let quiet = |level: &str| format!("{level},rmcp=warn");
    let filter = EnvFilter::try_from_env("GLOVEPORT_LOG")
        .or_else(|_| EnvFilter::try_new(quiet(&if level.is_empty() { "info".into() } else { level.to_lowercase() })))
        .unwrap_or_else(|_| EnvFilter::new(quiet("info")));
    let subscriber = fmt().with_env_filter(filter).with_writer(writer).with_ansi(false);
    if truthy("LOG_JSON") { subscriber.json().init() } else { subscriber.init() }
}
