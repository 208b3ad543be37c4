//! A server whose settings come later (`agent-server-workspace-api` §9.4): one of a pool that runs before anybody knows for
//! whom.

use std::{fmt, path::PathBuf, sync::Arc};

use gloveport_executor::Executor;
use gloveport_protocol::BoxFuture;

use crate::options::{AgentServerOptions, SessionKey};

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
