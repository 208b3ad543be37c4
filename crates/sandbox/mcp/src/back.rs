//! The way back: what a server asks of its clients, and what it tells them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, Peer, RoleClient, RoleServer,
    model::{
        ClientCapabilities, ClientConfig, ClientResult, ElicitationCapability, FormElicitationCapability,
        GetExtensions as _, Implementation, ProgressNotificationParam, ProgressToken, RequestId, RootsCapabilities,
        SamplingCapability, ServerNotification, ServerRequest,
    },
    service::{NotificationContext, OriginatingRequestId, RequestContext, Service, ServiceError},
};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Progress of one call that waits to be passed on; more is left out.
pub(crate) const PROGRESS: usize = 256;
/// What a server told that waits to be passed on; more is left out.
const TOLD: usize = 1024;
/// Questions of one server that wait for their answers; more are refused.
const QUESTIONS: usize = 16;

/// Where the progress of a call goes. Travels with the call.
#[derive(Debug, Clone)]
pub(crate) struct ProgressTo(pub(crate) mpsc::Sender<ProgressNotificationParam>);

/// The way back of one run of a server.
#[derive(Debug)]
pub(crate) struct Back {
    progress: Mutex<HashMap<ProgressToken, (RequestId, ProgressTo)>>,
    told: mpsc::Sender<ServerNotification>,
    callers: Mutex<Vec<Caller>>,
    questions: Semaphore,
    broken: Mutex<Option<String>>,
    closed: CancellationToken,
}

/// Who waits for an answer of the server, and so can be asked by it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    number: u64,
    peer: Peer<RoleServer>,
    request: RequestId,
}

/// A call that is on its way; a server may ask its caller until this is dropped.
#[derive(Debug)]
pub(crate) struct Calling<'a> {
    back: &'a Back,
    number: u64,
}

impl Back {
    /// The way back, and what the server will tell.
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<ServerNotification>) {
        let (told, receiver) = mpsc::channel(TOLD);
        let back = Self {
            progress: Mutex::default(),
            told,
            callers: Mutex::default(),
            questions: Semaphore::new(QUESTIONS),
            broken: Mutex::default(),
            closed: CancellationToken::new(),
        };
        (Arc::new(back), receiver)
    }

    /// A call with this id will tell its progress with this token.
    pub(crate) fn expect_progress(&self, id: RequestId, token: ProgressToken, to: ProgressTo) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|_, (_, to)| !to.0.is_closed());
        progress.insert(token, (id, to));
    }

    /// A call was answered.
    pub(crate) fn answered(&self, id: &RequestId) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.retain(|_, (call, _)| call != id);
    }

    /// The server told something.
    pub(crate) fn told(&self, told: ServerNotification) {
        if let ServerNotification::ProgressNotification(told) = told {
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, to)) = progress.get(&told.params.progress_token) {
                // A client that does not keep up misses some of it.
                let _full = to.0.try_send(told.params);
            }
            return;
        }
        if self.told.try_send(told).is_err() {
            tracing::debug!("an MCP server tells more than its clients take; some of it is left out");
        }
    }

    /// The connection ended, perhaps for a reason.
    pub(crate) fn ended(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        }
        self.closed.cancel();
    }

    /// Returns when the connection has ended.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Why the connection ended, if it did not end by itself.
    pub(crate) fn broken(&self) -> Option<String> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a caller whom the server may ask.
    pub(crate) fn calling(&self, context: &RequestContext<RoleServer>) -> Calling<'_> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = callers.iter().map(|caller| caller.number + 1).max().unwrap_or_default();
        callers.push(Caller { number, peer: context.peer.clone(), request: context.id.clone() });
        Calling { back: self, number }
    }

    /// The one who called last and still waits.
    fn caller(&self) -> Option<Caller> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        let mut callers = self.back.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|caller| caller.number != self.number);
    }
}

/// What the proxy is to a server: a client that can do all that clients can, and asks its own clients.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) back: Arc<Back>,
}

impl Service<RoleClient> for Asked {
    async fn handle_request(
        &self,
        mut request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        if let ServerRequest::PingRequest(_) = request {
            return Ok(ClientResult::empty(()));
        }
        let Ok(_turn) = self.back.questions.try_acquire() else {
            let text = format!("{QUESTIONS} questions of this server wait for an answer already");
            return Err(ErrorData::internal_error(text, None));
        };
        let Some(caller) = self.back.caller() else {
            return Err(ErrorData::invalid_request(
                "no client of this server waits for an answer, so none can be asked",
                None,
            ));
        };
        // Over streamable HTTP a question goes to the stream of the call that it belongs to.
        request.extensions_mut().insert(OriginatingRequestId(caller.request));
        tokio::select! {
            answer = caller.peer.send_request(request) => answer.map_err(|error| match error {
                ServiceError::McpError(error) => error,
                other => ErrorData::internal_error(format!("the client did not answer: {other}"), None),
            }),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the question was withdrawn", None)),
        }
    }

    async fn handle_notification(
        &self,
        _told: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        // All that servers tell goes to `Back::told`, but for what the SDK itself listens to.
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = Some(RootsCapabilities::default());
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("gloveport", env!("CARGO_PKG_VERSION")))
    }
}
