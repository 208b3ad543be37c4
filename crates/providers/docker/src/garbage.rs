//! What nobody wants any more.

use std::time::SystemTime;

use gloveport_provider::{GcOptions, GcReport, Lifetime, ProviderError, Removed, SandboxState};

use crate::{inner::Inner, view::Container};

impl Inner {
    pub(crate) async fn collect_garbage(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut report = GcReport::default();
        let all = self.containers(true).await?;
        let used = all.iter().filter_map(|found| found.network.clone()).collect();
        let logs = all.iter().filter_map(|found| found.audit.clone()).collect();
        for found in all {
            let Some(reason) = self.why_garbage(&found, options) else { continue };
            let Container { engine_id, sandbox, .. } = found;
            if !options.dry_run {
                // Whoever began to use it meanwhile has said so.
                let now = self.container(&engine_id).await?;
                if now.is_none_or(|now| self.why_garbage(&now, options).is_none()) {
                    continue;
                }
                if let Err(error) = self.delete(&sandbox.id).await {
                    report.failed.push(error.to_string());
                    continue;
                }
            }
            report.removed.push(Removed {
                id: Some(sandbox.id),
                session_id: Some(sandbox.session_id),
                path: None,
                reason: reason.to_owned(),
            });
        }
        for (engine_id, name) in self.left_warm().await? {
            if !options.dry_run {
                self.end_container(&engine_id).await;
            }
            let reason = format!("the backend that started `{name}` ahead has died");
            report.removed.push(Removed { id: None, session_id: None, path: None, reason });
        }
        for record in self.left_records().await? {
            if !options.dry_run {
                self.forget_record(&record).await?;
            }
            let reason = format!("the container {record} of a record is gone");
            report.removed.push(Removed { id: None, session_id: None, path: None, reason });
        }
        // What is left of sandboxes of which only that is left.
        for (network, name) in self.left_networks(&used).await? {
            if !options.dry_run
                && let Err(error) = self.remove_closed(&network).await
            {
                report.failed.push(error.to_string());
                continue;
            }
            let reason = format!("the closed network `{name}` has no sandbox");
            report.removed.push(Removed { id: None, session_id: None, path: None, reason });
        }
        for (volume, session) in self.left_audits(&logs).await? {
            if !options.dry_run
                && let Err(error) = self.collect_audit(&volume, &session).await
            {
                report.failed.push(error.to_string());
                continue;
            }
            let reason = format!("the sandbox of the audit log `{volume}` is gone; the log is in its file");
            report.removed.push(Removed { id: None, session_id: Some(session), path: None, reason });
        }
        Ok(report)
    }

    fn why_garbage(&self, found: &Container, options: &GcOptions) -> Option<&'static str> {
        // What others have made by the names of OpenHands is theirs.
        let backend = found.backend.as_deref()?;
        let sandbox = &found.sandbox;
        if matches!(sandbox.state, SandboxState::Stopped(_) | SandboxState::Failed(_)) {
            return Some("it has ended");
        }
        if sandbox.expires.is_some_and(|expires| expires <= SystemTime::now()) {
            return Some("its time is over");
        }
        let made_by_dead = !self.holders.lives(backend);
        match sandbox.lifetime {
            Lifetime::Backend => made_by_dead.then_some("its backend has died"),
            _ if sandbox.state == SandboxState::Pending => made_by_dead.then_some("its backend has died"),
            Lifetime::Orphaned => Some("its backend has died"),
            Lifetime::Kept => {
                let (held, _) = self.holders.holders(&found.engine_id);
                (options.all && !held).then_some("no living backend holds it")
            }
        }
    }
}
