//! The provider.

use std::sync::Arc;

use gloveport_hosted::making::Origin;
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderContext,
    ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId, Snapshot,
};
use tokio_util::sync::DropGuard;

use crate::{DaytonaOptions, capabilities, inner::Inner, names::NAME};

/// Sandboxes of Daytona.
///
/// Nobody can tell who holds one that is kept; but a sandbox that nobody holds is stopped by the service, and deleted then unless
/// it is kept.
#[derive(Debug)]
pub struct Daytona {
    inner: Arc<Inner>,
    /// What works for the backend ends with it, also when it is only dropped.
    _closing: DropGuard,
}

impl Daytona {
    /// The name by which it is registered.
    pub const NAME: &'static str = NAME;

    /// A provider for this service. It is not asked anything yet.
    pub fn new(options: DaytonaOptions) -> Self {
        let inner = Arc::new(Inner::new(options));
        let closing = inner.backend.closing.clone().drop_guard();
        Self { inner, _closing: closing }
    }

    /// Whether there seems to be a key for the service.
    pub fn is_expected(context: &ProviderContext) -> bool {
        DaytonaOptions::is_expected(context)
    }

    /// For the [`Registry`](gloveport_provider::Registry).
    ///
    /// # Errors
    ///
    /// A setting cannot be used.
    pub fn factory(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self::new(DaytonaOptions::new(context)?)))
    }

    async fn checks(&self) -> Vec<Check> {
        let control = &self.inner.control;
        vec![control.service.check(control.check().await), self.inner.program.check()]
    }

    async fn end(&self) {
        let inner = &self.inner;
        let delete = |id: SandboxId| async move {
            if let Err(error) = inner.delete(&id).await {
                tracing::warn!(%id, %error, "a sandbox of a closed backend is left; it is stopped when nobody uses it");
            }
        };
        inner.backend.end(delete).await;
    }
}

impl Provider for Daytona {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        capabilities::of(&self.inner.options)
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.create(spec, Origin::default(), progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(self.inner.find(id))
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(self.inner.of_session(session))
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(self.inner.list(filter))
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.pause(id))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.resume(id))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.delete(id))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(self.inner.logs(id, options))
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(self.inner.collect(options))
    }

    fn hold<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.hold(id))
    }

    fn release<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            self.inner.backend.held().remove(id);
            Ok(())
        })
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(self.inner.snapshot(id, name))
    }

    fn snapshots(&self) -> BoxFuture<'_, Result<Vec<Snapshot>, ProviderError>> {
        Box::pin(self.inner.kept())
    }

    fn delete_snapshot<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.delete_kept(image))
    }

    fn fork<'a>(
        &'a self,
        id: &'a SandboxId,
        session: &'a SessionId,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.fork(id, session, progress))
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(self.checks())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}
