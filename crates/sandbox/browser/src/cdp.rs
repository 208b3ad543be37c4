//! The DevTools protocol over a pair of pipes: calls with time limits, and events.
//!
//! Pipes and not a port: no page and no other user of the machine reaches them.

mod message;
mod task;
mod tunnel;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use message::SessionId;
use message::{Answer, Outgoing};
pub(crate) use task::start;
pub use tunnel::Tunnel;
use tunnel::Tunnels;

/// Time for a call that says nothing else.
const LIMIT: Duration = Duration::from_secs(30);
/// Time for a call that looks at a whole page.
const PAGE: Duration = Duration::from_secs(100);
/// Most bytes that wait to be written.
const MOST_UNWRITTEN: usize = 256 * 1024 * 1024;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CdpError {
    /// Chromium refused it.
    #[error("Protocol error ({method}): {message}")]
    Refused {
        /// The call.
        method: String,
        /// Chromium's words.
        message: String,
    },
    /// Its answer is not understood.
    #[error("the answer of Chromium to {method} is not understood: {reason}")]
    Unexpected {
        /// The call.
        method: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The page or the frame is gone, or its process is.
    #[error("Target page, context or browser has been closed")]
    Gone,
    /// The process that renders it ended.
    #[error("the page has crashed; `goto` an address to use it again")]
    Crashed,
    /// Chromium ended, or does not talk any more.
    #[error("the browser has ended")]
    Closed,
    /// It did not answer in time.
    #[error("Chromium did not answer {method} within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The call.
        method: String,
        /// Time that it had.
        limit: Duration,
    },
}

impl CdpError {
    /// A later try may find the document that has replaced the one that was asked.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Refused { message, .. } => {
                ["context", "Frame", "frame", "node", "Target", "Node", "navigated", "Session"]
                    .iter()
                    .any(|word| message.contains(word))
            }
            Self::Gone => true,
            Self::Unexpected { .. } | Self::Crashed | Self::Closed | Self::TimedOut { .. } => false,
        }
    }
}

/// What is told of events, and of answers that nobody waits for. It is called by the task that reads, one at a time.
pub(crate) trait Listener: Send + 'static {
    /// An event of a session, or of the browser itself. What it wants to be sent goes into `commands`.
    fn event(&mut self, session: Option<&SessionId>, method: &str, parameters: Value, commands: &mut Vec<Command>);

    /// The answer to a command with a tag.
    fn answered(&mut self, command: Answered, commands: &mut Vec<Command>);

    /// Nothing more comes.
    fn closed(&mut self);
}

/// An answer that the listener asked for.
pub(crate) struct Answered {
    pub(crate) session: Option<SessionId>,
    pub(crate) tag: Tag,
    pub(crate) result: Result<Value, CdpError>,
}

/// What the listener asked with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// All that prepares a session was done.
    Prepared,
    /// The frames of a session.
    Frames,
}

/// A command that nobody waits for.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) session: Option<SessionId>,
    pub(crate) method: &'static str,
    pub(crate) parameters: Value,
    pub(crate) tag: Option<Tag>,
}

/// The connection to one browser. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Shared>);

struct Shared {
    writer: mpsc::UnboundedSender<Vec<u8>>,
    unwritten: Arc<AtomicUsize>,
    pending: Mutex<HashMap<u64, Pending>>,
    tunnels: Mutex<Tunnels>,
    next: AtomicU64,
    closed: watch::Sender<bool>,
}

/// Who waits for an answer.
struct Pending {
    session: Option<SessionId>,
    method: String,
    answer: Waiter,
}

enum Waiter {
    Caller(oneshot::Sender<Result<Value, CdpError>>),
    Listener(Tag),
    Tunnel { session: SessionId, id: Value },
    Nobody,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("closed", &*self.0.closed.borrow()).finish_non_exhaustive()
    }
}

