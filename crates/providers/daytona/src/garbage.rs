//! Removes what nobody wants any more, as labels tell it.

use std::collections::BTreeSet;

use gloveport_hosted::garbage::reason;
use gloveport_provider::{GcOptions, GcReport, ListFilter, ProviderError, Removed, Sandbox};

use crate::{
    inner::Inner,
    names::{self, FORK},
};

impl Inner {
    pub(crate) async fn collect(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut report = GcReport::default();
        // Snapshots first: one of a fork that is made meanwhile is then not among them.
        let snapshots = self.control.snapshots().await?;
        let mut used = BTreeSet::new();
        for sandbox in self.list(&ListFilter { ended: true, ..ListFilter::default() }).await? {
            // Lists do not tell who made it.
            let Some(told) = self.control.get(sandbox.id.as_str()).await? else { continue };
            let Some(labelled) = names::labelled(&told) else { continue };
            let record = labelled.record;
            let Some(reason) = reason(&self.backend, &sandbox, &record.backend, options) else {
                used.extend(record.fork);
                continue;
            };
            if !options.dry_run
                && let Err(error) = self.delete(&sandbox.id).await
            {
                used.extend(record.fork);
                report.failed.push(format!("{}: {}", sandbox.id, gloveport_client::causes(&error)));
                continue;
            }
            let Sandbox { id, session_id, .. } = sandbox;
            let (id, session_id) = (Some(id), Some(session_id));
            report.removed.push(Removed { id, session_id, path: None, reason: reason.to_owned() });
        }
        for snapshot in snapshots.into_iter().filter(|it| it.name.starts_with(FORK) && !used.contains(&it.name)) {
            if !options.dry_run {
                match self.control.delete_snapshot(&snapshot.id).await {
                    Ok(true) => {}
                    // It went with its sandbox.
                    Ok(false) => continue,
                    Err(error) => {
                        report.failed.push(format!("{}: {}", snapshot.name, gloveport_client::causes(&error)));
                        continue;
                    }
                }
            }
            let reason = "the fork that it was made for is gone".to_owned();
            report.removed.push(Removed { id: None, session_id: None, path: Some(snapshot.name.into()), reason });
        }
        Ok(report)
    }
}
