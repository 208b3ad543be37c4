//! Who uses sandboxes, and whether it lives: of backends of this machine their files tell it, of others a lease that each
//! renews in the cluster. Times are the API server's own, so that clocks that differ make nobody dead.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use gloveport_provider::{
    Lifetime, ProviderError,
    backend::{Backends as Files, Known},
};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::api::DeleteParams;
use tokio::{sync::Mutex as AsyncMutex, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::Cluster,
    names::{self, APP, BACKEND_ROLE, ROLE},
    record::{Record, time},
};

/// How often a backend says that it lives.
const RENEW: Duration = Duration::from_secs(20);
/// How long one may be silent until it is taken for dead.
const SILENT: Duration = Duration::from_secs(90);
/// How long what was read of leases is believed.
const BELIEVED: Duration = Duration::from_secs(5);

/// This backend, and what is known of others.
#[derive(Debug)]
pub(crate) struct Backends {
    files: Files,
    /// Serialises the start of renewal.
    renewal: AsyncMutex<Option<CancellationToken>>,
    /// The backends with a fresh lease, and when that was read.
    fresh: Mutex<Option<(std::time::Instant, HashMap<String, bool>)>>,
}

impl Backends {
    pub(crate) fn new(files: Files) -> Self {
        Self { files, renewal: AsyncMutex::default(), fresh: Mutex::default() }
    }

    /// This backend as a record tells it. From now on it lives in the eyes of others.
    pub(crate) async fn label(&self, cluster: &Arc<Cluster>) -> Result<String, ProviderError> {
        let label = self.files.label()?;
        let mut renewal = self.renewal.lock().await;
        if renewal.is_none() {
            renew(cluster, &self.files.own()?, &label).await?;
            let stop = CancellationToken::new();
            tokio::spawn(renew_always(Arc::downgrade(cluster), self.files.own()?, label.clone(), stop.clone()));
            *renewal = Some(stop);
        }
        Ok(label)
    }

    /// The id of this backend.
    pub(crate) fn own(&self) -> Result<String, ProviderError> {
        self.files.own()
    }

    /// The annotation by which a record tells that this backend uses it.
    pub(crate) fn holder(&self) -> Result<String, ProviderError> {
        Ok(format!("{}{}", names::HOLDER, self.files.own()?))
    }

    /// No longer lives in the eyes of others.
    pub(crate) async fn vanish(&self, cluster: &Cluster) {
        let Some(stop) = self.renewal.lock().await.take() else { return };
        stop.cancel();
        if let Ok(own) = self.files.own()
            && let Err(error) = cluster.delete::<Lease>(&lease_name(&own), &DeleteParams::default()).await
        {
            tracing::debug!(%error, "the lease of this backend is left; it runs out");
        }
        self.files.vanish();
    }

    /// Ends the renewal without telling the cluster, as the death of the process would.
    pub(crate) fn drop_now(&self) {
        if let Ok(mut renewal) = self.renewal.try_lock()
            && let Some(stop) = renewal.take()
        {
            stop.cancel();
        }
    }

    /// Whether the backend of a label lives.
    pub(crate) async fn lives(&self, cluster: &Cluster, label: &str) -> Result<bool, ProviderError> {
        match self.files.known(label) {
            Known::Lives => Ok(true),
            Known::Dead => Ok(false),
            Known::Elsewhere => self.has_fresh_lease(cluster, label).await,
        }
    }

    /// How long a sandbox stays.
    pub(crate) async fn lifetime(&self, cluster: &Cluster, record: &Record) -> Result<Lifetime, ProviderError> {
        if !record.keep {
            return Ok(Lifetime::Backend);
        }
        Ok(match self.holders(cluster, record).await? {
            (false, true) => Lifetime::Orphaned,
            _ => Lifetime::Kept,
        })
    }

    /// Whether any backend that lives holds it, and whether any that is dead did.
    pub(crate) async fn holders(&self, cluster: &Cluster, record: &Record) -> Result<(bool, bool), ProviderError> {
        let (mut living, mut dead) = (false, false);
        for label in &record.holders {
            if self.lives(cluster, label).await? { living = true } else { dead = true }
        }
        Ok((living, dead))
    }