impl Connection {
    fn new(writer: mpsc::UnboundedSender<Vec<u8>>, unwritten: Arc<AtomicUsize>) -> Self {
        Self(Arc::new(Shared {
            writer,
            unwritten,
            pending: Mutex::default(),
            tunnels: Mutex::default(),
            next: AtomicU64::new(1),
            closed: watch::Sender::new(false),
        }))
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tunnels(&self) -> MutexGuard<'_, Tunnels> {
        self.0.tunnels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The browser itself, to be called.
    pub(crate) fn browser(&self) -> Session {
        Session { connection: self.clone(), id: None }
    }

    /// A session of it.
    pub(crate) fn session(&self, id: SessionId) -> Session {
        Session { connection: self.clone(), id: Some(id) }
    }

    /// Returns when the browser does not talk any more.
    pub(crate) async fn closed(&self) {
        let mut closed = self.0.closed.subscribe();
        // The sender is part of this.
        let _always_ok = closed.wait_for(|closed| *closed).await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.0.closed.borrow()
    }

    fn send(
        &self,
        session: Option<SessionId>,
        method: &str,
        parameters: Value,
        answer: Waiter,
    ) -> Result<u64, CdpError> {
        if self.is_closed() {
            return Err(CdpError::Closed);
        }
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let message = Outgoing { id, method, params: parameters, session_id: session.as_ref() };
        let mut bytes = serde_json::to_vec(&message)
            .map_err(|error| CdpError::Unexpected { method: method.to_owned(), reason: error.to_string() })?;
        bytes.push(0);
        if self.0.unwritten.fetch_add(bytes.len(), Ordering::Relaxed) > MOST_UNWRITTEN {
            self.0.unwritten.fetch_sub(bytes.len(), Ordering::Relaxed);
            return Err(CdpError::Closed);
        }
        self.pending().insert(id, Pending { session, method: method.to_owned(), answer });
        if self.0.writer.send(bytes).is_err() {
            self.pending().remove(&id);
            return Err(CdpError::Closed);
        }
        // It may have ended in between, and then nobody answers.
        if self.is_closed() {
            self.pending().remove(&id);
            return Err(CdpError::Closed);
        }
        Ok(id)
    }

    /// Sends what the listener wants to be sent.
    fn command(&self, command: Command) {
        let Command { session, method, parameters, tag } = command;
        let answer = tag.map_or(Waiter::Nobody, Waiter::Listener);
        // Whoever ends, is told in another way.
        let _ended = self.send(session, method, parameters, answer);
    }

    /// Gives an answer to whoever waits for it; the listener's are returned.
    fn answer(&self, answer: Answer) -> Option<Answered> {
        let Pending { session, method, answer: waiter } = self.pending().remove(&answer.id)?;
        let result = match (answer.error, answer.result) {
            (Some(error), _) => Err(CdpError::Refused { method, message: error.message }),
            (None, result) => Ok(result.unwrap_or(Value::Null)),
        };
        self.deliver(session, waiter, result)
    }

    fn deliver(&self, session: Option<SessionId>, waiter: Waiter, result: Result<Value, CdpError>) -> Option<Answered> {
        match waiter {
            Waiter::Caller(sender) => {
                // Its time may be over.
                let _nobody_waits = sender.send(result);
                None
            }
            Waiter::Listener(tag) => Some(Answered { session, tag, result }),
            Waiter::Tunnel { session: root, id } => {
                let mut message = match result {
                    Ok(result) => json!({ "id": id, "result": result }),
                    Err(error) => json!({ "id": id, "error": { "code": -32000, "message": error.to_string() } }),
                };
                if let (Some(session), Some(members)) =
                    (session.filter(|session| *session != root), message.as_object_mut())
                {
                    members.insert("sessionId".to_owned(), Value::String(session.to_string()));
                }
                self.tunnels().deliver(&root, message);
                None
            }
            Waiter::Nobody => None,
        }
    }

    /// Nobody answers calls to this session any more.
    fn session_ended(&self, session: &SessionId, why: &CdpError) -> Vec<Answered> {
        let ended: Vec<Pending> = {
            let mut pending = self.pending();
            let ids: Vec<u64> =
                pending.iter().filter(|(_, call)| call.session.as_ref() == Some(session)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| pending.remove(id)).collect()
        };
        ended.into_iter().filter_map(|call| self.deliver(call.session, call.answer, Err(why.clone()))).collect()
    }

    /// Nobody answers any more.
    fn close(&self) {
        self.0.closed.send_replace(true);
        let all = std::mem::take(&mut *self.pending());
        for call in all.into_values() {
            self.deliver(call.session, call.answer, Err(CdpError::Closed));
        }
        *self.tunnels() = Tunnels::default();
    }
}

/// Whom a call goes to: the browser, a page, or a frame that has a process of its own.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    connection: Connection,
    id: Option<SessionId>,
}

/// Forgets a call that nobody waits for any more.
struct Forget<'a>(&'a Connection, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.pending().remove(&self.1);
    }
}

impl Session {
    /// Calls a method with the usual time limit.
    pub(crate) async fn call(&self, method: &str, parameters: Value) -> Result<Value, CdpError> {
        self.call_within(method, parameters, LIMIT).await
    }

    /// Calls a method.
    pub(crate) async fn call_within(
        &self,
        method: &str,
        parameters: Value,
        limit: Duration,
    ) -> Result<Value, CdpError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.connection.send(self.id.clone(), method, parameters, Waiter::Caller(sender))?;
        let _forget = Forget(&self.connection, id);
        match tokio::time::timeout(limit, receiver).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CdpError::Closed),
            Err(_) => Err(CdpError::TimedOut { method: method.to_owned(), limit }),
        }
    }

    /// Calls a method whose answer has a known shape.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, method: &str, parameters: Value) -> Result<T, CdpError> {
        let answer = self.call(method, parameters).await?;
        understood(method, answer)
    }

    /// The same for what looks at a whole page, which takes the time that the page takes: only the limit of the step ends it
    /// earlier.
    pub(crate) async fn ask_of_page<T: DeserializeOwned>(
        &self,
        method: &str,
        parameters: Value,
    ) -> Result<T, CdpError> {
        let answer = self.call_within(method, parameters, PAGE).await?;
        understood(method, answer)
    }

    /// Sends a command whose answer nobody needs.
    pub(crate) fn tell(&self, method: &'static str, parameters: Value) {
        self.connection.command(Command { session: self.id.clone(), method, parameters, tag: None });
    }
}

/// An answer in its shape.
pub(crate) fn understood<T: DeserializeOwned>(method: &str, answer: Value) -> Result<T, CdpError> {
    serde_json::from_value(answer)
        .map_err(|error| CdpError::Unexpected { method: method.to_owned(), reason: error.to_string() })
}

/// Waits for a future, at most so long.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}
