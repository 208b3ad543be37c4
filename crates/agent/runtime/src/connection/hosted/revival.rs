//! A paused sandbox comes back (remote-runtime-api 3.2, resume procedure).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::{Progress, Provider, SandboxId};
use tokio::sync::Mutex;

use super::engine::Engine;
use crate::{
    InitialEnvironment, RuntimeError, RuntimeStatus, StatusLevel, StatusReporter, connection::over_http::OverHttp,
};

/// All that a paused sandbox needs to come back.
pub(super) struct Revival {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) engine: Engine,
    pub(super) id: SandboxId,
    pub(super) status: Arc<StatusReporter>,
    /// What is set up again; nothing in a sandbox that the session is attached to.
    pub(super) environment: Option<Arc<InitialEnvironment>>,
    /// The sandbox without recovery: the action that failed waits meanwhile, and holds the place of the one action
    /// that may be in flight.
    pub(super) sandbox: OverHttp,
    pub(super) wait: WaitOptions,
    /// How often it came back.
    pub(super) count: AtomicU64,
    /// Held while it comes back.
    pub(super) reviving: Mutex<()>,
}

impl Revival {
    /// Resumes it, waits for its server, and sets its environment up again. Where somebody else is already at it, the
    /// work of that one counts.
    pub(super) async fn revive(&self) -> Result<(), RuntimeError> {
        let seen = self.count.load(Ordering::Acquire);
        let _alone = self.reviving.lock().await;
        if self.count.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        self.revive_alone().await?;
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    async fn revive_alone(&self) -> Result<(), RuntimeError> {
        self.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
        self.provider.resume(&self.id).await?;
        let found = self.provider.find(&self.id).await?;
        let sandbox = found
            .ok_or_else(|| RuntimeError::NotFound(format!("the sandbox `{}` does not exist any more", self.id)))?;
        let waited = wait_until_alive(&*self.provider, sandbox, &self.wait, &Progress::silent()).await;
        waited.map_err(|error| self.engine.not_alive(error))?;
        if let Some(environment) = &self.environment {
            environment.set_up(&self.sandbox).await?;
        }
        self.status.set(StatusLevel::Info, RuntimeStatus::Ready, "");
        Ok(())
    }
}
