//! Paused sandboxes that go on because somebody asks for them.

use std::{net::IpAddr, sync::Arc, time::Duration};

use gloveport_gateway_store::StoreError;
use gloveport_hosting::WaitOptions;
use gloveport_provider::{Progress, SandboxId, SandboxState};
use tokio::{sync::watch, time::timeout};

use crate::shared::Shared;

/// Longest wait for a sandbox to go on.
const LIMIT: Duration = Duration::from_mins(1);

/// Resumes a sandbox, and waits until its server answers or it is clear that it does not. However many ask, it is resumed
/// once; and it goes on when all of them have gone. The audit log has the address of the first.
pub(crate) async fn wake(shared: &Arc<Shared>, id: &SandboxId, client: Option<IpAddr>) {
    let mut done = {
        let mut waking = shared.waking.lock();
        if let Some(done) = waking.get(id) {
            done.clone()
        } else {
            let (end, done) = watch::channel(());
            waking.insert(id.clone(), done.clone());
            let (shared, id) = (Arc::clone(shared), id.clone());
            // It ends by its limit, and those who wait hear of it by the end of `end`.
            drop(tokio::spawn(async move {
                let resumed = timeout(LIMIT, resume(&shared, &id)).await;
                let woken = resumed.unwrap_or_else(|_| Err("it took too long".to_owned()));
                if let Err(reason) = &woken {
                    tracing::warn!(%id, reason, "a paused sandbox could not be woken");
                }
                if woken != Ok(Woken::Before) {
                    note(&shared, &id, client, woken.err()).await;
                }
                shared.known.forget(&id);
                shared.waking.lock().remove(&id);
                drop(end);
            }));
            done
        }
    };
    // Nothing is ever sent: the end of the sender is what is waited for.
    let _ended = timeout(LIMIT, done.changed()).await;
}

/// Whether a sandbox rested.
#[derive(PartialEq, Eq)]
enum Woken {
    Now,
    /// Somebody else was faster.
    Before,
}

async fn resume(shared: &Shared, id: &SandboxId) -> Result<Woken, String> {
    let found = shared.provider.find(id).await.map_err(|error| error.to_string())?;
    if found.is_some_and(|sandbox| sandbox.state != SandboxState::Paused) {
        return Ok(Woken::Before);
    }
    shared.metrics.woke();
    has_place(shared, id).await?;
    let resumed = shared.provider.resume(id).await;
    shared.hub.nudge();
    if resumed.is_err() {
        shared.noted(async |store| store.paused(id.as_str()).await).await;
    }
    resumed.map_err(|error| error.to_string())?;
    let sandbox = shared.provider.find(id).await.map_err(|error| error.to_string())?;
    let sandbox = sandbox.ok_or("it is gone")?;
    let options = WaitOptions { limit: LIMIT, ..WaitOptions::default() };
    let silent = Progress::silent();
    let alive = gloveport_hosting::wait_until_alive(&*shared.provider, sandbox, &options, &silent).await;
    alive.map(|_| Woken::Now).map_err(|error| error.to_string())
}

/// Writes a line of the audit log of the tenant whose sandbox it is.
async fn note(shared: &Shared, id: &SandboxId, client: Option<IpAddr>, failure: Option<String>) {
    let Some(tenancy) = &shared.tenancy else { return };
    let row = tenancy.store.of_runtime(id.as_str()).await.ok().flatten();
    let outcome = failure.map_or(Ok(None), Err);
    tenancy.audit.by_gateway("wake", row.map(|row| row.tenant), id.as_str(), client, outcome);
}

/// Counts a sandbox as running for its tenant, if that one may have it so.
async fn has_place(shared: &Shared, id: &SandboxId) -> Result<(), String> {
    let Some(tenancy) = &shared.tenancy else { return Ok(()) };
    let (store, told) = (&tenancy.store, |error: StoreError| error.to_string());
    let Some(row) = store.of_runtime(id.as_str()).await.map_err(told)? else { return Ok(()) };
    if store.find_tenant(&row.tenant).await.map_err(told)?.is_none_or(|tenant| tenant.disabled) {
        return Err(format!("the tenant `{}` is disabled or gone", row.tenant));
    }
    match store.resuming(&row.tenant, id.as_str()).await.map_err(told)? {
        None => Ok(()),
        Some(refusal) => Err(refusal.to_string()),
    }
}
