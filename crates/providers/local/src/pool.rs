//! Servers that wait for a session.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{TryStreamExt as _, stream};
use gloveport_provider::ProviderError;

use crate::{launch::Server, provider::Inner, server::ServerProcess};

/// Servers that are started at the same time.
const AT_ONCE: usize = 8;
/// Servers that may wait.
const MOST: usize = 256;

/// The servers that wait, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
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

    /// A server has ended.
    pub(crate) fn forget(&self, process: ServerProcess) {
        self.lock().servers.retain(|server| server.process != process);
    }

    /// Nothing waits any more, and nothing will. Gives what waited.
    pub(crate) fn close(&self) -> Vec<Server> {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.servers.drain(..).collect()
    }

    /// Starts servers until this many wait.
    pub(crate) async fn fill(inner: &Arc<Inner>, count: usize) -> Result<(), ProviderError> {
        let claims: Vec<Coming> = {
            let mut waiting = inner.pool.lock();
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
        let server = Server::launch(&self.0).await?;
        let mut waiting = self.0.pool.lock();
        if waiting.closed {
            // It ends by itself when it is dropped.
            return Err(ProviderError::Closed(crate::fault::NAME.to_owned()));
        }
        waiting.servers.push_back(server);
        Ok(())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut waiting = self.0.pool.lock();
        waiting.coming = waiting.coming.saturating_sub(1);
    }
}
