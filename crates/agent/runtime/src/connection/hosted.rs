//! A sandbox that a provider hosts (runtime-interface 3 and 4, remote-runtime-api 3).
//!
//! | module | idea |
//! |---|---|
//! | `connect` | an existing sandbox is used, a paused one comes back, else one is made |
//! | `end` | left, paused, kept or deleted |
//! | `engine` | what the runtimes of OpenHands tell, each in its own words |
//! | `revival` | a paused sandbox comes back |
//! | `recovery` | what is done about requests that fail |
//! | `urls` | addresses of what runs in a sandbox |
//! | `from_config` | from the configuration to a sandbox |
//! | `warm` | sandboxes that are started ahead |

mod connect;
mod end;
mod engine;
mod from_config;
mod recovery;
mod revival;
pub(crate) mod urls;
mod warm;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_client::{ActionExecutionClient, ClientOptions};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{PhaseTiming, Provider, Sandbox, SandboxSpec};
use tokio_util::sync::CancellationToken;

use super::{BroughtTools, ConnectRequest, Connector, SandboxConnection};
use crate::{RuntimeError, connection::hosted::revival::Revival};

pub use end::delete;
pub(crate) use engine::Engine;
pub use from_config::FromConfig;
pub use warm::WarmPool;

/// How a session treats its sandbox.
#[derive(Clone, Debug)]
pub struct HostedOptions {
    /// How long the server of a new or resumed sandbox is waited for.
    pub alive_within: Duration,
    /// The sandbox outlives the session, and one that is found paused while it works is resumed
    /// (`sandbox.keep_runtime_alive`).
    pub keep_alive: bool,
    /// A sandbox that is kept is paused when the session ends (`sandbox.pause_closed_runtimes`).
    pub pause_closed: bool,
    /// Requests that could not be sent are sent again (`sandbox.remote_runtime_enable_retries`).
    pub retries: bool,
    /// Wait before such a request is sent again.
    pub retry_wait: Duration,
    /// How long pausing or deleting the sandbox may take when the session ends.
    pub close_within: Duration,
    /// So many warm sandboxes wait after each connection (`DESIRED_NUM_WARM_SERVERS`).
    pub warm: usize,
    /// What is brought into a sandbox whose server is an `agent-server` of OpenHands' SDK 1.x.
    pub tools: Option<BroughtTools>,
    /// How the server is asked. URL, key and recovery are those of the sandbox, whose headers are added.
    pub client: ClientOptions,
}

impl Default for HostedOptions {
    fn default() -> Self {
        Self {
            alive_within: Duration::from_mins(2),
            keep_alive: false,
            pause_closed: false,
            retries: true,
            retry_wait: Duration::from_secs(4),
            close_within: Duration::from_mins(1),
            warm: 0,
            tools: None,
            client: ClientOptions::new(""),
        }
    }
}

/// Gives a session a sandbox of a provider.
///
/// The sandbox of the session is used where there is one, resumed if it is paused; else it is made. What a connection
/// that fails or is given up has made is deleted again.
pub struct Hosted {
    provider: Arc<dyn Provider>,
    spec: SandboxSpec,
    options: HostedOptions,
    engine: Engine,
    /// Ends what waits.
    stop: CancellationToken,
    /// Held while connecting, so that nothing is made behind the back of `end`.
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

/// What there is of the sandbox.
#[derive(Default)]
struct State {
    sandbox: Option<Sandbox>,
    stage: Stage,
    /// The session was attached to it.
    attached: bool,
    /// The provider was told that this backend uses it.
    held: bool,
    client: Option<ActionExecutionClient>,
    revival: Option<Arc<Revival>>,
    timings: Vec<PhaseTiming>,
    /// Fills up the pool of warm sandboxes.
    refill: Option<tokio::task::JoinHandle<()>>,
}

/// How far it is with the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Found, but nobody knows yet whether it can be used.
    #[default]
    Found,
    /// Made, and never used.
    Made,
    /// The session is connected to it.
    Connected,
}

impl Hosted {
    /// Sandboxes of this provider, made from this. Whether they are kept is in the options.
    pub fn new(provider: Arc<dyn Provider>, spec: SandboxSpec, options: HostedOptions) -> Self {
        let engine = Engine::of(&provider.capabilities());
        let stop = options.client.shutdown.child_token();
        let spec = SandboxSpec { keep_alive: options.keep_alive, ..spec };
        Self {
            provider,
            spec,
            options,
            engine,
            stop,
            connecting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// How long each phase of the latest connection took.
    pub fn timings(&self) -> Vec<PhaseTiming> {
        self.state().timings.clone()
    }

    /// The sandbox as its engine tells it now.
    pub async fn sandbox(&self) -> Result<Sandbox, RuntimeError> {
        let id = self.connected()?.id;
        let found = self.provider.find(&id).await?;
        found.ok_or_else(|| RuntimeError::NotFound(format!("the sandbox `{id}` does not exist any more")))
    }

    /// The sandbox as it was when the session was connected to it.
    pub(crate) fn connected(&self) -> Result<Sandbox, RuntimeError> {
        let state = self.state();
        state.sandbox.clone().filter(|_| state.stage == Stage::Connected).ok_or(RuntimeError::NotConnected)
    }

    pub(crate) const fn engine(&self) -> Engine {
        self.engine
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connector for Hosted {
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>> {
        Box::pin(self.connect_alone(request))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Err(error) = self.give_up().await {
                tracing::error!(session = %self.spec.session_id, %error, "the sandbox was not given up as it should");
            }
        })
    }

    fn end(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.give_up())
    }

    fn hosted(&self) -> Option<&Hosted> {
        Some(self)
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sandbox = self.state().sandbox.as_ref().map(|sandbox| sandbox.id.clone());
        f.debug_struct("Hosted")
            .field("provider", &self.provider)
            .field("session", &self.spec.session_id)
            .field("sandbox", &sandbox)
            .finish_non_exhaustive()
    }
}
