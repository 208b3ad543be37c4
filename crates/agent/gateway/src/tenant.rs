//! The sandboxes of who asks, as a provider: what other servers beside the interface use in the name of a tenant.
//!
//! All of it goes the way of the interface, so policy, quotas and audit are the same.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderError,
    ResourceLimits, Sandbox, SandboxId, SandboxSpec, SessionId, Snapshot,
};
use http::StatusCode;

use crate::{
    api,
    caller::ClientAddress,
    fault::Fault,
    identity::{self, Identity},
    labels::LABEL,
    policy::Asked,
    shared::Shared,
    tenancy::Started,
};

/// Who asks, with the sandboxes that are theirs. Each request behind the key check has one as an extension.
///
/// As a [`Provider`] it makes sandboxes within the policy and the quotas of the tenant, by the tenant's own names of
/// sessions, and writes the audit log. Of a spec it takes what requests of the interface can ask for, and nothing of this
/// machine.
#[derive(Clone)]
pub struct Tenant {
    shared: Arc<Shared>,
    who: Identity,
    /// Labels, network and times of specs are taken, too.
    is_detailed: bool,
}

impl Tenant {
    /// The name of the tenant; `default` without a database.
    pub fn tenant(&self) -> &str {
        self.who.name()
    }

    /// One that takes labels, networks and times as they are asked for.
    pub(crate) fn in_detail(shared: Arc<Shared>, who: Identity) -> Self {
        Self { shared, who, is_detailed: true }
    }

    /// The spec that is made for what is asked.
    fn spec(&self, asked: &SandboxSpec) -> SandboxSpec {
        let (can, options) = (&self.shared.can, &self.shared.options);
        let mut spec = SandboxSpec::new(asked.session_id.clone());
        spec.image = asked.image.clone().filter(|image| can.images && !image.is_empty());
        spec.plugins.clone_from(&asked.plugins);
        spec.environment.clone_from(&asked.environment);
        spec.secrets.clone_from(&asked.secrets);
        spec.session_key.clone_from(&asked.session_key);
        // A size of 1 is the base.
        let factor = asked.limits.factor.filter(|factor| *factor != 1 || can.resource_factor);
        spec.limits = ResourceLimits { factor, ..ResourceLimits::default() };
        spec.runtime_class = asked.runtime_class.clone().filter(|class| can.images && !class.is_empty());
        if can.labels {
            spec.labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
        }
        if self.is_detailed {
            spec.labels.extend(asked.labels.clone());
            spec.network = asked.network.clone();
        }
        spec.keep_alive = can.keep_alive;
        let asked_time = asked.time_to_live.filter(|_| self.is_detailed);
        spec.time_to_live = asked_time.into_iter().chain(options.time_to_live).min();
        spec.idle_stop = options.idle_stop;
        spec
    }

    async fn make(&self, asked: &SandboxSpec, progress: &Progress) -> Result<Sandbox, ProviderError> {
        let limits = Asked {
            image: asked.image.clone(),
            class: asked.runtime_class.clone(),
            factor: asked.limits.factor.unwrap_or(1),
            amounts: None,
        };
        let session = asked.session_id.clone();
        let made = self.shared.start_telling(&self.who, self.spec(asked), &limits, (None, progress)).await;
        self.shared.audit(&self.who, "start", session.as_str(), &made);
        let Started { sandbox, is_new, held } = made.map_err(|fault| refused(&fault, "start a sandbox", None))?;
        self.shared.settle(&sandbox.id, held).await;
        self.shared.known.forget(&sandbox.id);
        self.shared.made(&sandbox, is_new).await;
        // It lives on without this gateway, however that one ends.
        if is_new
            && self.shared.can.keep_alive
            && let Err(error) = self.shared.provider.release(&sandbox.id).await
        {
            tracing::warn!(id = %sandbox.id, %error, "a sandbox ends if this gateway is killed");
        }
        if is_new { Ok(sandbox) } else { Err(ProviderError::SessionExists { session, sandbox: sandbox.id }) }
    }

    fn can_keep(&self) -> Result<(), ProviderError> {
        if self.shared.can.snapshots { Ok(()) } else { Err(self.cannot("snapshots")) }
    }

    /// What was done to a sandbox, for the audit log.
    async fn done<T>(
        &self,
        action: &'static str,
        id: &SandboxId,
        done: impl Future<Output = Result<T, Fault>> + Send,
    ) -> Result<T, ProviderError> {
        let done = done.await;
        self.shared.known.forget(id);
        self.shared.audit(&self.who, action, id.as_str(), &done);
        done.map_err(|fault| refused(&fault, action, Some(id)))
    }
}

