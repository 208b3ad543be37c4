//! What a backend has of the service and of its sandboxes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxId, backend::Backends};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::OnceCell;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    E2bOptions,
    agent::Agent,
    control::Control,
    names::{AGENT_PORT, NAME},
    options::is_host,
    wire::Made,
};

/// Sandboxes whose tokens are remembered; beyond that all are asked for anew.
const REMEMBERED: usize = 4096;

/// What a sandbox is reached with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    /// What the agent asks for.
    pub(crate) agent: Option<Secret>,
    /// What private ports ask for.
    pub(crate) traffic: Option<Secret>,
    /// The domain of its host names, if it is not the configured one.
    pub(crate) domain: Option<String>,
    /// All of this is known.
    pub(crate) whole: bool,
    /// When the sandbox began to run for which this is true: after a rest there may be others.
    pub(crate) since: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: E2bOptions,
    pub(crate) control: Control,
    pub(crate) backends: Backends,
    /// The name of our program in sandboxes, once its file was read.
    pub(crate) program: OnceCell<String>,
    tokens: Mutex<HashMap<SandboxId, Tokens>>,
    /// Sandboxes that end with this backend.
    own: Mutex<BTreeSet<SandboxId>>,
    /// Kept sandboxes that it uses.
    held: Mutex<BTreeSet<SandboxId>>,
    /// Somebody lengthens their time limits.
    pub(crate) keeping: AtomicBool,
    pub(crate) closing: CancellationToken,
    /// What goes on in tasks of its own: sandboxes that are made or taken back, programs in sandboxes that are ended.
    pub(crate) tasks: TaskTracker,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn new(options: E2bOptions) -> Self {
        Self {
            control: Control::new(options.clone()),
            backends: Backends::new(options.backends.clone()),
            options,
            program: OnceCell::new(),
            tokens: Mutex::default(),
            own: Mutex::default(),
            held: Mutex::default(),
            keeping: AtomicBool::new(false),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), ProviderError> {
        if self.closing.is_cancelled() { Err(ProviderError::Closed(NAME.to_owned())) } else { Ok(()) }
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        lock(&self.own)
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        lock(&self.held)
    }

    /// What is known of how a sandbox is reached.
    pub(crate) fn tokens(&self, id: &SandboxId) -> Tokens {
        lock(&self.tokens).get(id).cloned().unwrap_or_default()
    }

    pub(crate) fn remember(&self, id: &SandboxId, tokens: Tokens) {
        let mut all = lock(&self.tokens);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(id.clone(), tokens);
    }

    /// What the service has told when it made or woke a sandbox.
    pub(crate) fn reached(&self, made: Made) -> Tokens {
        let domain = made.domain.filter(|domain| is_host(domain));
        let tokens = Tokens {
            agent: made.envd_access_token,
            traffic: made.traffic_access_token,
            domain,
            whole: true,
            since: None,
        };
        self.remember(&made.id, tokens.clone());
        tokens
    }

    /// A sandbox is gone.
    pub(crate) fn forget(&self, id: &SandboxId) {
        lock(&self.tokens).remove(id);
        self.own().remove(id);
        self.held().remove(id);
    }

    /// URL of a port of a sandbox, without a slash at the end.
    pub(crate) fn url(&self, id: &SandboxId, tokens: &Tokens, port: u16) -> String {
        match &self.options.sandbox_url {
            Some(url) => url.clone(),
            None => format!("https://{port}-{id}.{}", tokens.domain.as_ref().unwrap_or(&self.options.domain)),
        }
    }

    /// Headers that lead to a port of a sandbox and let in who has them.
    pub(crate) fn headers(&self, id: &SandboxId, tokens: &Tokens, port: u16) -> Vec<(&'static str, Secret)> {
        let mut headers = Vec::new();
        if self.options.sandbox_url.is_some() {
            headers.push(("e2b-sandbox-id", Secret::new(id.as_str())));
            headers.push(("e2b-sandbox-port", Secret::new(port.to_string())));
        }
        headers.extend(tokens.traffic.clone().map(|token| ("e2b-traffic-access-token", token)));
        headers
    }

    /// The agent of a sandbox.
    pub(crate) fn agent(&self, id: &SandboxId, tokens: &Tokens) -> Result<Agent<'_>, ProviderError> {
        let mut headers = HeaderMap::new();
        let own = tokens.agent.clone().map(|token| ("x-access-token", token));
        for (name, value) in self.headers(id, tokens, AGENT_PORT).into_iter().chain(own) {
            let value = HeaderValue::from_str(value.expose());
            let mut value = value.map_err(|error| self.control.service.failed("tell its tokens", error))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let url = self.url(id, tokens, AGENT_PORT);
        Ok(Agent::new(&self.control.service, url, headers, self.options.answer_within))
    }
}
