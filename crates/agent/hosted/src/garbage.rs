//! Why a sandbox is one that nobody wants, and what is removed.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use gloveport_provider::{
    GcOptions, GcReport, Lifetime, ProviderError, Removed, Sandbox, SandboxState, backend::Known,
};

use crate::backend::Backend;

/// Time that a sandbox has beyond what its label says: that begins before our program is there.
const GRACE: Duration = Duration::from_mins(1);

/// Why a sandbox that a backend with this label has made is garbage; none if it is not.
pub fn reason(backend: &Backend, sandbox: &Sandbox, label: &str, options: &GcOptions) -> Option<&'static str> {
    let is_kept = sandbox.lifetime == Lifetime::Kept;
    match &sandbox.state {
        state if !state.is_live() => return Some("it has ended"),
        // It may be found out later.
        SandboxState::Unknown(_) => return None,
        _ => {}
    }
    let is_over = sandbox.expires.is_some_and(|at| at + GRACE <= SystemTime::now());
    if is_over && (is_kept || sandbox.state == SandboxState::Paused) {
        return Some("its time is over");
    }
    match backend.backends.known(label) {
        Known::Dead if !is_kept => Some("its backend has died"),
        // Who holds a sandbox that was kept is told to nobody.
        _ if is_kept && options.all && !backend.held().contains(&sandbox.id) => {
            Some("it was kept, and nobody can tell who uses it")
        }
        Known::Lives | Known::Dead | Known::Elsewhere => None,
    }
}

/// What is removed, or would be.
#[derive(Debug)]
pub struct Collection {
    dry_run: bool,
    /// What came of it so far.
    pub report: GcReport,
}

impl Collection {
    /// One that has removed nothing yet.
    pub fn new(options: &GcOptions) -> Self {
        Self { dry_run: options.dry_run, report: GcReport::default() }
    }

    /// Removes a sandbox for this reason by this work, unless nothing is to be removed. Whether it is gone, or would be.
    pub async fn sandbox<T>(
        &mut self,
        sandbox: &Sandbox,
        reason: &str,
        delete: impl Future<Output = Result<T, ProviderError>>,
    ) -> bool {
        if !self.dry_run
            && let Err(error) = delete.await
        {
            self.report.failed.push(format!("{}: {}", sandbox.id, gloveport_client::causes(&error)));
            return false;
        }
        let (id, session_id) = (Some(sandbox.id.clone()), Some(sandbox.session_id.clone()));
        self.report.removed.push(Removed { id, session_id, path: None, reason: reason.to_owned() });
        true
    }

    /// Removes the snapshot of a fork that is gone, by this work, which says whether it was still there. The service calls it
    /// `id`, and people `path`.
    pub async fn snapshot(
        &mut self,
        id: &str,
        path: Option<PathBuf>,
        delete: impl Future<Output = Result<bool, ProviderError>>,
    ) {
        if !self.dry_run {
            match delete.await {
                Ok(true) => {}
                // It went with its sandbox.
                Ok(false) => return,
                Err(error) => {
                    self.report.failed.push(format!("{id}: {}", gloveport_client::causes(&error)));
                    return;
                }
            }
        }
        let reason = "the fork that it was made for is gone".to_owned();
        self.report.removed.push(Removed { id: None, session_id: None, path, reason });
    }
}
