//! The provider.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderContext,
    ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId,
};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use crate::{E2bOptions, capabilities, create::Origin, inner::Inner, names::NAME};

/// How long the end of the backend may take.
const CLOSE: Duration = Duration::from_mins(1);
/// Sandboxes that are deleted at the same time when the backend ends.
const AT_ONCE: usize = 8;

/// Sandboxes of E2B.
///
/// Labels cannot be changed once a sandbox is made, so nobody can tell who holds one that is kept; but a sandbox that nobody
/// holds ends by the service's time limit, and one that is kept rests then.
#[derive(Debug)]
pub struct E2b {
    inner: Arc<Inner>,
    /// What works for the backend ends with it, also when it is only dropped.
    _closing: DropGuard,
}

impl E2b {
    /// The name by which it is registered.
    pub const NAME: &'static str = NAME;

    /// A provider for this service. It is not asked anything yet.
    pub fn new(options: E2bOptions) -> Self {
        let inner = Arc::new(Inner::new(options));
        let closing = inner.closing.clone().drop_guard();
        Self { inner, _closing: closing }
    }

    /// Whether there seems to be a key for the service.
    pub fn is_expected(context: &ProviderContext) -> bool {
        E2bOptions::is_expected(context)
    }

    /// For the [`Registry`](gloveport_provider::Registry).
    ///
    /// # Errors
    ///
    /// A setting cannot be used.
    pub fn factory(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self::new(E2bOptions::new(context)?)))
    }

    async fn checks(&self) -> Vec<Check> {
        let service = "service".to_owned();
        let listed = match self.inner.control.list(&[(crate::names::SESSION.to_owned(), "-".to_owned())].into()).await {
            Ok(_) => {
                let found = format!("{}, and the key is accepted", self.inner.control.service.name());
                Check { name: service, works: true, found, remedy: None }
            }
            Err(error) => {
                let remedy = match &error {
                    ProviderError::Access { hint, .. } | ProviderError::Unreachable { hint, .. } => hint.clone(),
                    _ => "look at docs/hosted.md".to_owned(),
                };
                let found = gloveport_client::causes(&error);
                // What to do is told apart.
                let found = found.strip_suffix(&format!("; {remedy}")).unwrap_or(&found).to_owned();
                Check { name: service, works: false, found, remedy: Some(remedy) }
            }
        };
        vec![listed, self.program()]
    }

    /// The file that is put into sandboxes.
    fn program(&self) -> Check {
        let (path, name) = (&self.inner.options.program, "program for sandboxes".to_owned());
        let is_for_linux = gloveport_provider::program::is_for_containers(path);
        let length = fs::metadata(path).map(|meta| meta.len());
        match is_for_linux.and_then(|is_for_linux| Ok((is_for_linux, length?))) {
            Ok((true, length)) => {
                let found = format!("{}, {} MB to upload", path.display(), length / 1_000_000);
                Check { name, works: true, found, remedy: None }
            }
            Ok((false, _)) => {
                let remedy = Some("put the program gloveport-sandbox for Linux beside this one".to_owned());
                Check { name, works: false, found: format!("{} is not for Linux", path.display()), remedy }
            }
            Err(error) => {
                let remedy = Some("install gloveport where it may be read".to_owned());
                Check { name, works: false, found: format!("{}: {error}", path.display()), remedy }
            }
        }
    }

    async fn end(&self) {
        let inner = &self.inner;
        inner.closing.cancel();
        inner.tasks.close();
        let ending = async {
            inner.tasks.wait().await;
            let own: BTreeSet<SandboxId> = std::mem::take(&mut *inner.own());
            let delete = |id: SandboxId| async move {
                if let Err(error) = inner.delete(&id).await {
                    tracing::warn!(%id, %error, "a sandbox of a closed backend is left; it ends with its time limit");
                }
            };
            stream::iter(own).for_each_concurrent(AT_ONCE, delete).await;
        };
        if timeout(CLOSE, ending).await.is_err() {
            tracing::warn!("the end of the backend took too long; its sandboxes end with their time limits");
        }
        inner.backends.vanish();
    }
}

impl Provider for E2b {
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
        Box::pin(async move {
            let mut found = self.inner.of_session(session).await?;
            let at = found.iter().position(|sandbox| sandbox.state.is_live()).unwrap_or_default();
            Ok((at < found.len()).then(|| found.swap_remove(at)))
        })
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
            self.inner.held().remove(id);
            Ok(())
        })
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(self.inner.snapshot(id, name))
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
