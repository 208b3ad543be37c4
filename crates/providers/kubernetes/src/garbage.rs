//! What nobody wants any more.

use std::time::SystemTime;

use gloveport_provider::{GcOptions, GcReport, Lifetime, ProviderError, Removed, SandboxState};
use k8s_openapi::api::core::v1::Pod;

use crate::{inner::Inner, record::Record, view};

impl Inner {
    pub(crate) async fn collect_garbage(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut report = GcReport::default();
        let now = self.cluster.now().await?;
        for (record, pod) in self.all().await? {
            let Some(reason) = self.why_garbage(&record, pod.as_ref(), options, now).await? else { continue };
            if !options.dry_run {
                // Whoever began to use it meanwhile has said so.
                let Some(again) = self.record(&record.id).await?.filter(|again| again.uid == record.uid) else {
                    continue;
                };
                let pod = self.pod(&again).await?;
                if self.why_garbage(&again, pod.as_ref(), options, now).await?.is_none() {
                    continue;
                }
                if let Err(error) = self.remove(&again).await {
                    report.failed.push(error.to_string());
                    continue;
                }
                self.forget(&record.id);
            }
            report.removed.push(Removed {
                id: Some(record.id),
                session_id: Some(record.session),
                path: None,
                reason: reason.to_owned(),
            });
        }
        for swept in [self.sweep_pools(options.dry_run).await, self.sweep_forks(options.dry_run).await] {
            match swept {
                Ok(removed) => report.removed.extend(removed),
                Err(error) => report.failed.push(error.to_string()),
            }
        }
        if !options.dry_run
            && let Err(error) = self.backends.sweep(&self.cluster).await
        {
            report.failed.push(error.to_string());
        }
        Ok(report)
    }

    async fn why_garbage(
        &self,
        record: &Record,
        pod: Option<&Pod>,
        options: &GcOptions,
        now: SystemTime,
    ) -> Result<Option<&'static str>, ProviderError> {
        if record.ends {
            // The cluster removes it.
            return Ok(None);
        }
        let state = view::state(record, pod);
        if matches!(state, SandboxState::Stopped(_) | SandboxState::Failed(_)) {
            return Ok(Some("it has ended"));
        }
        if record.expires().is_some_and(|expires| expires <= now) {
            return Ok(Some("its time is over"));
        }
        let lives = self.backends.lives(&self.cluster, &record.backend).await?;
        let incomplete = record.address.is_none();
        if (!record.keep || incomplete) && !lives {
            return Ok(Some("its backend has died"));
        }
        if !record.keep {
            return Ok(None);
        }
        match self.backends.lifetime(&self.cluster, record).await? {
            Lifetime::Orphaned => Ok(Some("its backend has died")),
            _ if options.all && !lives && !self.backends.holders(&self.cluster, record).await?.0 => {
                Ok(Some("no living backend holds it"))
            }
            _ => Ok(None),
        }
    }
}
