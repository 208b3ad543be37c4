//! What a backend has of the service and of its sandboxes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_hosted::{backend::Backend, program::Program, settings::is_host};
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SandboxId};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{E2bOptions, agent::Agent, control::Control, names::AGENT_PORT, wire::Made};

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
    /// What is its own, and what goes on.
    pub(crate) backend: Backend,
    /// The file that is put into sandboxes.
    pub(crate) program: Program,
    tokens: Mutex<HashMap<SandboxId, Tokens>>,
}

impl Inner {
    pub(crate) fn new(options: E2bOptions) -> Self {
        Self {
            control: Control::new(&options),
            backend: Backend::new(options.backends.clone()),
            program: Program::new(options.program.clone()),
            options,
            tokens: Mutex::default(),
        }
    }

    fn all_tokens(&self) -> MutexGuard<'_, HashMap<SandboxId, Tokens>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of how a sandbox is reached.
    pub(crate) fn tokens(&self, id: &SandboxId) -> Tokens {
        self.all_tokens().get(id).cloned().unwrap_or_default()
    }

    pub(crate) fn remember(&self, id: &SandboxId, tokens: Tokens) {
        let mut all = self.all_tokens();
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
        self.all_tokens().remove(id);
        self.backend.forget(id);
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
