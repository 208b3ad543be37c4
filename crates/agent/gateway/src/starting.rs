//! Requests for sandboxes, each in a task of its own, and one after another for each session: a client that goes away before it
//! has its answer leaves nothing behind, and one that asks again finds what is there, or nothing.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use http::StatusCode;
use tokio::{sync::oneshot, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{
    delivery, fault::Fault, identity::Identity, public::Public, shared::Shared, start::StartRequest, tenancy::Started,
    view,
};

/// Longest wait for an earlier request of the same session.
const TURN: Duration = Duration::from_mins(2);
/// Time for a client to take its answer.
const DELIVERY: Duration = Duration::from_secs(30);

/// The answer to a request for a sandbox. Should the caller end before, what was made for it is taken back.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    who: Identity,
    public: Public,
    request: StartRequest,
) -> Result<Response, Fault> {
    let (tell, told) = oneshot::channel();
    let gone = CancellationToken::new();
    let task = run(Arc::clone(shared), who, public, request, tell, gone.clone());
    // It ends with its limits, and is waited for at the end of the gateway.
    shared.turns.spawn(task.in_current_span());
    let guard = gone.drop_guard();
    let panicked = |_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the sandbox could not be started");
    let answer = told.await.map_err(panicked)?;
    guard.disarm();
    answer
}

async fn run(
    shared: Arc<Shared>,
    who: Identity,
    public: Public,
    request: StartRequest,
    tell: oneshot::Sender<Result<Response, Fault>>,
    gone: CancellationToken,
) {
    let (session, asked) = (request.session_id.clone(), request.asked());
    // A request whose client has gone waits for its turn all the same: something may be left to it.
    let Ok(mut turn) = timeout(TURN, shared.turns.turn((who.name().to_owned(), session.clone()))).await else {
        let refused = Err(busy());
        shared.audit(&who, "start", &session, &refused);
        let _gone = tell.send(refused);
        return;
    };
    let inherited = turn.inherit();
    let started = async {
        if gone.is_cancelled() {
            return Err(Fault::gone());
        }
        shared.start(&who, request.spec(&shared.can, &shared.options)?, &asked).await
    };
    let started = started.await;
    shared.audit(&who, "start", &session, &started);
    let (outcome, untold) = match started {
        Err(fault) => (Err(fault), inherited),
        Ok(Started { sandbox, is_new }) => {
            // Whoever it was made for was not told of it.
            let is_new = is_new || inherited.is_some_and(|inherited| inherited.id == sandbox.id);
            shared.known.forget(&sandbox.id);
            let mut told = view::runtime(&sandbox, &public, false).await;
            told.created = Some(is_new);
            (serde_json::to_vec(&told).map_err(|error| Fault::unsaid(&error)), is_new.then_some(sandbox))
        }
    };
    let is_told = match outcome {
        Err(fault) => {
            let _gone = tell.send(Err(fault));
            false
        }
        Ok(json) => {
            let (response, delivered) = delivery::told(json);
            // Without a client the answer ends here.
            let is_there = tell.send(Ok(response)).is_ok();
            is_there && timeout(DELIVERY, delivered).await.is_ok_and(|told| told.is_ok())
        }
    };
    let Some(sandbox) = untold else { return };
    if is_told {
        // It lives on without this gateway, however that one ends.
        if shared.can.keep_alive
            && let Err(error) = shared.provider.release(&sandbox.id).await
        {
            tracing::warn!(id = %sandbox.id, %error, "a sandbox ends if this gateway is killed");
        }
    } else if let Some(sandbox) = turn.leave(sandbox) {
        shared.take_back(&sandbox).await;
        shared.audit(&who, "start", &session, &Err::<(), _>(Fault::gone()));
    }
}

fn busy() -> Fault {
    let detail = "the sandbox of this session is being made by another request; ask again";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, detail).passes()
}
