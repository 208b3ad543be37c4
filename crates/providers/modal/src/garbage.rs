//! Removes what nobody wants any more, as tags tell it. Images are not among it: each ends by itself.

use gloveport_hosted::garbage::reason;
use gloveport_provider::{GcOptions, GcReport, ListFilter, ProviderError, Removed, Sandbox};

use crate::inner::Inner;

impl Inner {
    pub(crate) async fn collect(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut report = GcReport::default();
        for sandbox in self.list(&ListFilter { ended: true, ..ListFilter::default() }).await? {
            let Some(labelled) = self.labelled(&sandbox.id).await? else { continue };
            let Some(reason) = reason(&self.backend, &sandbox, &labelled.record.backend, options) else { continue };
            if !options.dry_run
                && let Err(error) = self.delete(&sandbox.id).await
            {
                report.failed.push(format!("{}: {}", sandbox.id, gloveport_client::causes(&error)));
                continue;
            }
            let Sandbox { id, session_id, .. } = sandbox;
            let (id, session_id) = (Some(id), Some(session_id));
            report.removed.push(Removed { id, session_id, path: None, reason: reason.to_owned() });
        }
        Ok(report)
    }
}
