//! A small HTTP listener of its own for one service.

use std::{convert::Infallible, io, net::IpAddr, sync::Arc, time::Duration};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    admission::Trust,
    answer::request_body,
    service::ServiceProxy,
    stall::{Client, prepare},
};

/// Most bytes of the head of a request.
const HEAD: usize = 32 * 1024;
/// Pause after an error of `accept`.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the `stop` of the service is cancelled; then finishes what is being answered for a short while.
/// Everybody who asks is a stranger: only the token lets in.
pub async fn serve(listener: TcpListener, proxy: Arc<ServiceProxy>) {
    let stop = proxy.stop.clone();
    let places = Arc::new(Semaphore::new(proxy.limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?, place))
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accepted => match accepted {
                Ok(((stream, peer), place)) => {
                    prepare(&stream);
                    let client = Client::new(stream, proxy.limits.write, place);
                    connections.spawn(converse(client, peer.ip(), Arc::clone(&proxy)));
                }
                Err(error) => {
                    tracing::debug!(%error, service = %proxy.name, "a connection cannot be accepted");
                    let _stopped = stop.run_until_cancelled(sleep(PAUSE)).await;
                }
            },
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(proxy.limits.drain, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn converse(client: Client, address: IpAddr, proxy: Arc<ServiceProxy>) {
    let (stop, idle): (CancellationToken, _) = (proxy.stop.clone(), proxy.limits.idle);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let proxy = Arc::clone(&proxy);
        async move {
            let request = request.map(request_body);
            Ok::<_, Infallible>(proxy.answer(request, Some(address), Trust::Stranger).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(HEAD)
        .header_read_timeout(idle)
        .serve_connection(TokioIo::new(client), service)
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
