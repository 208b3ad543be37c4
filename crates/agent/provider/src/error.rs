//! Why a provider could not do something.

use std::{io, path::PathBuf, time::Duration};

use crate::{InvalidName, SandboxId, SandboxState, SessionId};

/// Any other error as the cause of one.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a provider could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// No provider has the name (runtime-interface 1.2).
    #[error("Runtime {name} not supported, known are: {}", known.join(", "))]
    UnknownProvider {
        /// The name.
        name: String,
        /// All names, sorted.
        known: Vec<String>,
    },
    /// The provider cannot do this at all.
    #[error("the runtime `{provider}` has no support for {what}; see docs/providers.md for what each can do")]
    Unsupported {
        /// Name of the provider.
        provider: String,
        /// What was asked for: "a network policy".
        what: String,
    },
    /// A sandbox cannot be made from this.
    #[error("{field} of the sandbox cannot be used: {reason}")]
    Spec {
        /// The field of the spec.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A text is no name of a sandbox or session.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// There is no such sandbox.
    #[error("there is no sandbox `{0}`; list them with `gloveport session ls`")]
    NotFound(SandboxId),
    /// The session has a sandbox already.
    #[error("the session `{session}` has the sandbox `{sandbox}` already; attach to it or delete it first")]
    SessionExists {
        /// The session.
        session: SessionId,
        /// Its sandbox.
        sandbox: SandboxId,
    },
    /// The sandbox is in a state in which this is not possible.
    #[error("cannot {action} the sandbox `{id}`, which is {state}")]
    State {
        /// What was tried: "pause".
        action: &'static str,
        /// The sandbox.
        id: SandboxId,
        /// Its state.
        state: SandboxState,
    },
    /// The server of a sandbox could not be started.
    #[error("the sandbox did not start: {reason}{}", last_lines(log))]
    Start {
        /// Why.
        reason: String,
        /// The last that it wrote; may be empty.
        log: String,
    },
    /// The engine refuses the credentials, or this user.
    #[error("{engine} refuses access: {reason}; {hint}")]
    Access {
        /// Which engine, where.
        engine: String,
        /// What it says.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// Whoever asks may not have more for now.
    #[error("{reason}")]
    Quota {
        /// Which quota, and how much of it is used.
        reason: String,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The engine cannot be reached.
    #[error("{engine} cannot be reached: {source}; {hint}")]
    Unreachable {
        /// Which engine, where.
        engine: String,
        /// Why.
        source: Cause,
        /// What to do.
        hint: String,
    },
    /// The engine failed or refused.
    #[error("{engine} could not {action}: {reason}")]
    Engine {
        /// Which engine.
        engine: String,
        /// What was tried: "create the container".
        action: String,
        /// What it says.
        reason: String,
    },
    /// It took too long.
    #[error("{action} took longer than {} s", limit.as_secs_f64())]
    Timeout {
        /// What: "deleting the sandbox `x`".
        action: String,
        /// The limit.
        limit: Duration,
    },
    /// A file of this machine.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The provider is closed.
    #[error("the runtime `{0}` is closed")]
    Closed(String),
}

impl ProviderError {
    /// Whether the same call may succeed later without anybody changing anything.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Timeout { .. })
    }
}

fn last_lines(log: &str) -> String {
    let log = log.trim_end();
    if log.is_empty() { String::new() } else { format!("; it wrote last:\n{log}") }
}
