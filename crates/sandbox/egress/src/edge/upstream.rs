//! The connections of one tunnel to its target.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{Either, Empty};
use hyper::{
    body::{Body, Incoming},
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::{
    head::Head,
    tasks::Starter,
    tls::{self, Outside, Versions},
};
use crate::{
    limits::EgressLimits,
    reach::Reach,
    refusal::{Refusal, causes},
    watch::{Activity, Watched},
};
use gloveport_allow_list::Target;

/// Connections of HTTP/1.1 at once for the requests of one tunnel, which come at once if it is HTTP/2 inside.
const MOST_HTTP1: usize = 8;
/// How often a request is sent anew when the target has just closed the connection that it was for.
const MOST_TRIES: usize = 3;
/// Time in which a connection whose answer is over is ready for the next request. It is not while it still sends what
/// the answer did not wait for.
const READY_IN: Duration = Duration::from_millis(100);
/// What HTTP/2 takes before it is read, for one request and for all.
const WINDOWS: (u32, u32) = (2 << 20, 8 << 20);
/// What HTTP/2 takes at once.
const FRAME: u32 = 64 * 1024;
/// What HTTP/2 keeps of one request that the target does not take yet.
const SEND_BUFFER: usize = 256 * 1024;

/// What is sent up: what comes, or nothing.
pub(crate) type Upload = Either<Incoming, Empty<Bytes>>;

/// The way from one tunnel to its target.
pub(crate) struct Upstream {
    pub(crate) target: Target,
    reach: Arc<Reach>,
    outside: Outside,
    limits: EgressLimits,
    activity: Activity,
    starter: Starter,
    /// Places for connections of HTTP/1.1; a single one until it is known which version the target speaks.
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first connection, before anybody asked for it.
    first: Option<Result<Connection, Refusal>>,
    idle: Vec<Http1>,
    many: Option<Http2>,
    /// All places are there.
    is_wide: bool,
}

enum Connection {
    One(Http1),
    Many(Http2),
}

/// A connection that takes one request at a time.
struct Http1 {
    sender: http1::SendRequest<Upload>,
    _task: AbortOnDropHandle<()>,
}

/// A connection that takes many requests at once.
#[derive(Clone)]
struct Http2 {
    sender: http2::SendRequest<Upload>,
    task: Arc<AbortOnDropHandle<()>>,
}

/// What an answer needs to go on: its connection.
pub(crate) enum Lease {
    /// This connection is for it alone.
    One(OneLease),
    /// Others use it too.
    Many(#[expect(dead_code, reason = "it is held so that the connection lives")] Arc<AbortOnDropHandle<()>>),
}

/// A connection of HTTP/1.1 and its place.
pub(crate) struct OneLease {
    connection: Http1,
    upstream: Arc<Upstream>,
    _place: OwnedSemaphorePermit,
}

impl Lease {
    /// The answer is over, so the connection can take another request.
    pub(crate) fn give_back(self) {
        if let Self::One(OneLease { connection, upstream, _place }) = self {
            upstream.state().idle.push(connection);
        }
    }
}

/// What a request is sent on.
enum Leased {
    /// A connection for it alone, in its place. It may have carried a request before.
    One {
        connection: Http1,
        place: OwnedSemaphorePermit,
        is_used: bool,
    },
    Many(Http2),
}

impl Leased {
    /// The target may just be closing the connection.
    fn is_used(&self) -> bool {
        match self {
            Self::One { is_used, .. } => *is_used,
            Self::Many(_) => true,
        }
    }
}

impl Upstream {
    pub(crate) fn new(
        target: Target,
        (reach, outside): (Arc<Reach>, Outside),
        limits: EgressLimits,
        activity: Activity,
        starter: Starter,
    ) -> Self {
        let places = Arc::new(Semaphore::new(1));
        Self { target, reach, outside, limits, activity, starter, places, state: Mutex::default() }
    }

    /// Begins TLS on the first connection. What goes wrong is for the first request to tell.
    pub(crate) async fn begin(&self, stream: Watched) {
        let first = self.secure(stream, Versions::Any).await;
        self.state().first = Some(first);
    }

    /// Sends a request, and returns the head of its answer.
    pub(crate) async fn send(
        self: &Arc<Self>,
        head: &Head,
        body: Incoming,
    ) -> Result<(Response<Incoming>, Lease), Refusal> {
        // Asking twice for what is only read changes nothing.
        let harmless = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&head.method) && body.is_end_stream();
        let mut body = Either::Left(body);
        let mut tries = 0;
        loop {
            tries += 1;
            let leased = self.lease(head.upgrade.is_some()).await?;
            let is_used = leased.is_used();
            let TrySend { error, unsent } = match self.send_on(leased, head, body).await? {
                Ok(answered) => return Ok(answered),
                Err(failed) => *failed,
            };
            body = match unsent {
                Some(body) if tries < MOST_TRIES => body,
                None if tries < MOST_TRIES && is_used && harmless => Either::Right(Empty::new()),
                _ => return Err(self.no_answer(&error)),
            };
        }
    }

    async fn send_on(
        self: &Arc<Self>,
        leased: Leased,
        head: &Head,
        body: Upload,
    ) -> Result<Result<(Response<Incoming>, Lease), Box<TrySend>>, Refusal> {
        let (sent, lease) = match leased {
            Leased::One { mut connection, place, .. } => {
                let request = head.clone().http1(body, &self.target)?;
                let sent = connection.sender.try_send_request(request).await;
                (sent, Lease::One(OneLease { connection, upstream: Arc::clone(self), _place: place }))
            }
            Leased::Many(Http2 { mut sender, task }) => {
                let request = head.clone().http2(body, &self.target)?;
                (sender.try_send_request(request).await, Lease::Many(task))
            }
        };
        Ok(match sent {
            Ok(response) => Ok((response, lease)),
            Err(error) => Err(Box::new(error.into())),
        })
    }

    /// A connection for a request. One that shall become something else speaks HTTP/1.1.
    async fn lease(&self, for_upgrade: bool) -> Result<Leased, Refusal> {
        if let Some(many) = self.many().filter(|_| !for_upgrade) {
            return Ok(Leased::Many(many));
        }
        let ended = |_| Refusal::Request("the tunnel ends");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(ended)?;
        if let Some(many) = self.many().filter(|_| !for_upgrade) {
            return Ok(Leased::Many(many));
        }
        while let Some(mut connection) = self.idle() {
            if let Ok(Ok(())) = timeout(READY_IN, connection.sender.ready()).await {
                return Ok(Leased::One { connection, place, is_used: true });
            }
        }
        let first = self.state().first.take();
        let connection = match first {
            Some(first) => self.keep(first?),
            None => self.open(Versions::Any).await?,
        };
        let connection = match connection {
            Connection::Many(_) if for_upgrade => self.open(Versions::Http1).await?,
            connection => connection,
        };
        Ok(match connection {
            Connection::One(connection) => Leased::One { connection, place, is_used: false },
            Connection::Many(many) => Leased::Many(many),
        })
    }

    /// Connects anew, which rules must let through again.
    async fn open(&self, versions: Versions) -> Result<Connection, Refusal> {
        let stream = self.reach.connect(&self.target).await?;
        let opened = self.secure(Watched::new(stream, &self.activity), versions).await?;
        Ok(self.keep(opened))
    }

    /// Remembers what the target speaks.
    fn keep(&self, connection: Connection) -> Connection {
        let mut state = self.state();
        match &connection {
            Connection::Many(many) => state.many = Some(many.clone()),
            Connection::One(_) if !state.is_wide && state.many.is_none() => {
                state.is_wide = true;
                self.places.add_permits(MOST_HTTP1 - 1);
            }
            Connection::One(_) => {}
        }
        connection
    }

    fn many(&self) -> Option<Http2> {
        let mut state = self.state();
        state.many = state.many.take().filter(|many| !many.sender.is_closed());
        state.many.clone()
    }

    fn idle(&self) -> Option<Http1> {
        let mut state = self.state();
        state.idle.retain(|one| !one.sender.is_closed());
        state.idle.pop()
    }

    /// TLS, and HTTP over it.
    async fn secure(&self, stream: Watched, versions: Versions) -> Result<Connection, Refusal> {
        let name = tls::server_name(&self.target)?;
        let connected = timeout(self.limits.connect, self.outside.connector(versions).connect(name, stream)).await;
        let stream = match connected {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(tls::failed(&self.target, &error)),
            Err(_) => return Err(tls::failed(&self.target, &io::ErrorKind::TimedOut.into())),
        };
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.http2(stream).await
        } else {
            self.http1(stream).await
        }
    }

    async fn http1(&self, stream: TlsStream<Watched>) -> Result<Connection, Refusal> {
        let handshake = http1::Builder::new().max_buf_size(self.limits.header_bytes).handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(|error| self.no_answer(&error))?;
        let task = tokio::spawn(async move { told(connection.with_upgrades().await) });
        Ok(Connection::One(Http1 { sender, _task: AbortOnDropHandle::new(task) }))
    }

    async fn http2(&self, stream: TlsStream<Watched>) -> Result<Connection, Refusal> {
        let handshake = http2::Builder::new(self.starter.clone())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1)
            .max_frame_size(FRAME)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(u32::try_from(self.limits.header_bytes).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(|error| self.no_answer(&error))?;
        let task = tokio::spawn(async move { told(connection.await) });
        Ok(Connection::Many(Http2 { sender, task: Arc::new(AbortOnDropHandle::new(task)) }))
    }

    fn no_answer(&self, error: &hyper::Error) -> Refusal {
        Refusal::Answer { target: self.target.clone(), reason: causes(error) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a request was not answered, and its body if nothing of it went out.
struct TrySend {
    error: hyper::Error,
    unsent: Option<Upload>,
}

impl From<TrySendError<Request<Upload>>> for TrySend {
    fn from(mut error: TrySendError<Request<Upload>>) -> Self {
        let unsent = error.take_message().map(Request::into_body);
        Self { error: error.into_error(), unsent }
    }
}

fn told(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to a target broke");
    }
}
