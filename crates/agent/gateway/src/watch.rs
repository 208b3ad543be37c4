//! Finds out what happens to sandboxes, for the hub: one task for all who listen, as long as there are any.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_provider::{ListFilter, Sandbox, SessionId};
use tokio::time::{sleep, timeout};

use crate::{
    fault::Fault,
    hub::{Listener, Seen},
    labels::LABEL,
    shared::Shared,
};

/// Shortest pause between two looks at the engine, also when something is known to have happened.
const SHORTEST: Duration = Duration::from_millis(100);
/// Usual pause, unless the engine wants a longer one.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for the engine to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Pause after it did not.
const AGAIN: Duration = Duration::from_secs(5);
/// Time until the sandboxes that there are are known.
const READY: Duration = Duration::from_secs(15);

/// Somebody listens. Returns when the sandboxes that there are are known, and whatever happens from then on is told.
pub(crate) async fn listen(shared: &Arc<Shared>) -> Result<Listener, Fault> {
    if shared.draining.is_cancelled() {
        return Err(Fault::new(http::StatusCode::SERVICE_UNAVAILABLE, "the gateway ends; try again").passes());
    }
    let (listener, begins) = shared.hub.listen().map_err(|error| {
        tracing::error!(%error, "there are no random numbers");
        Fault::new(http::StatusCode::INTERNAL_SERVER_ERROR, "the gateway could not make an id for the events")
    })?;
    if begins {
        // It ends a while after the last one who listens, and with the gateway.
        drop(tokio::spawn(watch(Arc::clone(shared))));
    }
    let mut ticks = shared.hub.ticks();
    let ready = async {
        while shared.hub.end("").is_none() {
            if ticks.changed().await.is_err() {
                return;
            }
        }
    };
    if timeout(READY, ready).await.is_err() {
        let detail = "the engine does not tell which sandboxes there are; try again";
        let fault = Fault::new(http::StatusCode::SERVICE_UNAVAILABLE, detail).called("engine_unavailable");
        return Err(fault.passes());
    }
    Ok(listener)
}

async fn watch(shared: Arc<Shared>) {
    let pause = shared.provider.poll_interval().max(PAUSE);
    while !shared.draining.is_cancelled() {
        let asked = Instant::now();
        let looked = timeout(LIMIT, look(&shared)).await;
        let next = match looked {
            Ok(Ok(listed)) => {
                shared.hub.compare(listed, asked);
                pause
            }
            Ok(Err(fault)) => {
                tracing::warn!(reason = fault.detail(), "what happens to sandboxes is not seen");
                AGAIN
            }
            Err(_) => {
                tracing::warn!("what happens to sandboxes is not seen: the engine does not answer");
                AGAIN
            }
        };
        if shared.hub.rest(false) {
            return;
        }
        tokio::select! {
            () = sleep(next) => {}
            () = shared.hub.nudged() => sleep(SHORTEST).await,
            () = shared.draining.cancelled() => {}
        }
    }
    shared.hub.rest(true);
}

/// All sandboxes of gateways, those that have ended among them.
async fn look(shared: &Shared) -> Result<Vec<Seen>, Fault> {
    let label = shared.can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned()));
    let filter = ListFilter { labels: label.into_iter().collect(), ended: true };
    let mut seen = Vec::new();
    for sandbox in shared.provider.list(&filter).await? {
        // Whose a sandbox is never changes, and the database need not be asked for each of them again.
        let known = shared.hub.owner(&sandbox);
        seen.extend(match known {
            Some((tenant, session)) => Some(as_seen(&sandbox, tenant, session)),
            None => shared.seen(&sandbox).await?,
        });
    }
    Ok(seen)
}

fn as_seen(sandbox: &Sandbox, tenant: String, session: SessionId) -> Seen {
    let (state, created) = (sandbox.state.clone(), sandbox.created);
    Seen { id: sandbox.id.clone(), tenant, session, state, created }
}

impl Shared {
    async fn seen(&self, sandbox: &Sandbox) -> Result<Option<Seen>, Fault> {
        let owner = self.owner_of(sandbox).await?;
        Ok(owner.map(|(tenant, session)| as_seen(sandbox, tenant, session)))
    }

    /// Tells those who listen of a sandbox that was asked for, if it is new.
    pub(crate) async fn made(&self, sandbox: &Sandbox, is_new: bool) {
        if !is_new {
            self.hub.nudge();
            return;
        }
        // A look at the engine shows it later, if the database does not say now whose it is.
        match self.seen(sandbox).await {
            Ok(Some(seen)) => self.hub.made(seen),
            Ok(None) | Err(_) => self.hub.nudge(),
        }
    }
}