    async fn has_fresh_lease(&self, cluster: &Cluster, label: &str) -> Result<bool, ProviderError> {
        let known = || {
            let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            let (read, leases) = fresh.as_ref().filter(|(read, _)| read.elapsed() < BELIEVED)?;
            let _ = read;
            Some(leases.get(label).copied().unwrap_or(false))
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let leases = leases(cluster).await?;
        let now = cluster.now().await?;
        let of = |lease: &Lease| Some((lease.spec.as_ref()?.holder_identity.clone()?, is_fresh(lease, now)));
        let all: HashMap<String, bool> = leases.iter().filter_map(of).collect();
        let lives = all.get(label).copied().unwrap_or(false);
        *self.fresh.lock().unwrap_or_else(PoisonError::into_inner) = Some((std::time::Instant::now(), all));
        Ok(lives)
    }

    /// Removes the leases of dead backends.
    pub(crate) async fn sweep(&self, cluster: &Cluster) -> Result<(), ProviderError> {
        let now = cluster.now().await?;
        for lease in leases(cluster).await? {
            let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
            let dead = match self.files.known(holder) {
                Known::Lives => false,
                Known::Dead => true,
                Known::Elsewhere => !is_fresh(&lease, now),
            };
            if let Some(name) = lease.metadata.name.filter(|_| dead) {
                cluster.delete::<Lease>(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}

async fn leases(cluster: &Cluster) -> Result<Vec<Lease>, ProviderError> {
    cluster.list(&format!("{}={},{ROLE}={BACKEND_ROLE}", APP.0, APP.1)).await
}

fn lease_name(own: &str) -> String {
    format!("gloveport-backend-{own}")
}

/// Whether the lease was renewed lately, by the clock of the API server.
fn is_fresh(lease: &Lease, now: SystemTime) -> bool {
    let written = lease.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.time.as_ref().map(time));
    let Some(last) = written.max().or_else(|| lease.metadata.creation_timestamp.as_ref().map(time)) else {
        return false;
    };
    // What was written after this answer was asked for is fresh.
    now.duration_since(last).is_ok_and(|silent| silent < SILENT) || last >= now
}

async fn renew(cluster: &Cluster, own: &str, label: &str) -> Result<(), ProviderError> {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(lease_name(own)),
            labels: Some(
                [(APP.0, APP.1), (ROLE, BACKEND_ROLE)].map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(label.to_owned()),
            lease_duration_seconds: i32::try_from(SILENT.as_secs()).ok(),
            // Another one each time: this is what makes the API server write down when it was.
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    cluster.apply(&lease).await.map(drop)
}

async fn renew_always(cluster: Weak<Cluster>, own: String, label: String, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(RENEW) => {}
        }
        let Some(cluster) = cluster.upgrade() else { return };
        let renewed = tokio::select! {
            () = stop.cancelled() => return,
            renewed = renew(&cluster, &own, &label) => renewed,
        };
        if let Err(error) = renewed {
            tracing::warn!(%error, "the lease of this backend was not renewed; others may take it for dead");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_is_fresh_by_the_clock_of_the_api_server_whatever_its_holder_thinks() {
        let lease = |written: &str| -> Lease {
            serde_json::from_value(json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [
                    {"manager": "gloveport", "operation": "Apply", "time": written}]},
                // A minute and more before and after.
                "spec": {"renewTime": "2026-01-01T09:00:00.000000Z"}
            }))
            .unwrap()
        };
        let now: Timestamp = "2026-01-01T10:00:00Z".parse().unwrap();
        for (written, expected) in [
            ("2026-01-01T10:00:00Z", true),
            ("2026-01-01T10:00:01Z", true),
            ("2026-01-01T09:58:31Z", true),
            ("2026-01-01T09:58:30Z", false),
            ("2026-01-01T00:00:00Z", false),
        ] {
            assert_eq!(is_fresh(&lease(written), SystemTime::from(now)), expected, "{written}");
        }
        assert!(!is_fresh(&Lease::default(), SystemTime::from(now)));
    }
}
