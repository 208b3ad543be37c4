//! Servers that wait for a session.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{TryStreamExt as _, stream};
use gloveport_provider::ProviderError;
use tokio::sync::Notify;

use crate::{fault::NAME, launch::Server, provider::Inner, server::ServerProcess};

/// Servers that are started at the same time.
const AT_ONCE: usize = 8;
/// Servers that may wait.
const MOST: usize = 256;

/// The servers that wait, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
    /// Told when a server is no longer on its way.
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    servers: VecDeque<Server>,
    /// Servers on their way to the others.
    coming: usize,
    closed: bool,
}

impl Pool {
    /// The one that waits longest.
    pub(crate) fn take(&self) -> Option<Server> {
        self.lock().servers.pop_front()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().servers.len()
    }

    /// Ends those that wait beyond this number, the oldest first.
    pub(crate) fn trim(&self, most: usize) {
        let surplus: Vec<Server> = {
            let mut waiting = self.lock();
            let surplus = waiting.servers.len().saturating_sub(most);
            waiting.servers.drain(..surplus).collect()
        };
        // A server whose socket ends removes itself.
        drop(surplus);
    }

    /// A server has ended.
    pub(crate) fn forget(&self, process: ServerProcess) {
        self.lock().servers.retain(|server| server.process != process);
    }

    /// Nothing waits any more, and nothing will. Gives what waited, also what was on its way.
    pub(crate) async fn close(&self, limit: Duration) -> Vec<Server> {
        self.lock().closed = true;
        let all_there = async {
            loop {
                let mut arrived = std::pin::pin!(self.arrived.notified());
                arrived.as_mut().enable();
                if self.lock().coming == 0 {
                    return;
                }
                arrived.await;
            }
        };
        if tokio::time::timeout(limit, all_there).await.is_err() {
            tracing::warn!("a server that was being started is not waited for");
        }
        self.lock().servers.drain(..).collect()
    }

    /// Starts servers until this many wait.
    pub(crate) async fn fill(inner: &Arc<Inner>, count: usize) -> Result<(), ProviderError> {
        let claims: Vec<Coming> = {
            let mut waiting = inner.pool.lock();
            if waiting.closed {
                return Err(ProviderError::Closed(NAME.to_owned()));
            }
            let missing = count.min(MOST).saturating_sub(waiting.servers.len() + waiting.coming);
            waiting.coming += missing;
            (0..missing).map(|_| Coming(Arc::clone(inner))).collect()
        };
        stream::iter(claims.into_iter().map(Ok)).try_for_each_concurrent(AT_ONCE, Coming::arrive).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for a server that is being started.
struct Coming(Arc<Inner>);

impl Coming {
    async fn arrive(self) -> Result<(), ProviderError> {
        self.0.check_open()?;
        let server = Server::launch(&self.0).await?;
        // Whoever closes the pool meanwhile waits for it.
        self.0.pool.lock().servers.push_back(server);
        Ok(())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let pool = &self.0.pool;
        pool.lock().coming -= 1;
        pool.arrived.notify_waiters();
    }
}