/// A fault as providers tell it.
fn refused(fault: &Fault, action: &str, id: Option<&SandboxId>) -> ProviderError {
    let (engine, reason) = ("the gateway".to_owned(), fault.detail().to_owned());
    match (fault.status(), id) {
        (StatusCode::NOT_FOUND, Some(id)) => ProviderError::NotFound(id.clone()),
        (StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED, _) => {
            let hint = "ask who runs the gateway".to_owned();
            ProviderError::Access { engine, reason, hint }
        }
        (StatusCode::TOO_MANY_REQUESTS, _) => ProviderError::Quota { reason, retry_after: fault.retry_after() },
        (StatusCode::BAD_REQUEST, _) => ProviderError::Spec { field: "the request".to_owned(), reason },
        (StatusCode::SERVICE_UNAVAILABLE, _) => {
            let hint = "try it again".to_owned();
            ProviderError::Unreachable { engine, source: reason.into(), hint }
        }
        _ => ProviderError::Engine { engine, action: action.to_owned(), reason },
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tenant").field("tenant", &self.who.name()).finish_non_exhaustive()
    }
}

impl Provider for Tenant {
    fn name(&self) -> &str {
        self.shared.provider.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.can.clone()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.make(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async move {
            let Some(found) = self.shared.provider.find(id).await? else { return Ok(None) };
            self.shared.of_tenant(&self.who, found).await.map_err(|fault| refused(&fault, "find a sandbox", Some(id)))
        })
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async move {
            let found = self.shared.of_session(&self.who, session.as_str()).await;
            found.map_err(|fault| refused(&fault, "find a session", None))
        })
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(async move {
            let mut filter = filter.clone();
            if self.shared.can.labels {
                filter.labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
                filter.labels.extend(identity::filter(self.who.name()));
            }
            let mut listed = Vec::new();
            for sandbox in self.shared.provider.list(&filter).await? {
                let own = self.shared.of_tenant(&self.who, sandbox).await;
                listed.extend(own.map_err(|fault| refused(&fault, "list sandboxes", None))?);
            }
            Ok(listed)
        })
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.done("pause", id, async {
            let sandbox = self.shared.own(&self.who, id.as_str()).await?;
            self.shared.provider.pause(&sandbox.id).await?;
            self.shared.noted(async |store| store.paused(sandbox.id.as_str()).await).await;
            Ok(())
        }))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.done("resume", id, async { self.shared.go_on(&self.who, id).await.map(drop) }))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.done("stop", id, async {
            let sandbox = self.shared.own(&self.who, id.as_str()).await?;
            let deleted = self.shared.provider.delete(&sandbox.id).await?;
            self.shared.noted(async |store| store.ended(sandbox.id.as_str(), "it was stopped").await).await;
            Ok(deleted)
        }))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async move {
            let own = self.shared.own(&self.who, id.as_str()).await;
            let sandbox = own.map_err(|fault| refused(&fault, "read a log", Some(id)))?;
            self.shared.provider.logs(&sandbox.id, options).await
        })
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            self.can_keep()?;
            let kept = async {
                let sandbox = self.shared.own(&self.who, id.as_str()).await?;
                self.shared.keep_as(&self.who, &sandbox, name).await
            };
            self.done("sandbox snapshot", id, kept).await
        })
    }

    fn snapshots(&self) -> BoxFuture<'_, Result<Vec<Snapshot>, ProviderError>> {
        Box::pin(async {
            self.can_keep()?;
            let listed = self.shared.snapshots(&self.who).await;
            listed.map_err(|fault| refused(&fault, "list snapshots", None))
        })
    }

    fn delete_snapshot<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(async move {
            self.can_keep()?;
            let deleted = self.shared.delete_snapshot(&self.who, image).await;
            self.shared.audit(&self.who, "snapshot delete", image, &deleted);
            deleted.map_err(|fault| refused(&fault, "delete a snapshot", None))
        })
    }

    /// The gateway collects, and not for one tenant.
    fn collect_garbage<'a>(&'a self, _options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(async { Ok(GcReport::default()) })
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        self.shared.provider.check()
    }

    fn poll_interval(&self) -> Duration {
        self.shared.provider.poll_interval()
    }

    /// The gateway keeps its provider.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Lets nobody pass without a key.
pub(crate) async fn with_key(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let address: Option<IpAddr> = request.extensions().get::<ClientAddress>().map(|client| client.0);
    let who = match shared.identify(request.headers(), address).await {
        Ok(who) => who,
        Err(fault) => return fault.into_response(),
    };
    request.extensions_mut().insert(Tenant { shared: Arc::clone(&shared), who, is_detailed: false });
    match api::whole(request).await {
        Ok(request) => next.run(request).await,
        Err(fault) => fault.into_response(),
    }
}
