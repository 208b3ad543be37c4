//! Connections that are kept for the next call.
//!
//! OpenHands opens a connection for every list and every call. The start of a server that is a program takes a second,
//! and what it remembers, such as an open page, is lost with it. So connections stay for a while; one that has ended is
//! made anew by the next call, and nothing that a server may have taken is ever sent again.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep},
};

use crate::{CONNECT_LIMIT, Client, ConnectError, ErrorCollector, Server};

/// Most connections that are kept.
const MOST: usize = 64;

/// How long a pool waits, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// How long a server may take to be connected.
    pub connect: Duration,
    /// How long a server that took longer is not asked again, so that it holds up one call and not all.
    pub pause: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle: Duration::from_mins(5), connect: CONNECT_LIMIT, pause: Duration::from_mins(1) }
    }
}

/// Connections to servers. Clones share them; they end with the last clone, when they are idle, or by [`Pool::clear`].
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    slots: Mutex<Slots>,
    limits: PoolLimits,
}

#[derive(Debug, Default)]
struct Slots {
    list: Vec<Arc<Slot>>,
    /// A task looks for idle ones.
    is_swept: bool,
}

/// One server. Whoever connects holds the lock, so that others wait for the same connection.
#[derive(Debug)]
struct Slot {
    server: Server,
    state: AsyncMutex<State>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Empty,
    Open(Arc<Client>),
    Hung(Instant),
}

impl Pool {
    /// An empty pool with other limits.
    pub fn within(limits: PoolLimits) -> Self {
        Self(Arc::new(Shared { slots: Mutex::default(), limits }))
    }

    /// The connection to a server, which is made if there is none.
    ///
    /// A failure is in the [`ErrorCollector`] of this process, too.
    pub async fn client(&self, server: &Server) -> Result<Arc<Client>, ConnectError> {
        let connected = self.connected(server).await;
        if let Err(error) = &connected {
            let message = format!("Error connecting to {}: {error}", server.name());
            tracing::error!(server = server.name(), %error, "an MCP server is left out");
            ErrorCollector::global().add(&server.name(), server.source(), message, Some(error.to_string()));
        }
        connected
    }

    /// The connections to those of the servers that can be reached, in their order. All are made at the same time.
    pub async fn clients(&self, servers: &[Server]) -> Vec<Arc<Client>> {
        join_all(servers.iter().map(|server| self.client(server))).await.into_iter().filter_map(Result::ok).collect()
    }

    async fn connected(&self, server: &Server) -> Result<Arc<Client>, ConnectError> {
        let limits = self.0.limits;
        let connect = async || Client::connect_within(server, limits.connect).await.map(Arc::new);
        let Some(slot) = self.slot(server) else { return connect().await };
        let mut state = slot.state.lock().await;
        match &*state {
            State::Open(client) if !client.is_closed() => return Ok(Arc::clone(client)),
            State::Hung(since) if since.elapsed() < limits.pause => {
                let last = format!(", and is not asked again for {} seconds", limits.pause.as_secs_f64());
                return Err(ConnectError::Silent { server: server.name(), limit: limits.connect, last });
            }
            _ => *state = State::Empty,
        }
        let connected = connect().await;
        match &connected {
            Ok(client) => *state = State::Open(Arc::clone(client)),
            Err(ConnectError::Silent { .. }) => *state = State::Hung(Instant::now()),
            Err(_) => {}
        }
        connected
    }

    /// The place of a server's connection; none if there are too many.
    fn slot(&self, server: &Server) -> Option<Arc<Slot>> {
        let mut slots = self.0.slots();
        if let Some(slot) = slots.list.iter().find(|slot| slot.server == *server) {
            return Some(Arc::clone(slot));
        }
        if slots.list.len() == MOST {
            return None;
        }
        if !std::mem::replace(&mut slots.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
        let slot = Arc::new(Slot { server: server.clone(), state: AsyncMutex::default() });
        slots.list.push(Arc::clone(&slot));
        Some(slot)
    }

    /// How many servers are connected, or are being connected.
    pub fn count(&self) -> usize {
        self.0.slots().list.len()
    }

    /// Ends all connections, also those in use, and waits for their end.
    pub async fn clear(&self) {
        let slots = std::mem::take(&mut self.0.slots().list);
        join_all(slots.iter().map(|slot| slot.close())).await;
    }

    /// Ends the connections to servers with this address, which serve other tools from now on.
    pub async fn forget(&self, url: &str) {
        let is_there = |slot: &Arc<Slot>| match &slot.server {
            Server::Sse(server) | Server::Http(server) => server.url == url,
            Server::Stdio(_) => false,
        };
        let gone: Vec<_> = self.0.slots().list.extract_if(.., |slot| is_there(slot)).collect();
        for slot in gone {
            // Calls in flight keep theirs to the end.
            *slot.state.lock().await = State::Empty;
        }
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    async fn close(&self) {
        if let State::Open(client) = std::mem::take(&mut *self.state.lock().await) {
            client.close().await;
        }
    }

    /// Whether nobody needs the slot any more. A connection that somebody uses, or makes, is needed.
    fn is_idle(&self, limits: PoolLimits) -> bool {
        let Ok(state) = self.state.try_lock() else { return false };
        match &*state {
            State::Empty => true,
            State::Open(client) => client.is_closed() || Arc::strong_count(client) == 1 && client.idle() >= limits.idle,
            State::Hung(since) => since.elapsed() >= limits.pause,
        }
    }
}

/// Ends connections that nobody uses, until there is none, or no pool.
async fn sweep(pool: Weak<Shared>) {
    loop {
        let Some(shared) = pool.upgrade() else { return };
        let pause = shared.limits.idle / 4;
        drop(shared);
        sleep(pause).await;
        let Some(shared) = pool.upgrade() else { return };
        let is_done;
        let idle: Vec<Arc<Slot>> = {
            let mut slots = shared.slots();
            // Whoever has looked for a slot and not locked it yet has a clone of it.
            let is_idle = |slot: &mut Arc<Slot>| Arc::strong_count(slot) == 1 && slot.is_idle(shared.limits);
            let idle = slots.list.extract_if(.., is_idle).collect();
            slots.is_swept = !slots.list.is_empty();
            is_done = !slots.is_swept;
            idle
        };
        join_all(idle.iter().map(|slot| slot.close())).await;
        if is_done {
            return;
        }
    }
}
