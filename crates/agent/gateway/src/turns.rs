//! Whose turn it is: requests for the sandbox of a session are done one after another.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::OwnedMutexGuard, time::timeout};
use tokio_util::task::TaskTracker;

use crate::held::Untold;

/// Time for requests that are under way when the gateway ends.
const END: Duration = Duration::from_secs(10);

/// Tenant and session.
type Name = (String, String);
/// What a session has that nobody was told of.
type Left = Arc<tokio::sync::Mutex<Option<Untold>>>;

/// The requests for sandboxes that are under way.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The sessions that have some.
    sessions: Mutex<HashMap<Name, Session>>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Session {
    left: Left,
    /// Its sandbox is being made, or is there and nobody was told of it.
    is_untold: bool,
}

impl Turns {
    /// A request, which ends with its limits.
    pub(crate) fn spawn(&self, request: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(request));
    }

    /// Waits until no other request of the session is under way.
    pub(crate) async fn turn(&self, name: Name) -> Turn<'_> {
        let left = Arc::clone(&self.lock().entry(name.clone()).or_default().left);
        let mut turn = Turn { turns: self, name, held: None };
        turn.held = Some(left.lock_owned().await);
        turn
    }

    /// The request of a session whose turn it is makes a sandbox.
    pub(crate) fn makes(&self, tenant: &str, session: &str) {
        if let Some(session) = self.lock().get_mut(&(tenant.to_owned(), session.to_owned())) {
            session.is_untold = true;
        }
    }

    /// Whether a session may have a sandbox here of which nobody was told.
    pub(crate) fn is_untold(&self, tenant: &str, session: &str) -> bool {
        self.lock().get(&(tenant.to_owned(), session.to_owned())).is_some_and(|session| session.is_untold)
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
    held: Option<OwnedMutexGuard<Option<Untold>>>,
}

impl Turn<'_> {
    /// The sandbox that was made for requests before, and of which nobody was told.
    pub(crate) fn inherit(&mut self) -> Option<Untold> {
        self.held.as_mut()?.take()
    }

    /// Leaves a sandbox to the request that is next; gives it back if there is none.
    pub(crate) fn leave(&mut self, untold: Untold) -> Option<Untold> {
        // Nobody begins to wait meanwhile.
        let sessions = self.turns.lock();
        let somebody_waits = sessions.get(&self.name).is_some_and(|session| Arc::strong_count(&session.left) > 2);
        match &mut self.held {
            Some(held) if somebody_waits => {
                **held = Some(untold);
                None
            }
            _ => Some(untold),
        }
    }

    /// Somebody knows of the sandbox.
    pub(crate) fn told(&self) {
        if let Some(session) = self.turns.lock().get_mut(&self.name) {
            session.is_untold = false;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut sessions = self.turns.lock();
        let Some(session) = sessions.get_mut(&self.name) else { return };
        if let Some(held) = self.held.take() {
            session.is_untold &= held.is_some();
        }
        // Nobody else has it but those who wait.
        if Arc::strong_count(&session.left) == 1 {
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
        // What one makes is told to nobody until its turn says so, or is over.
        assert!(!turns.is_untold("a", "x"));
        turns.makes("a", "x");
        assert!(turns.is_untold("a", "x") && !turns.is_untold("a", "y") && !turns.is_untold("b", "x"));
        first.told();
        assert!(!turns.is_untold("a", "x"));
        turns.makes("a", "x");
        drop(first);
        assert!(!turns.is_untold("a", "x"));
        drop((second.await, other));
        assert!(turns.lock().is_empty());
    }
}
