//! A sandbox that a command makes for itself, and that ends with the command unless it is to be kept.

use std::{sync::Arc, time::Duration};

use gloveport_provider::{Provider, Sandbox, SandboxSpec};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    launch::{Launch, launch},
    report::Report,
};
use crate::output::tell;

/// How long it has to come to life, and how long its removal may take.
const START: Duration = Duration::from_mins(10);
const REMOVAL: Duration = Duration::from_secs(30);

/// A sandbox, and who hosts it.
pub(super) struct Own {
    provider: Arc<dyn Provider>,
    pub(super) sandbox: Sandbox,
}

impl Own {
    /// Makes it, unless that is given up.
    pub(super) async fn make(
        provider: Arc<dyn Provider>,
        spec: &SandboxSpec,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let report = Report::new(false);
        let launching = Launch { until_alive: true, limit: START, stop };
        let launched = launch(&*provider, spec, &report.progress(), &launching).await;
        report.clear();
        match launched {
            Ok(sandbox) => Ok(Self { provider, sandbox }),
            Err(error) => {
                provider.close().await;
                Err(error)
            }
        }
    }

    /// Leaves it to itself, and tells that with the reason.
    pub(super) async fn leave(&self, because: &str) {
        let session = &self.sandbox.session_id;
        if let Err(error) = self.provider.release(&self.sandbox.id).await {
            tracing::warn!("the session `{session}` keeps running, but may be mistaken for an orphan: {error}");
        }
        self.provider.close().await;
        tell(&format!(
            "note: the session `{session}` goes on ({because}); remove it with `gloveport session rm -f {session}`"
        ));
    }

    /// Deletes it. It lives as long as we do anyway; so what fails here is no failure of the command.
    pub(super) async fn delete(&self) {
        let deleted = timeout(REMOVAL, async {
            let deleted = self.provider.delete(&self.sandbox.id).await;
            self.provider.close().await;
            deleted
        });
        let id = &self.sandbox.id;
        match deleted.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!("the sandbox `{id}` is left behind: {error}"),
            Err(_) => tracing::warn!("the sandbox `{id}` is still being deleted; see `gloveport session gc`"),
        }
    }
}
