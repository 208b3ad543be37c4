//! What the database says about sandboxes is compared with what the engine has, again and again: gateways may have died, and
//! sandboxes may have ended or been paused behind their backs.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gloveport_gateway_store::{Place, Session, SessionState};
use gloveport_provider::{ListFilter, Sandbox, SandboxId, SandboxState, SessionId};
use tokio::time::sleep;

use crate::{fault::Fault, identity, labels::LABEL, policy::Asked, shared::Shared, tenancy::Tenancy};

/// Pause between two comparisons.
const PAUSE: Duration = Duration::from_secs(30);
/// Comparisons between two deletions of what is old.
const PRUNE: u32 = 120;
/// What has changed so lately, in milliseconds, may be under way.
const LATELY: i64 = 10_000;

/// Compares until it is dropped.
pub(crate) async fn run(shared: Arc<Shared>) {
    let Some(tenancy) = &shared.tenancy else { return };
    for round in 0_u32.. {
        if let Err(fault) = compare(&shared, tenancy).await {
            tracing::warn!(reason = fault.detail(), "the database was not compared with the engine");
        } else if let Err(fault) = shared.clear_snapshots(tenancy).await {
            tracing::warn!(reason = fault.detail(), "snapshots that nobody has any more are left; this is tried again");
        } else if round.is_multiple_of(PRUNE)
            && let Err(error) = tenancy.store.prune().await
        {
            tracing::warn!(%error, "what is old is left in the database");
        }
        sleep(PAUSE).await;
    }
}

async fn compare(shared: &Shared, tenancy: &Tenancy) -> Result<(), Fault> {
    let store = &tenancy.store;
    let now = store.now().await?;
    let mut rows: Vec<Session> = Vec::new();
    loop {
        let page = store.live(None, rows.last().map_or("", |row| row.id.as_str())).await?;
        let is_last = page.len() < gloveport_gateway_store::MOST_ROWS as usize;
        rows.extend(page);
        if is_last {
            break;
        }
    }
    // After the rows: a sandbox that is in neither was never there.
    let labels = shared.can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned())).into_iter().collect();
    let listed = shared.provider.list(&ListFilter { labels, ended: false }).await?;
    let mut by_id: HashMap<&str, &Sandbox> = listed.iter().map(|it| (it.id.as_str(), it)).collect();
    let mut tenants: HashMap<&str, bool> = HashMap::new();
    for row in &rows {
        let has_tenant = match tenants.get(row.tenant.as_str()) {
            Some(has_tenant) => *has_tenant,
            None => *tenants.entry(&row.tenant).or_insert(store.find_tenant(&row.tenant).await?.is_some()),
        };
        match (row.state, &row.runtime) {
            (SessionState::Running | SessionState::Paused, Some(runtime)) if !has_tenant => {
                by_id.remove(runtime.as_str());
                of_nobody(shared, tenancy, row, runtime).await?;
            }
            (SessionState::Reserved, _) if row.deadline.is_some_and(|deadline| deadline < now) => {
                reserved(shared, tenancy, row, &listed).await?;
            }
            (SessionState::Running | SessionState::Paused, Some(runtime)) => match by_id.remove(runtime.as_str()) {
                Some(sandbox) if now - row.changed > LATELY => turned(tenancy, row, sandbox).await?,
                Some(_) => {}
                None => gone(shared, tenancy, runtime).await?,
            },
            _ => {}
        }
    }
    if !shared.can.labels {
        return Ok(());
    }
    for sandbox in by_id.into_values().filter(|sandbox| sandbox.state.is_live()) {
        let tenant = identity::tenant_of(sandbox);
        if store.find_tenant(tenant).await?.is_none() {
            continue;
        }
        let (session, is_paused) = (identity::session_of(sandbox), sandbox.state == SandboxState::Paused);
        let asked = Asked { image: sandbox.image.clone(), class: None, factor: 1, amounts: None };
        let wants = tenancy.size.wants(session.as_str(), &asked);
        if store.adopt(tenant, &wants, sandbox.id.as_str(), is_paused, &tenancy.gateway).await? {
            tracing::info!(id = %sandbox.id, tenant, "a sandbox that the database did not know is noted");
        }
    }
    Ok(())
}

/// A place whose gateway has died: its sandbox is there, or it never was.
async fn reserved(shared: &Shared, tenancy: &Tenancy, row: &Session, listed: &[Sandbox]) -> Result<(), Fault> {
    let place = Place(row.id.clone());
    let engine = SessionId::new(row.session.as_str()).map_err(|error| Fault::wrong(error.to_string()));
    let engine = engine.and_then(|session| shared.engine_session(&row.tenant, &session))?;
    let is_its = |it: &Sandbox| {
        // The label of a fork tells the session of the sandbox that it was made from.
        let is_called = || identity::tenant_of(it) == row.tenant && identity::session_of(it).as_str() == row.session;
        row.runtime.as_deref() == Some(it.id.as_str()) || it.session_id == engine || (shared.can.labels && is_called())
    };
    let Some(sandbox) = listed.iter().find(|it| is_its(it) && it.state.is_live()) else {
        tenancy.store.released(&place, "its gateway has died").await?;
        return Ok(());
    };
    tracing::info!(id = %sandbox.id, tenant = row.tenant, "a sandbox whose gateway has died is noted");
    tenancy.store.started(&place, sandbox.id.as_str()).await?;
    if sandbox.state == SandboxState::Paused {
        tenancy.store.paused(sandbox.id.as_str()).await?;
    }
    Ok(())
}

/// A sandbox that may have been paused or resumed by somebody else.
async fn turned(tenancy: &Tenancy, row: &Session, sandbox: &Sandbox) -> Result<(), Fault> {
    match (row.state, &sandbox.state) {
        (SessionState::Running, SandboxState::Paused) => tenancy.store.paused(sandbox.id.as_str()).await?,
        (SessionState::Paused, SandboxState::Running) => tenancy.store.goes_on(sandbox.id.as_str()).await?,
        _ => {}
    }
    Ok(())
}

/// A sandbox whose tenant was deleted ends.
async fn of_nobody(shared: &Shared, tenancy: &Tenancy, row: &Session, runtime: &str) -> Result<(), Fault> {
    const WHY: &str = "its tenant was deleted";
    let deleted = match SandboxId::new(runtime) {
        Ok(id) => {
            shared.known.forget(&id);
            shared.provider.delete(&id).await
        }
        Err(_) => Ok(false),
    };
    if let Err(error) = deleted {
        tracing::warn!(id = runtime, %error, "a sandbox whose tenant was deleted is left; this is tried again");
        return Ok(());
    }
    tracing::info!(id = runtime, tenant = row.tenant, "a sandbox whose tenant was deleted has ended");
    tenancy.store.ended(runtime, WHY).await?;
    tenancy.audit.by_gateway("stop", Some(row.tenant.clone()), runtime, None, Ok(Some(WHY)));
    Ok(())
}

/// A sandbox that was not listed: it has ended unless it is found all the same.
async fn gone(shared: &Shared, tenancy: &Tenancy, runtime: &str) -> Result<(), Fault> {
    let found = match SandboxId::new(runtime) {
        Ok(id) => shared.provider.find(&id).await?,
        Err(_) => None,
    };
    if !found.is_some_and(|sandbox| sandbox.state.is_live()) {
        tenancy.store.ended(runtime, "the sandbox is gone").await?;
    }
    Ok(())
}
