//! Snapshots of tenants: how many, whose, and what the engine calls them.
//!
//! With a database the names at the engine cannot be guessed, and the database says whose they are. Without one there is one
//! tenant, whose snapshots have names of their own form at the engine, so that it does not see those of other users of it.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use gloveport_gateway_store::{KeptSnapshot, SnapshotPlace, Store};
use gloveport_provider::{Sandbox, Snapshot};
use http::StatusCode;

use crate::{
    fault::Fault,
    identity::Identity,
    policy,
    shared::Shared,
    tenancy::{Tenancy, refused},
};

/// How long a snapshot takes at most. What is not there by then is looked for.
const LIMIT: Duration = Duration::from_hours(1);
/// What names begin with at the engine without a database.
const PREFIX: &str = "gateway-";
/// Most that are listed.
const MOST: usize = gloveport_provider::MOST_SNAPSHOTS;

impl Shared {
    /// Keeps the files of a sandbox as an image. Once begun it is done to the end, though the client may go.
    pub(crate) async fn keep_as(self: &Arc<Self>, who: &Identity, of: &Sandbox, name: &str) -> Result<String, Fault> {
        if !self.can.snapshots {
            return Err(self.provider.cannot("snapshots").into());
        }
        if let Some(tenancy) = &self.tenancy {
            match tenancy.store.reserve_snapshot(who.name(), name, of.session_id.as_str(), LIMIT).await? {
                SnapshotPlace::Made => {}
                SnapshotPlace::There => {
                    return Err(Fault::wrong(format!("there is a snapshot `{name}` already; take another name")));
                }
                SnapshotPlace::Refused(refusal) => return Err(policy::used_up(&refusal)),
                SnapshotPlace::NoTenant => return Err(refused()),
            }
        }
        let (shared, tenant, id, name) = (Arc::clone(self), who.name().to_owned(), of.id.clone(), name.to_owned());
        let made = tokio::spawn(async move {
            let made = shared.provider.snapshot(&id, &shared.snapshot_name(&tenant, &name)).await;
            let mut is_kept = true;
            let note = async |store: &Store| match &made {
                Ok(image) => {
                    is_kept = store.snapshot_made(&tenant, &name, image).await?;
                    Ok(())
                }
                Err(_) => store.forget_snapshot(&tenant, &name).await,
            };
            shared.noted(note).await;
            // Its tenant was deleted meanwhile.
            if let (Ok(image), false) = (&made, is_kept)
                && let Err(error) = shared.provider.delete_snapshot(image).await
            {
                tracing::warn!(image, %error, "a snapshot of a deleted tenant is left");
            }
            made
        });
        let gone = |_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the snapshot could not be made");
        Ok(made.await.map_err(gone)??)
    }

    /// The engine's name of a snapshot.
    fn snapshot_name(&self, tenant: &str, name: &str) -> String {
        match &self.tenancy {
            Some(tenancy) => format!("gps-{}", tenancy.store.digest(&format!("{tenant}/snapshot/{name}"))),
            None => format!("{PREFIX}{name}"),
        }
    }

    /// The snapshots of the tenant by name.
    pub(crate) async fn snapshots(&self, who: &Identity) -> Result<Vec<Snapshot>, Fault> {
        let Some(tenancy) = &self.tenancy else {
            let mut own: Vec<Snapshot> = self.provider.snapshots().await?.into_iter().filter_map(own).collect();
            own.sort_by(|one, other| one.name.cmp(&other.name));
            return Ok(own);
        };
        if !self.can.snapshots {
            return Err(self.provider.cannot("snapshots").into());
        }
        let mut all: Vec<Snapshot> = Vec::new();
        while all.len() < MOST {
            let page = tenancy.store.snapshots(who.name(), all.last().map_or("", |last| &last.name)).await?;
            if page.is_empty() {
                break;
            }
            all.extend(page.into_iter().filter_map(told));
        }
        all.truncate(MOST);
        Ok(all)
    }

    /// Deletes a snapshot of the tenant; `false` if it has none of this name at the engine.
    pub(crate) async fn delete_snapshot(&self, who: &Identity, image: &str) -> Result<bool, Fault> {
        let Some(tenancy) = &self.tenancy else {
            let is_own = self.provider.snapshots().await?.into_iter().filter_map(own).any(|it| it.image == image);
            return Ok(is_own && self.provider.delete_snapshot(image).await?);
        };
        let kept = tenancy.store.snapshot_of(image).await?.filter(|kept| kept.tenant == who.name());
        let Some(kept) = kept else { return Ok(false) };
        // One that the engine does not have any more was deleted there.
        self.provider.delete_snapshot(image).await?;
        tenancy.store.forget_snapshot(&kept.tenant, &kept.name).await?;
        Ok(true)
    }

    /// Whether an image is a snapshot of this tenant; those of others are refused.
    pub(crate) async fn is_own_snapshot(&self, who: &Identity, image: &str) -> Result<bool, Fault> {
        let Some(tenancy) = self.tenancy.as_ref().filter(|_| self.can.snapshots && !image.is_empty()) else {
            return Ok(false);
        };
        match tenancy.store.snapshot_of(image).await? {
            Some(kept) if kept.tenant == who.name() => Ok(true),
            Some(_) => Err(Fault::new(StatusCode::FORBIDDEN, "the image is another tenant's")),
            None => Ok(false),
        }
    }

    /// Looks after snapshots whose gateway has died, and those of tenants that are no more.
    pub(crate) async fn clear_snapshots(&self, tenancy: &Tenancy) -> Result<(), Fault> {
        for KeptSnapshot { tenant, name, image, .. } in tenancy.store.abandoned_snapshots().await? {
            let is_known = tenancy.store.find_tenant(&tenant).await?.is_some();
            let found = match &image {
                Some(image) => Some(image.clone()),
                None => self.made_meanwhile(&tenant, &name).await?,
            };
            match found {
                Some(image) if is_known => {
                    tracing::info!(tenant, name, "a snapshot whose gateway has died is noted");
                    tenancy.store.snapshot_made(&tenant, &name, &image).await?;
                    continue;
                }
                Some(image) => {
                    if let Err(error) = self.provider.delete_snapshot(&image).await {
                        tracing::warn!(image, %error, "a snapshot of a deleted tenant is left; this is tried again");
                        continue;
                    }
                    tracing::info!(image, "a snapshot of a deleted tenant was deleted");
                }
                None => {}
            }
            tenancy.store.forget_snapshot(&tenant, &name).await?;
        }
        Ok(())
    }

    /// What the engine calls a snapshot that it has, though nobody has noted it.
    async fn made_meanwhile(&self, tenant: &str, name: &str) -> Result<Option<String>, Fault> {
        let wanted = self.snapshot_name(tenant, name);
        Ok(self.provider.snapshots().await?.into_iter().find(|it| it.name == wanted).map(|it| it.image))
    }
}

/// A snapshot of a gateway without a database, under the name that it was asked for.
fn own(snapshot: Snapshot) -> Option<Snapshot> {
    let name = snapshot.name.strip_prefix(PREFIX)?.to_owned();
    Some(Snapshot { name, ..snapshot })
}

fn told(kept: KeptSnapshot) -> Option<Snapshot> {
    let created = UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(kept.created).ok()?));
    Some(Snapshot { image: kept.image?, name: kept.name, session: Some(kept.session), created })
}
