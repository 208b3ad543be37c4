//! Connections: how many there may be, what is waited for, and how they end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Most connections; more wait in the queue of the listener.
const CONNECTIONS: usize = 8192;
/// Time for the head of a request, and until there is one.
const HEAD: Duration = Duration::from_secs(75);
/// Most bytes of a head that are read at once.
const BUFFER: usize = 64 * 1024;
/// Most headers of a request.
const HEADERS: usize = 128;
/// Pause after an error of `accept` that passes, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Who has sent a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Serves until `stop` is cancelled, then finishes the answers in flight for at most `drain`.
pub(crate) async fn serve(listener: TcpListener, router: Router, drain: Duration, stop: &CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    let next = async |open: &mut JoinSet<()>| {
        // Never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                drop(open.spawn(connection(stream, peer, router.clone(), stop.clone(), permit)));
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
    peer: SocketAddr,
    router: Router,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
) {
    // Answers are whole when they are written.
    let _without = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
