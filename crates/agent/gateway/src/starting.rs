//! Requests for sandboxes, each in a task of its own, and one after another for each session: a client that goes away before it
//! has its answer leaves nothing behind, and one that asks again finds what is there, or nothing.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use gloveport_provider::{Sandbox, SandboxId};
use http::StatusCode;
use serde::Serialize;
use tokio::{sync::oneshot, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{delivery, fault::Fault, held::Untold, identity::Identity, shared::Shared, tenancy::Started};

/// Longest wait for an earlier request of the same session.
const TURN: Duration = Duration::from_mins(2);
/// Time for a client to take its answer.
const DELIVERY: Duration = Duration::from_secs(30);

/// Who asks for a sandbox of which session, and what that is called in the audit log.
pub(crate) struct Ask {
    pub(crate) who: Identity,
    pub(crate) session: String,
    /// What it is done to, for the audit log.
    pub(crate) target: String,
    pub(crate) action: &'static str,
}

/// A sandbox, as its client is told of it: JSON, and the status.
pub(crate) type Said = (StatusCode, Vec<u8>);

/// The answer to a request for a sandbox, which `make` makes or finds, and `say` tells. Should the caller end before, what was
/// made for it is taken back. `make` gets the id of what an earlier request of the session has left, whose client was not told.
pub(crate) async fn answer<M, S>(
    shared: &Arc<Shared>,
    ask: Ask,
    make: impl FnOnce(Arc<Shared>, Identity, Option<SandboxId>) -> M + Send + 'static,
    say: impl FnOnce(Sandbox, bool) -> S + Send + 'static,
) -> Result<Response, Fault>
where
    M: Future<Output = Result<Started, Fault>> + Send + 'static,
    S: Future<Output = Result<Said, Fault>> + Send + 'static,
{
    let (tell, told) = oneshot::channel();
    let gone = CancellationToken::new();
    let task = run(Arc::clone(shared), ask, (make, say), tell, gone.clone());
    // It ends with its limits, and is waited for at the end of the gateway.
    shared.turns.spawn(task.in_current_span());
    let guard = gone.drop_guard();
    let panicked = |_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the sandbox could not be started");
    let answer = told.await.map_err(panicked)?;
    guard.disarm();
    answer
}

/// The JSON of an answer.
pub(crate) fn said(status: StatusCode, told: &impl Serialize) -> Result<Said, Fault> {
    Ok((status, serde_json::to_vec(told).map_err(|error| Fault::unsaid(&error))?))
}

async fn run<M, S>(
    shared: Arc<Shared>,
    Ask { who, session, target, action }: Ask,
    (make, say): (impl FnOnce(Arc<Shared>, Identity, Option<SandboxId>) -> M, impl FnOnce(Sandbox, bool) -> S),
    tell: oneshot::Sender<Result<Response, Fault>>,
    gone: CancellationToken,
) where
    M: Future<Output = Result<Started, Fault>>,
    S: Future<Output = Result<Said, Fault>>,
{
    // A request whose client has gone waits for its turn all the same: something may be left to it.
    let Ok(mut turn) = timeout(TURN, shared.turns.turn((who.name().to_owned(), session))).await else {
        let refused = Err(busy());
        shared.audit(&who, action, &target, &refused);
        let _gone = tell.send(refused);
        return;
    };
    let inherited = turn.inherit();
    let left = inherited.as_ref().map(|untold| untold.sandbox.id.clone());
    let started = async {
        if gone.is_cancelled() {
            return Err(Fault::gone());
        }
        make(Arc::clone(&shared), who.clone(), left).await
    };
    let started = started.await;
    shared.audit(&who, action, &target, &started);
    let (outcome, untold) = match started {
        Err(fault) => (Err(fault), inherited),
        Ok(Started { sandbox, is_new, held }) => {
            // Whoever it was made for was not told of it.
            let inherited = inherited.filter(|untold| untold.sandbox.id == sandbox.id);
            let is_new = is_new || inherited.is_some();
            let held = held.or_else(|| inherited?.held);
            shared.known.forget(&sandbox.id);
            shared.made(&sandbox, is_new).await;
            (say(sandbox.clone(), is_new).await, is_new.then_some(Untold { sandbox, held }))
        }
    };
    let is_told = match outcome {
        Err(fault) => {
            let _gone = tell.send(Err(fault));
            false
        }
        Ok((status, json)) => {
            let (mut response, delivered) = delivery::told(json);
            *response.status_mut() = status;
            // Without a client the answer ends here.
            let is_there = tell.send(Ok(response)).is_ok();
            is_there && timeout(DELIVERY, delivered).await.is_ok_and(|told| told.is_ok())
        }
    };
    let Some(untold) = untold else { return };
    if is_told {
        turn.told();
        let Untold { sandbox, held } = untold;
        shared.settle(&sandbox.id, held).await;
        // It lives on without this gateway, however that one ends.
        if shared.can.keep_alive
            && let Err(error) = shared.provider.release(&sandbox.id).await
        {
            tracing::warn!(id = %sandbox.id, %error, "a sandbox ends if this gateway is killed");
        }
    } else if let Some(untold) = turn.leave(untold) {
        shared.take_back(untold).await;
        shared.audit(&who, action, &target, &Err::<(), _>(Fault::gone()));
    }
}

fn busy() -> Fault {
    let detail = "the sandbox of this session is being made by another request; ask again";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, detail).passes()
}
