//! Who may connect, and how many.

use std::{
    collections::HashMap,
    io,
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::geteuid;
use tokio::{net::UnixListener, sync::watch, time};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{self, Service},
    message::Answer,
};

/// Connections at a time.
pub(crate) const CONNECTIONS: usize = 64;

/// Pause after a connection could not be taken for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(200);

/// How long edits that go on may take until the end is not waited for any more.
const END: Duration = Duration::from_secs(10);

/// Listens until it is closed or dropped; then all connections end.
#[derive(Debug)]
pub(crate) struct Server {
    stop: CancellationToken,
    connections: Arc<Connections>,
}

impl Server {
    /// Serves kernels at the socket. Must be called within a tokio runtime.
    pub(crate) fn start(listener: UnixListener, service: Service) -> Self {
        let server = Self { stop: CancellationToken::new(), connections: Arc::default() };
        let connections = Arc::clone(&server.connections);
        tokio::spawn(server.stop.clone().run_until_cancelled_owned(accept(listener, Arc::new(service), connections)));
        server
    }

    /// Ends all connections. An edit that has begun is done, and is waited for in bounds.
    pub(crate) async fn close(&self) {
        self.end();
        let mut count = self.connections.count.subscribe();
        if time::timeout(END, count.wait_for(|count| *count == 0)).await.is_err() {
            tracing::warn!("an edit of a kernel goes on after the end");
        }
    }

    fn end(&self) {
        self.stop.cancel();
        self.connections.end();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

async fn accept(listener: UnixListener, service: Arc<Service>, connections: Arc<Connections>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a kernel cannot connect to the editor");
                time::sleep(PAUSE).await;
                continue;
            }
        };
        if let Err(reason) = take(&stream, &service, &connections) {
            tracing::warn!(reason, "a connection to the editor is refused");
            // Who is refused may not listen.
            let _ = Answer::refused(reason).line().map(|line| stream.try_write(&line));
            continue;
        }
        if let Err(error) = start(stream, &service, &connections) {
            tracing::warn!(%error, "a connection to the editor cannot be served");
        }
    }
}

/// Whether the connection may be; the reason if it may not.
fn take(stream: &tokio::net::UnixStream, service: &Service, connections: &Connections) -> Result<(), String> {
    let own = geteuid().as_raw();
    let user = service.identity.as_ref().map_or(own, |user| user.uid);
    let peer = stream.peer_cred().map_err(|error| format!("who connects is not known: {error}"))?;
    if ![0, own, user].contains(&peer.uid()) {
        return Err(format!("the user {} may not use it", peer.uid()));
    }
    if connections.lock().open.len() >= CONNECTIONS {
        return Err(format!("{CONNECTIONS} kernels are connected already; end one"));
    }
    Ok(())
}

/// Serves a connection on a thread of its own, whose rights are taken away.
fn start(stream: tokio::net::UnixStream, service: &Arc<Service>, connections: &Arc<Connections>) -> io::Result<()> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let entry = Entry::new(Arc::clone(connections), &stream)?;
    let service = Arc::clone(service);
    let work = move || {
        let _entry = entry;
        if let Err(error) = connection::serve(&stream, &service) {
            tracing::debug!(%error, "a connection to the editor broke");
        }
    };
    thread::Builder::new().name("editor".into()).spawn(work).map(drop)
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Connections {
    state: Mutex<State>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, UnixStream>,
    last: u64,
    ended: bool,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all, and each that comes later.
    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        for stream in state.open.values() {
            hang_up(stream);
        }
    }
}

fn hang_up(stream: &UnixStream) {
    // One that has ended already is ended.
    let _ = stream.shutdown(Shutdown::Both);
}

/// A connection among those that are open, until this is dropped.
struct Entry {
    connections: Arc<Connections>,
    id: u64,
}

impl Entry {
    fn new(connections: Arc<Connections>, stream: &UnixStream) -> io::Result<Self> {
        let mut state = connections.lock();
        state.last += 1;
        let id = state.last;
        if state.ended {
            hang_up(stream);
        }
        state.open.insert(id, stream.try_clone()?);
        connections.count.send_replace(state.open.len());
        drop(state);
        Ok(Self { connections, id })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.connections.lock();
        state.open.remove(&self.id);
        self.connections.count.send_replace(state.open.len());
    }
}
