//! Connections: accepting them, how many there may be, and how they end.

mod activity;
mod service;
mod strangers;
mod stream;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use axum::Router;
use gloveport_executor::Executor;
use gloveport_proxy::prepare;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    error::ServerError,
    occupancy::Occupancy,
    options::{ServerLimits, ServerOptions},
    router,
};
use activity::{Activity, Phase};
use service::{ConnectionService, Entrance};
use strangers::Strangers;
use stream::WatchedStream;

/// Pause after an error of `accept` that passes, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause between two lines in the log about such errors.
const QUIET: Duration = Duration::from_secs(10);
/// Connections beyond the bound that are told so at the same time; the others are just closed.
const REFUSALS: usize = 64;
/// Time to tell one of them.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// What they are told.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 56\r\n\
    x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{\"detail\":\"Too many connections are open; try it later\"}";

/// Most bytes that are read and written at once. The head of a request may be up to twice as long; status 431 beyond it.
const HEAD: usize = 64 * 1024;

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainEnd {
    /// Every answer was given.
    Drained,
    /// The time was over before that.
    CutOff {
        /// Connections with an answer that was not complete.
        open: usize,
    },
}

/// Serves until `stop` is cancelled, then stops accepting, and finishes the answers in flight for at most `drain`.
pub async fn serve(
    listener: TcpListener,
    executor: Arc<Executor>,
    options: ServerOptions,
    stop: CancellationToken,
    drain: Duration,
) -> Result<DrainEnd, ServerError> {
    let app = App::new(executor, options, stop.clone());
    let mut server = Server {
        router: router::for_app(Arc::clone(&app)),
        limits: Arc::new(app.options.limits.clone()),
        strangers: Strangers::new(app.options.limits.strangers),
        app,
        stop,
        connections: JoinSet::new(),
        refusals: JoinSet::new(),
        last_complaint: None,
    };
    server.accept_until_stop(&listener).await?;
    drop(listener);
    Ok(server.drain(drain).await)
}

struct Server {
    app: Arc<App>,
    router: Router,
    limits: Arc<ServerLimits>,
    strangers: Arc<Strangers>,
    stop: CancellationToken,
    connections: JoinSet<()>,
    refusals: JoinSet<()>,
    last_complaint: Option<Instant>,
}

impl Server {
    async fn accept_until_stop(&mut self, listener: &TcpListener) -> Result<(), ServerError> {
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                Some(_ended) = self.connections.join_next(), if !self.connections.is_empty() => self.count(),
                Some(_told) = self.refusals.join_next(), if !self.refusals.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(stream, peer),
                    Err(error) => {
                        if self.is_lasting(error)? {
                            let _stopped = stop.run_until_cancelled(sleep(PAUSE)).await;
                        }
                    }
                },
            }
        }
    }

    /// Whether an error needs a pause; the error itself, if the listener is of no use any more.
    fn is_lasting(&mut self, error: io::Error) -> Result<bool, ServerError> {
        const UNUSABLE: [i32; 4] = [9, 22, 88, 95]; // EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP
        const OUT_OF_FILES: i32 = 24; // EMFILE
        const OUT_OF_FILES_IN_ALL: i32 = 23; // ENFILE
        if error.raw_os_error().is_some_and(|code| UNUSABLE.contains(&code)) {
            return Err(ServerError::Listener(error));
        }
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
            return Ok(false);
        }
        if matches!(error.raw_os_error(), Some(OUT_OF_FILES | OUT_OF_FILES_IN_ALL)) {
            self.strangers.make_room();
        }
        if self.last_complaint.is_none_or(|time| time.elapsed() > QUIET) {
            self.last_complaint = Some(Instant::now());
            tracing::warn!(%error, open = self.connections.len(), "a connection cannot be accepted; trying again");
        }
        Ok(true)
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if self.connections.len() >= self.limits.connections {
            self.app.metrics.connections_refused.fetch_add(1, Relaxed);
            if self.refusals.len() < REFUSALS {
                self.refusals.spawn(refuse(stream));
            }
            return;
        }
        prepare(&stream);
        let stranger = self.strangers.enter();
        let entrance = Entrance { app: Arc::clone(&self.app), stranger: Arc::clone(&stranger), peer };
        let (limits, occupancy) = (Arc::clone(&self.limits), Arc::clone(&self.app.options.occupancy));
        let (router, stop) = (self.router.clone(), self.stop.clone());
        self.connections.spawn(async move {
            tokio::select! {
                () = hold_conversation(stream, router, limits, occupancy, stop, Some(entrance)) => {}
                () = stranger.sent_off() => {}
            }
        });
        self.count();
    }

    fn count(&self) {
        self.app.metrics.connections.store(self.connections.len(), Relaxed);
    }

    async fn drain(mut self, limit: Duration) -> DrainEnd {
        self.refusals.abort_all();
        let end = self.drain_connections(limit).await;
        self.app.close().await;
        end
    }

    async fn drain_connections(&mut self, limit: Duration) -> DrainEnd {
        let connections = &mut self.connections;
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(limit, all).await.is_ok() {
            return DrainEnd::Drained;
        }
        let open = self.connections.len();
        self.connections.shutdown().await;
        DrainEnd::CutOff { open }
    }
}

/// Serves the requests of one connection that is nobody's, and then what it was upgraded to, to its end.
#[cfg(test)]
pub(crate) async fn converse(
    stream: TcpStream,
    router: Router,
    limits: Arc<ServerLimits>,
    occupancy: Arc<Occupancy>,
    stop: CancellationToken,
) {
    hold_conversation(stream, router, limits, occupancy, stop, None).await;
}

/// The same for one that may be a stranger's.
async fn hold_conversation(
    stream: TcpStream,
    router: Router,
    limits: Arc<ServerLimits>,
    occupancy: Arc<Occupancy>,
    stop: CancellationToken,
    entrance: Option<Entrance>,
) {
    let activity = Arc::new(Activity::new(limits.idle_timeout));
    let stranger = entrance.as_ref().map(|entrance| Arc::clone(&entrance.stranger));
    let open = CancellationToken::new();
    let stream = WatchedStream::new(stream, Arc::clone(&activity), limits, stranger, open.clone().drop_guard());
    let service = ConnectionService::new(router, Arc::clone(&activity), Arc::clone(&occupancy), entrance);
    if let Err(error) = requests(stream, service, Arc::clone(&activity), stop).await {
        tracing::debug!(%error, "a connection ended with an error");
    }
    // Whoever is at a terminal uses the sandbox.
    let _occupied = (activity.phase() == Phase::Upgraded).then(|| occupancy.occupy());
    open.cancelled().await;
}

async fn requests(
    stream: WatchedStream,
    service: ConnectionService,
    activity: Arc<Activity>,
    stop: CancellationToken,
) -> hyper::Result<()> {
    let mut builder = http1::Builder::new();
    let connection = builder.max_buf_size(HEAD).serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            activity.stop();
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

/// Tells a client that there is no room, and reads what it sent, because closing before that would take the answer away
/// from it.
async fn refuse(mut stream: TcpStream) {
    let tell = async {
        stream.write_all(REFUSAL).await?;
        stream.shutdown().await?;
        let mut waste = [0; 4096];
        while stream.read(&mut waste).await? > 0 {}
        io::Result::Ok(())
    };
    // Whether it listens is its own concern.
    let _told = timeout(REFUSAL_TIME, tell).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_refusal_is_right() {
        let text = std::str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head} {}", body.len());
    }
}
