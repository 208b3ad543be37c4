//! Removes what nobody wants any more, as tags tell it. Images are not among it: each ends by itself.

use gloveport_hosted::garbage::{Collection, reason};
use gloveport_provider::{GcOptions, GcReport, ListFilter, ProviderError};

use crate::inner::Inner;

impl Inner {
    pub(crate) async fn collect(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut collection = Collection::new(options);
        for sandbox in self.list(&ListFilter { ended: true, ..ListFilter::default() }).await? {
            let Some(labelled) = self.labelled(&sandbox.id).await? else { continue };
            let Some(reason) = reason(&self.backend, &sandbox, &labelled.record.backend, options) else { continue };
            collection.sandbox(&sandbox, reason, self.delete(&sandbox.id)).await;
        }
        Ok(collection.report)
    }
}
