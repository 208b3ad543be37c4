//! Removes what nobody wants any more, as labels tell it.

use std::collections::BTreeSet;

use gloveport_hosted::garbage::{Collection, reason};
use gloveport_provider::{GcOptions, GcReport, ListFilter, ProviderError};

use crate::{
    inner::Inner,
    names::{self, FORK},
};

impl Inner {
    pub(crate) async fn collect(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut collection = Collection::new(options);
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
            if !collection.sandbox(&sandbox, reason, self.delete(&sandbox.id)).await {
                used.extend(record.fork);
            }
        }
        for snapshot in snapshots.into_iter().filter(|it| it.name.starts_with(FORK) && !used.contains(&it.name)) {
            let path = Some(snapshot.name.clone().into());
            collection.snapshot(&snapshot.name, path, self.control.delete_snapshot(&snapshot.id)).await;
        }
        Ok(collection.report)
    }
}
