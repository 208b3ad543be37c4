//! `invariant`: a server with policies, in a container or elsewhere (security 3.2).

mod host;
mod service;
#[cfg(test)]
mod tests;
mod trace;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_protocol::{ActionEvent, BoxFuture, Event, SecurityRisk};
use reqwest::Client;
use tokio::sync::OnceCell;

pub use host::{DockerHost, FixedHost, InvariantHost};
pub use service::Retries;

use self::{
    service::{Monitor, Service},
    trace::Trace,
};
use crate::{
    analyzer::{Assessment, History, SecurityAnalyzer},
    error::AnalyzerError,
    http,
    options::AnalyzerOptions,
};

/// How the server is found, and by what it judges.
#[derive(Debug, Clone, Default)]
pub struct InvariantOptions {
    /// URL of a running server. Without one, a container is used.
    pub url: Option<String>,
    /// The policy. Without one, the server's template is used.
    pub policy: Option<String>,
}

/// Asks a server whether the actions of a conversation break its policies.
pub struct Invariant {
    client: Client,
    host: Arc<dyn InvariantHost>,
    policy: Option<String>,
    limit: Duration,
    retries: Retries,
    ready: OnceCell<Monitor>,
    /// What was checked so far. Only actions pass through an analyzer, so it has no observations.
    trace: Mutex<Trace>,
}

impl fmt::Debug for Invariant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Invariant").field("ready", &self.ready.initialized()).finish_non_exhaustive()
    }
}

impl Invariant {
    /// Time for one request.
    const LIMIT: Duration = Duration::from_mins(1);

    /// An analyzer for a server that is started, or found, before the first rating.
    pub fn new(options: &AnalyzerOptions) -> Result<Self, AnalyzerError> {
        let host: Arc<dyn InvariantHost> = match &options.invariant.url {
            Some(url) => Arc::new(FixedHost::new(url)),
            None => Arc::new(DockerHost::default()),
        };
        Self::on_host(host, options)
    }

    /// The same on a host of one's own.
    pub fn on_host(host: Arc<dyn InvariantHost>, options: &AnalyzerOptions) -> Result<Self, AnalyzerError> {
        Ok(Self {
            client: options.http.clone().map_or_else(http::client, Ok)?,
            host,
            policy: options.invariant.policy.clone(),
            limit: Self::LIMIT,
            retries: Retries::default(),
            ready: OnceCell::new(),
            trace: Mutex::new(Trace::default()),
        })
    }

    /// With another time for one request.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// With other retries for a server that does not answer yet.
    #[must_use]
    pub fn with_retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// Host, session, policy and monitor, made once. A failure leaves nothing behind, so that the next call tries again.
    async fn monitor(&self) -> Result<&Monitor, AnalyzerError> {
        self.ready
            .get_or_try_init(|| async {
                let url = self.host.start().await?;
                let service = Service::new(self.client.clone(), &url, self.limit);
                service.monitor(self.policy.as_deref(), self.retries).await
            })
            .await
    }

    async fn rate(&self, event: &ActionEvent) -> Result<SecurityRisk, AnalyzerError> {
        let monitor = self.monitor().await?;
        let (past, pending) = {
            let trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
            let pending = trace.elements(&Event::Action(event.clone()));
            (trace.past(), pending)
        };
        let violations = monitor.check(&past, &pending).await?;
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).append(pending);
        Ok(risk_of(&violations))
    }
}

/// The highest risk that a violation names, and LOW if none does (security 3.2).
fn risk_of(violations: &[String]) -> SecurityRisk {
    let named = violations.iter().flat_map(|text| text.split("risk=").skip(1)).map(|rest| {
        let end = rest.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(rest.len());
        match rest.get(..end) {
            Some("high") => SecurityRisk::High,
            Some("medium") => SecurityRisk::Medium,
            _ => SecurityRisk::Low,
        }
    });
    named.max().unwrap_or(SecurityRisk::Low)
}

impl SecurityAnalyzer for Invariant {
    fn name(&self) -> &'static str {
        "invariant"
    }

    fn start(&self) -> BoxFuture<'_, Result<(), AnalyzerError>> {
        Box::pin(async { self.monitor().await.map(drop) })
    }

    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        _history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
        Box::pin(async { self.rate(action).await.map(Assessment::of) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(monitor) = self.ready.get() {
                monitor.end_session().await;
            }
            self.host.stop().await;
        })
    }
}
