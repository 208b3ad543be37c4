//! Whose turn it is: requests for the sandbox of a session are done one after another.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_provider::Sandbox;
use tokio::{sync::OwnedMutexGuard, time::timeout};
use tokio_util::task::TaskTracker;

/// Time for requests that are under way when the gateway ends.
const END: Duration = Duration::from_secs(10);

/// Tenant and session.
type Name = (String, String);
/// What a session has that nobody was told of.
type Session = Arc<tokio::sync::Mutex<Option<Sandbox>>>;

/// The requests for sandboxes that are under way.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The sessions that have some.
    sessions: Mutex<HashMap<Name, Session>>,
    tasks: TaskTracker,
}

impl Turns {
    /// A request, which ends with its limits.
    pub(crate) fn spawn(&self, request: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(request));
    }

    /// Waits until no other request of the session is under way.
    pub(crate) async fn turn(&self, name: Name) -> Turn<'_> {
        let session = Arc::clone(self.lock().entry(name.clone()).or_default());
        let mut turn = Turn { turns: self, name, held: None };
        turn.held = Some(session.lock_owned().await);
        turn
    }

    /// Waits until nothing is under way any more, for a time.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        if timeout(END, self.tasks.wait()).await.is_err() {
            tracing::warn!("sandboxes whose clients have gone may be left");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose turn it is, or that waits for it.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    name: Name,
    held: Option<OwnedMutexGuard<Option<Sandbox>>>,
}

impl Turn<'_> {
    /// The sandbox that was made for requests before, and of which nobody was told.
    pub(crate) fn inherit(&mut self) -> Option<Sandbox> {
        self.held.as_mut()?.take()
    }

    /// Leaves a sandbox to the request that is next; gives it back if there is none.
    pub(crate) fn leave(&mut self, sandbox: Sandbox) -> Option<Sandbox> {
        // Nobody begins to wait meanwhile.
        let sessions = self.turns.lock();
        let somebody_waits = sessions.get(&self.name).is_some_and(|session| Arc::strong_count(session) > 2);
        match &mut self.held {
            Some(held) if somebody_waits => {
                **held = Some(sandbox);
                None
            }
            _ => Some(sandbox),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut sessions = self.turns.lock();
        drop(self.held.take());
        // Nobody else has it but those who wait.
        if sessions.get(&self.name).is_some_and(|session| Arc::strong_count(session) == 1) {
            sessions.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_of_one_session_wait_for_each_other_and_nothing_is_left_of_them() {
        let turns = Turns::default();
        let name = |session: &str| ("a".to_owned(), session.to_owned());
        let first = turns.turn(name("x")).await;
        let other = turns.turn(name("y")).await;
        let mut second = std::pin::pin!(turns.turn(name("x")));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        // One that gives up takes nobody's turn away.
        assert!(timeout(Duration::from_millis(5), turns.turn(name("x"))).await.is_err());
        drop(first);
        drop((second.await, other));
        assert!(turns.lock().is_empty());
    }
}
