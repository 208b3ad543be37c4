//! Files on their way to and from clients.
//!
//! The network side is asynchronous; the file side runs on a thread that may wait. Between them is a channel with room
//! for a few pieces, so neither runs ahead of the other, and when one side goes away the other ends.

mod incoming;
mod outgoing;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::options::ServerLimits;
pub(crate) use incoming::{Feeder, Source, pieces, pipe};
pub(crate) use outgoing::stream;

/// Turns of transfers: each occupies a thread.
#[derive(Debug)]
pub(crate) struct Transfers {
    turns: Arc<Semaphore>,
    wait: Duration,
}

/// The turn of one transfer, given back when this is dropped.
pub(crate) type Turn = OwnedSemaphorePermit;

/// Others have all the turns.
#[derive(Debug, thiserror::Error)]
#[error("Too many files are transferred; try again later")]
pub(crate) struct Busy;

impl Transfers {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self { turns: Arc::new(Semaphore::new(limits.transfers)), wait: limits.transfer_wait }
    }

    /// Waits for a turn, in the order of arrival.
    pub(crate) async fn turn(&self) -> Result<Turn, Busy> {
        match timeout(self.wait, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }
}

/// Reads files on a thread of its own. The end of the process does not wait for it, since it leaves nothing behind; it
/// waits for the threads of the runtime.
pub(crate) fn detached(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name("transfer".into()).spawn(work) {
        // Whoever waits for the work sees that it is gone.
        tracing::error!(%error, "a thread for a transfer cannot be started");
    }
}

/// Tells a thread that nobody waits for it any more, once this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Stopper(Arc<AtomicBool>);

impl Stopper {
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_given_in_order_and_not_waited_for_without_end() {
        let limits = ServerLimits { transfers: 1, transfer_wait: Duration::from_secs(5), ..ServerLimits::default() };
        let transfers = Transfers::new(&limits);
        let first = transfers.turn().await.unwrap();
        assert!(transfers.turn().await.is_err());
        drop(first);
        assert!(transfers.turn().await.is_ok());
    }
}
