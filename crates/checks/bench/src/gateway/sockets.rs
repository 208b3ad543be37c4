//! Idle WebSockets through the gateway, to a server behind the first port for programs of a sandbox.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    task::JoinSet,
    time::timeout,
};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async, tungstenite::Message};

use super::program::Gateway;
use crate::sample::{Sample, repeat};

/// WebSockets that are opened, or asked, at the same time.
const AT_ONCE: usize = 50;
/// Longest wait for one of them.
const LIMIT: Duration = Duration::from_secs(30);
/// Open files of this program and of the gateway for each, at most.
const FILES: usize = 2;
/// Open files for everything else.
const OTHER_FILES: usize = 500;
/// Requests that are sent while all are open.
const REQUESTS: usize = 200;

type Socket = WebSocketStream<TcpStream>;

/// Numbers of idle WebSockets.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SocketNumbers {
    /// How many were open at the same time.
    pub(crate) count: usize,
    /// How many of them were gone after the requests.
    pub(crate) lost: usize,
    /// What all of them together added to the memory of the gateway, in bytes.
    pub(crate) growth: u64,
    /// `echo hi` through the gateway while they are open.
    pub(crate) echo: Sample,
}

/// Opens so many, lets them be idle while there are requests, and asks each whether it is still there.
pub(super) fn measure(gateway: &Gateway, count: usize) -> anyhow::Result<SocketNumbers> {
    let sandbox = gateway.sandbox("bench")?;
    let port = gateway.inside(&sandbox)?.work;
    let mut client = gateway.client_of(&sandbox)?;
    client.expect("echo hi", "hi")?;

    let runtime = Runtime::new()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)));
    let listener = listener.with_context(|| format!("cannot listen on the port {port} of the sandbox"))?;
    // It ends with the runtime.
    let _server = runtime.spawn(serve(listener));
    let (way, host) = (format!("/{}/work-1/", sandbox.id), gateway.port);
    // The first one makes what all share.
    let first = runtime.block_on(open(host, way.clone()))?;
    let before = gateway.resident()?;
    let opened = runtime.block_on(all((1..count).map(|_| open(host, way.clone()))))?;
    let sockets: Vec<Socket> = std::iter::once(first).chain(opened).collect();
    let growth = gateway.resident()?.saturating_sub(before);
    let echo = repeat(REQUESTS, || client.expect("echo hi", "hi"))?;
    let asked = sockets.into_iter().map(|socket| async { Ok(answers(socket).await) });
    let lost = runtime.block_on(all(asked))?.into_iter().filter(|answers| !answers).count();
    runtime.shutdown_timeout(LIMIT);
    Ok(SocketNumbers { count, lost, growth, echo })
}

/// Allows this program, and what it starts from now on, as many open files as so many WebSockets need.
pub(super) fn allow(count: usize) -> anyhow::Result<()> {
    let (needed, limit) = (u64::try_from(count * FILES + OTHER_FILES)?, getrlimit(Resource::Nofile));
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let new = Rlimit { current: Some(needed), maximum: limit.maximum };
    let reason = || format!("{count} WebSockets need {needed} open files, which is more than `ulimit -Hn` allows");
    setrlimit(Resource::Nofile, new).with_context(reason)
}

/// Does all of it, some at the same time; fails with the first that fails.
async fn all<T: Send + 'static>(
    work: impl Iterator<Item = impl Future<Output = anyhow::Result<T>> + Send + 'static>,
) -> anyhow::Result<Vec<T>> {
    let (mut running, mut done) = (JoinSet::new(), Vec::new());
    for one in work {
        if running.len() == AT_ONCE
            && let Some(result) = running.join_next().await
        {
            done.push(result??);
        }
        running.spawn(one);
    }
    while let Some(result) = running.join_next().await {
        done.push(result??);
    }
    Ok(done)
}

/// Sends back what comes, on each WebSocket.
async fn serve(listener: TcpListener) -> anyhow::Result<()> {
    // They end with this.
    let mut sockets = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        sockets.spawn(async move {
            let mut socket = accept_async(stream).await?;
            while let Some(message) = socket.next().await {
                let message = message?;
                if message.is_text() {
                    socket.send(message).await?;
                }
            }
            anyhow::Ok(())
        });
    }
}

/// A WebSocket through the gateway on this port.
async fn open(port: u16, way: String) -> anyhow::Result<Socket> {
    let opened = async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let (socket, _) = client_async(format!("ws://127.0.0.1:{port}{way}"), stream).await?;
        anyhow::Ok(socket)
    };
    timeout(LIMIT, opened).await.context("a WebSocket was not opened in time")?.context("a WebSocket was not opened")
}

/// Whether the other end is still there.
async fn answers(mut socket: Socket) -> bool {
    let sent = Message::text("still there?");
    let asked = async {
        socket.send(sent.clone()).await.ok()?;
        socket.next().await?.ok()
    };
    timeout(LIMIT, asked).await.is_ok_and(|answer| answer == Some(sent))
}
