//! Tasks that HTTP/2 starts, which end with their connection.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

type Running = Arc<Mutex<JoinSet<()>>>;

/// Owns tasks: when it is dropped, they end.
#[derive(Default)]
pub(crate) struct Tasks(Running);

/// Starts tasks that [`Tasks`] owns.
#[derive(Clone)]
pub(crate) struct Starter(Running);

impl Tasks {
    pub(crate) fn starter(&self) -> Starter {
        Starter(Arc::clone(&self.0))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        // Some of them may hold a starter, so the set itself is not dropped yet.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl<F> Executor<F> for Starter
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            future.await;
        });
    }
}
