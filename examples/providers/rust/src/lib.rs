//! A provider without sandboxes: what a new provider begins with.
//!
//! Copy this crate to `crates/providers`, rename it, and fill in the functions. One line registers it, in
//! `crates/gloveport/src/providers.rs`: `registry.register(Nowhere::NAME, Nowhere::factory);`. From then on all commands
//! know it, and `gloveport provider conformance NAME` says what it still gets wrong. `docs/providers.md` has the contract.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderContext,
    ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId,
};

/// Hosts nothing.
#[derive(Debug)]
pub struct Nowhere;

impl Nowhere {
    /// What people write after `--runtime`.
    pub const NAME: &'static str = "nowhere";

    /// Makes the provider. It connects when it is first used, not here.
    pub fn factory(_context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self))
    }
}

impl Provider for Nowhere {
    fn name(&self) -> &str {
        Self::NAME
    }

    /// Name only what works: everything else is refused before it gets here.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        _progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(async move {
            // Refuses what the specification asks for and this provider cannot do.
            spec.check(self.name(), &self.capabilities())?;
            Err(self.cannot("sandboxes"))
        })
    }

    fn find<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async { Ok(None) })
    }

    fn find_session<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async { Ok(None) })
    }

    fn list<'a>(&'a self, _filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn pause<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { Err(self.cannot("pause and resume")) })
    }

    fn resume<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { Err(self.cannot("pause and resume")) })
    }

    fn delete<'a>(&'a self, _id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(async { Ok(false) })
    }

    fn logs<'a>(&'a self, _id: &'a SandboxId, _options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async { Err(self.cannot("logs")) })
    }

    fn collect_garbage<'a>(&'a self, _options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(async { Ok(GcReport::default()) })
    }

    /// Each thing that the provider needs, for `gloveport doctor`.
    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::PathBuf};

    use gloveport_config::Config;
    use gloveport_provider::Registry;

    use super::*;

    #[tokio::test]
    async fn one_line_registers_it() {
        let mut registry = Registry::new();
        registry.register(Nowhere::NAME, Nowhere::factory);
        let context = ProviderContext {
            config: Config::default(),
            program: PathBuf::new(),
            inside: PathBuf::new(),
            environment: BTreeMap::new(),
            argument: None,
        };
        let provider = registry.make("nowhere", &context).unwrap_or_else(|error| panic!("{error}"));
        let session = SessionId::new("session").unwrap_or_else(|error| panic!("{error}"));
        let made = provider.create(&SandboxSpec::new(session), &Progress::silent()).await;
        let refused = made.map(|sandbox| sandbox.id).map_err(|error| error.to_string());
        let text = "the runtime `nowhere` has no support for sandboxes; see docs/providers.md for what each can do";
        assert_eq!(refused, Err(text.to_owned()));
        assert!(provider.list(&ListFilter::default()).await.is_ok_and(|found| found.is_empty()));
    }
}
