//! How a server serves clients of OpenHands' SDK 1.x, from its start or from the settings on that it is told later
//! (`agent-server-workspace-api` §9.4): as one of a pool that runs before anybody knows for whom.

use std::{ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use gloveport_executor::Executor;
use gloveport_protocol::BoxFuture;

use crate::key::SessionKey;

/// How a server serves clients of OpenHands' SDK 1.x.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentServerOptions {
    /// The program that gets a command, with the arguments before it.
    pub shell: Vec<OsString>,
    /// Where the events of commands are kept.
    pub events: PathBuf,
    /// How long; for ever if absent.
    pub retention: Option<Duration>,
    /// Pages that may ask from a browser with the key, beside those of this machine: `https://example.org`.
    pub origins: Vec<String>,
    /// The server of an agent, which is started when somebody asks for what is its; without one that is refused.
    pub agent: Option<HostedAgent>,
    /// Where people reach VS Code; it is switched off if absent. The plugin itself is one of the executor's.
    pub editor: Option<EditorPlace>,
}

/// The server of an agent: OpenHands' own, behind this one (`agent-server-workspace-api` §9).
#[derive(Clone, PartialEq, Eq)]
pub struct HostedAgent {
    /// The program, with the words before those that say where it listens.
    pub command: Vec<OsString>,
    /// Variables beside those of commands. They may be secret.
    pub environment: Vec<(OsString, OsString)>,
}

impl fmt::Debug for HostedAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        formatter.debug_struct("HostedAgent").field("command", &self.command).field("environment", &names).finish()
    }
}

/// Where people reach VS Code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorPlace {
    /// The port.
    pub port: u16,
    /// The path below it, without slashes at its ends; empty for the root.
    pub base_path: String,
}

type Settle = dyn Fn(DeferredSettings) -> BoxFuture<'static, Result<Settled, SettleError>> + Send + Sync;

/// How a server for clients of OpenHands' SDK 1.x waits for its settings.
#[derive(Clone)]
pub struct Deferred {
    /// What whoever brings the settings must show; anybody may bring them if absent.
    pub(crate) key: Option<SessionKey>,
    /// Pages that may ask from a browser until then, beside those of this machine.
    pub(crate) origins: Vec<String>,
    settle: Arc<Settle>,
}

impl Deferred {
    /// One that is settled by this function, which must come to an end by itself.
    pub fn new<F>(key: Option<SessionKey>, origins: Vec<String>, settle: F) -> Self
    where
        F: Fn(DeferredSettings) -> BoxFuture<'static, Result<Settled, SettleError>> + Send + Sync + 'static,
    {
        Self { key, origins, settle: Arc::new(settle) }
    }

    pub(crate) fn settle(&self, settings: DeferredSettings) -> BoxFuture<'static, Result<Settled, SettleError>> {
        (self.settle)(settings)
    }
}

impl PartialEq for Deferred {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settle, &other.settle)
    }
}

impl Eq for Deferred {}

impl fmt::Debug for Deferred {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, origins, settle: _ } = self;
        formatter.debug_struct("Deferred").field("key", key).field("origins", origins).finish_non_exhaustive()
    }
}

/// What a server is told. What is absent stays as it was when it was started.
#[derive(Clone, Default)]
pub struct DeferredSettings {
    /// The keys that clients may show. None of them is empty.
    pub session_keys: Option<Vec<SessionKey>>,
    /// What encrypts what an agent keeps.
    pub secret_key: Option<SessionKey>,
    /// What did so earlier.
    pub previous_secret_keys: Option<Vec<SessionKey>>,
    /// Variables for commands and for the agent. They may be secret.
    pub environment: Vec<(String, String)>,
    /// Where the events of commands are kept.
    pub events: Option<PathBuf>,
    /// Pages that may ask from a browser, beside those of this machine.
    pub origins: Option<Vec<String>>,
    /// What the agent alone understands, as variables of its server.
    pub of_agent: Vec<(&'static str, String)>,
}

impl fmt::Debug for DeferredSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("DeferredSettings")
            .field("session_keys", &self.session_keys)
            .field("environment", &names)
            .field("events", &self.events)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// What a server becomes by its settings.
#[derive(Debug)]
pub struct Settled {
    /// The sandbox. The server closes it.
    pub executor: Arc<Executor>,
    /// The keys that clients may show; without one the server is open to everybody who reaches it.
    pub keys: Vec<SessionKey>,
    /// How it serves.
    pub options: AgentServerOptions,
}

/// Why settings do not settle a server, which goes on waiting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettleError {
    /// They are refused.
    #[error("{0}")]
    Refused(String),
    /// Something else failed; the same settings may do later.
    #[error("{0}")]
    Failed(String),
}
