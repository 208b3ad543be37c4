//! Removes what nobody wants any more, as labels tell it.

use std::collections::{BTreeMap, BTreeSet};

use gloveport_hosted::garbage::{Collection, reason};
use gloveport_provider::{GcOptions, GcReport, ListFilter, ProviderError};

use crate::{
    inner::Inner,
    names::{LABELS, is_of_fork},
};

impl Inner {
    pub(crate) async fn collect(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut collection = Collection::new(options);
        // Snapshots first: one of a fork that is made meanwhile is then not among them.
        let snapshots = self.control.snapshots().await?;
        let (mut used, told) = (BTreeSet::new(), self.control.list(&BTreeMap::new()).await?);
        let mut records: BTreeMap<_, _> = told
            .into_iter()
            .filter_map(|told| Some((LABELS.read(told.metadata.as_ref())?, told.id)))
            .map(|(labelled, id)| (id, labelled.record))
            .collect();
        for sandbox in self.list(&ListFilter { ended: true, ..ListFilter::default() }).await? {
            let Some(record) = records.remove(&sandbox.id) else { continue };
            let Some(reason) = reason(&self.backend, &sandbox, &record.backend, options) else {
                used.extend(record.fork);
                continue;
            };
            if !collection.sandbox(&sandbox, reason, self.delete(&sandbox.id)).await {
                used.extend(record.fork);
            }
        }
        used.extend(records.into_values().filter_map(|record| record.fork));
        for snapshot in
            snapshots.into_iter().filter(|snapshot| is_of_fork(&snapshot.names) && !used.contains(&snapshot.id))
        {
            let path = snapshot.names.into_iter().next().map(Into::into);
            collection.snapshot(&snapshot.id, path, self.control.delete_snapshot(&snapshot.id)).await;
        }
        Ok(collection.report)
    }
}
