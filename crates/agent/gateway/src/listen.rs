//! Connections: how many there may be, what is waited for, and how they end.

use std::{
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
};
use http::{Request, Response};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::{metrics::Metrics, tls::Tls};

/// Most connections; more wait in the queue of the listener.
const CONNECTIONS: usize = 8192;
/// Time for TLS to stand.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for a connection that nobody uses to end in good order.
const FAREWELL: Duration = Duration::from_secs(5);
/// Most bytes of a head that are read at once.
const BUFFER: usize = 64 * 1024;
/// Most headers of a request.
const HEADERS: usize = 128;
/// Pause after an error of `accept` that passes, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Most requests at a time on a connection of HTTP/2.
const STREAMS: u32 = 128;
/// Most requests of such a connection that were reset before they were looked at; and most that were wrong.
const RESETS: usize = 20;
const WRONG: usize = 128;
/// How much of a body may come before somebody reads it, and of all bodies of a connection together.
const BODY: u32 = 512 * 1024;
const BODIES: u32 = 1024 * 1024;
/// Most bytes of answers of a request that wait for a slow client.
const UNSENT: usize = 256 * 1024;
/// Whether a silent client is still there is asked this often, and how long its answer may take.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// The same, by the system, for clients whose protocol has no words for it: after how long a silence, how often, and how many
/// questions may have no answer.
#[cfg(target_os = "linux")]
const PROBES: (Duration, Duration, u32) = (Duration::from_mins(1), Duration::from_secs(15), 4);

/// Who has sent a request, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) is_tls: bool,
}

/// What connections are for.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) router: Router,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) metrics: Arc<Metrics>,
    /// Time for the head of a request, and until there is one.
    pub(crate) patience: Duration,
}

/// Serves until `stop` is cancelled, then finishes the answers in flight for at most `drain`.
pub(crate) async fn serve(listener: TcpListener, service: Service, drain: Duration, stop: &CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    let next = async |open: &mut JoinSet<()>| {
        // Never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                drop(open.spawn(connection(stream, peer, service.clone(), stop.clone(), permit)));
            }
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
        while open.try_join_next().is_some() {}
    };
    while stop.run_until_cancelled(next(&mut open)).await.is_some() {}
    drop(listener);
    let drained = timeout(drain, async { while open.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(open = open.len(), "requests were cut off");
    }
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    service: Service,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
) {
    // Answers are whole when they are written.
    let _without = stream.set_nodelay(true);
    // Without it, a machine that is lost uses a sandbox for as long as an answer may take.
    #[cfg(target_os = "linux")]
    if let Err(error) = probe(&stream) {
        tracing::debug!(%error, "nobody notices if this client is lost");
    }
    let _open = service.metrics.connection();
    let Some(tls) = &service.tls else {
        return requests(stream, Peer { address, is_tls: false }, service, &stop).await;
    };
    let shaken = stop.run_until_cancelled(timeout(HANDSHAKE, tls.acceptor().accept(stream))).await;
    match shaken {
        // An authority has seen what it wanted.
        Some(Ok(Ok(stream))) if stream.get_ref().1.alpn_protocol() == Some(gloveport_acme::PROTOCOL) => {}
        Some(Ok(Ok(stream))) => requests(stream, Peer { address, is_tls: true }, service, &stop).await,
        Some(Ok(Err(error))) => {
            tracing::debug!(%error, "TLS failed");
            service.metrics.handshake_failed();
        }
        Some(Err(_)) => service.metrics.handshake_failed(),
        None => {}
    }
}

/// Has the system find out whether a silent client is still there.
#[cfg(target_os = "linux")]
fn probe(stream: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt;
    let (silence, pause, most) = PROBES;
    sockopt::set_tcp_keepidle(stream, silence)?;
    sockopt::set_tcp_keepintvl(stream, pause)?;
    sockopt::set_tcp_keepcnt(stream, most)?;
    sockopt::set_socket_keepalive(stream, true)
}

/// The requests of a connection, by HTTP/1.1 or HTTP/2 as the client speaks.
async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    Service { router, patience, .. }: Service,
    stop: &CancellationToken,
) {
    let (busy, used) = watch::channel(0_usize);
    let busy = Arc::new(busy);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let (busy, router) = (Busy::new(&busy), router.clone());
        async move {
            let response = router.oneshot(request.map(Body::new)).await;
            response.map(|response: Response<Body>| response.map(|body| Held { body, _busy: busy }))
        }
    });
    let builder = builder(patience);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            Some(connection.await)
        }
        () = unused(used.clone(), patience) => {
            connection.as_mut().graceful_shutdown();
            // A request may have come at the last moment.
            tokio::select! {
                ended = connection => Some(ended),
                () = unused(used, FAREWELL) => None,
            }
        }
    };
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

fn builder(patience: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(BUFFER).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(WRONG)
        .initial_stream_window_size(BODY)
        .initial_connection_window_size(BODIES)
        .max_send_buf_size(UNSENT)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}

/// Returns when there was no request for so long that there will be none.
async fn unused(mut used: watch::Receiver<usize>, patience: Duration) {
    loop {
        // Without a service there are no requests; the connection is at its end.
        if used.wait_for(|requests| *requests == 0).await.is_err() {
            return std::future::pending().await;
        }
        let next = timeout(patience, used.wait_for(|requests| *requests > 0)).await.map(|found| found.is_ok());
        match next {
            Err(_) => return,
            Ok(false) => return std::future::pending().await,
            Ok(true) => {}
        }
    }
}

/// A request that is not answered, or whose answer is on its way.
#[derive(Debug)]
struct Busy(Arc<watch::Sender<usize>>);

impl Busy {
    fn new(requests: &Arc<watch::Sender<usize>>) -> Self {
        requests.send_modify(|requests| *requests += 1);
        Self(Arc::clone(requests))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|requests| *requests -= 1);
    }
}

/// The body of an answer.
#[derive(Debug)]
struct Held {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt;

    use super::*;

    #[tokio::test]
    async fn the_system_asks_a_silent_client_whether_it_is_still_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        assert!(!sockopt::socket_keepalive(&stream).unwrap());
        probe(&stream).unwrap();
        let asked = (sockopt::tcp_keepidle(&stream), sockopt::tcp_keepintvl(&stream), sockopt::tcp_keepcnt(&stream));
        assert_eq!(asked, (Ok(PROBES.0), Ok(PROBES.1), Ok(PROBES.2)));
        assert!(sockopt::socket_keepalive(&stream).unwrap());
    }
}
