//! The server of an agent behind this one (`agent-server-workspace-api` §9): started by the first request for what is its,
//! watched, and ended with the sandbox. Clients show the key of this server; that one has a key of its own.

use std::{
    ffi::OsString,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    response::Response,
};
use gloveport_executor::Executor;
use gloveport_plugin::{Endpoint, Health, Lease, Listens, PluginError, PluginHost, PluginState, Service, ServiceSpec};
use gloveport_proxy::{ForwardError, Forwarding, Mount, ProxyLimits, answer::request_body, forward};
use http::{HeaderValue, Method, StatusCode, Uri, uri::PathAndQuery};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{self, OfProgram},
    options::{HostedAgent, SessionKey},
};

/// Its name in logs.
const NAME: &str = "agent";
/// The variable with its key.
const KEY: &str = "OH_SESSION_API_KEYS_0";
/// Time for its start: it reads some hundred megabytes of Python.
const START: Duration = Duration::from_mins(2);
/// Time that it has to put conversations away.
const END_GRACE: Duration = Duration::from_secs(10);
/// Time for the head of an answer: a request may wait for a model.
const ANSWER: Duration = Duration::from_hours(1);
/// Time for what it says of itself, and most bytes of that.
const DETAILS: Duration = Duration::from_secs(1);
const MOST_DETAILS: usize = 1024 * 1024;

/// The server of an agent.
#[derive(Debug)]
pub(crate) struct Hosted {
    service: Arc<Service>,
    key: SessionKey,
    limits: ProxyLimits,
    /// Requests and sockets that are open.
    open: AtomicUsize,
    /// Ends what was upgraded.
    stop: CancellationToken,
}

impl Hosted {
    /// One that is not started yet.
    pub(super) fn new(executor: &Executor, options: &HostedAgent, stop: CancellationToken) -> io::Result<Self> {
        let key = gloveport_ids::uuid().map_err(io::Error::other)?;
        let mut surroundings = executor.surroundings();
        for (name, value) in &options.environment {
            surroundings.environment.retain(|(known, _)| known != name);
            surroundings.environment.push((name.clone(), value.clone()));
        }
        surroundings.set(KEY, key.as_str());
        let words = ["--host", "127.0.0.1", "--port", "{port}"].map(OsString::from);
        let spec = ServiceSpec {
            name: NAME.to_owned(),
            set_up: None,
            set_up_limit: START,
            command: options.command.iter().cloned().chain(words).collect(),
            environment: std::collections::BTreeMap::new(),
            listens: Listens::AnyPort,
            health: Health::Http("/health".to_owned()),
            start_limit: START,
            // A conversation goes on when nobody looks.
            idle_stop: None,
            end_grace: END_GRACE,
            eager: false,
        };
        let host = PluginHost { surroundings, workspace: executor.working_directory().clone() };
        Ok(Self {
            service: Service::new(spec, host),
            key: SessionKey::new(key),
            limits: ProxyLimits { head: ANSWER, ..ProxyLimits::default() },
            open: AtomicUsize::new(0),
            stop,
        })
    }

    /// Starts it if it does not run, and waits until it is healthy.
    pub(super) async fn lease(&self) -> Result<Lease, PluginError> {
        self.service.lease().await
    }

    pub(super) fn state(&self) -> PluginState {
        self.service.state().borrow().clone()
    }

    /// Whether somebody uses it.
    pub(super) fn is_used(&self) -> bool {
        self.open.load(Relaxed) > 0
    }

    /// The key that it asks for, as the value of a header.
    pub(super) fn key(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(self.key.secret()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Ends it, and returns when nothing of it is left.
    pub(super) async fn close(&self) {
        self.service.stop().await;
    }

    /// Passes on a request of somebody who may be here, and gives its answer.
    pub(super) async fn pass(self: &Arc<Self>, request: Request) -> Response {
        let open = Held::new(self);
        let Some(target) = target_of(request.uri()) else {
            return answer::detail(StatusCode::BAD_REQUEST, "the address is not one that can be passed on");
        };
        let lease = match self.lease().await {
            Ok(lease) => lease,
            Err(error) => return unusable(&error),
        };
        let endpoint = lease.endpoint().clone();
        let passed = self.forward(&endpoint, request, target, Box::new((lease, open))).await;
        passed.unwrap_or_else(|error| {
            answer::detail(StatusCode::BAD_GATEWAY, format!("The agent-server does not answer: {error}"))
        })
    }

    async fn forward(
        &self,
        endpoint: &Endpoint,
        request: Request,
        target: PathAndQuery,
        held: Box<dyn std::any::Any + Send>,
    ) -> Result<Response, ForwardError> {
        let forwarding = Forwarding {
            endpoint,
            mount: &Mount::new("", ""),
            client: None,
            session_key: self.key(),
            limits: &self.limits,
            stop: &self.stop,
        };
        let passed = forward(request.map(request_body), target, forwarding, held).await?;
        let mut passed = passed.map(Body::new);
        // What browsers may do with it is its own matter.
        passed.extensions_mut().insert(OfProgram);
        Ok(passed)
    }

    /// What it says of itself, if it runs and answers soon.
    pub(super) async fn details(&self) -> Option<Value> {
        if self.state() != PluginState::Ready {
            return None;
        }
        let asked = async {
            let lease = self.lease().await.ok()?;
            let endpoint = lease.endpoint().clone();
            let mut request = Request::new(Body::empty());
            *request.method_mut() = Method::GET;
            let target = PathAndQuery::from_static("/server_info");
            let response = self.forward(&endpoint, request, target, Box::new(lease)).await.ok()?;
            let bytes = to_bytes(response.into_body(), MOST_DETAILS).await.ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        timeout(DETAILS, asked).await.ok()?
    }
}

/// Keeps a use counted for as long as an answer lasts.
pub(super) struct Held(Arc<Hosted>);

impl Held {
    pub(super) fn new(hosted: &Arc<Hosted>) -> Self {
        hosted.open.fetch_add(1, Relaxed);
        Self(Arc::clone(hosted))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// What to answer where it cannot be started.
pub(super) fn unusable(error: &PluginError) -> Response {
    answer::detail(StatusCode::BAD_GATEWAY, format!("The agent-server cannot be started: {error}"))
}

/// The path and query that it is asked for: all but the key of this server.
pub(super) fn target_of(uri: &Uri) -> Option<PathAndQuery> {
    let is_ours = |pair: &&str| pair.split('=').next() == Some("session_api_key");
    let kept: Vec<&str> =
        uri.query().into_iter().flat_map(|query| query.split('&')).filter(|pair| !is_ours(pair)).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    PathAndQuery::try_from(format!("{}{query}", uri.path())).ok()
}

/// Whether what no route has is for it.
pub(super) fn owns(path: &str) -> bool {
    ["/api/", "/v1/", "/app-backends/"].iter().any(|start| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_this_server_is_not_passed_on() {
        for (uri, expected) in [
            ("/api/x", "/api/x"),
            ("/api/x?session_api_key=secret", "/api/x"),
            ("/api/x?a=%20b&session_api_key=secret&c", "/api/x?a=%20b&c"),
            ("/api/x?xsession_api_key=1", "/api/x?xsession_api_key=1"),
        ] {
            assert_eq!(target_of(&uri.parse().unwrap()).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn what_is_its_is_known_by_the_path() {
        assert!(owns("/api/conversations") && owns("/v1/models") && owns("/app-backends/x"));
        assert!(!owns("/apiary") && !owns("/health") && !owns("/"));
    }
}
