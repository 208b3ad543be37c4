//! Ends the sessions of a process that ends (runtime-interface 2.4).

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use crate::runtime::Session;

/// The sessions that are not closed.
static OPEN: Mutex<Vec<Weak<Session>>> = Mutex::new(Vec::new());

pub(crate) fn register(session: &Arc<Session>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|other| other.strong_count() > 0);
    open.push(Arc::downgrade(session));
}

pub(crate) fn forget(session: &Session) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), session));
}

/// Closes all sessions of this process, which a program calls before it ends or when it is told to. Gives the number
/// of those that did not close within the limit.
pub async fn close_all(limit: Duration) -> usize {
    let open: Vec<_> = {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().filter_map(Weak::upgrade).collect()
    };
    let mut closing: tokio::task::JoinSet<()> =
        open.into_iter().map(|session| async move { drop(session.close().await) }).collect();
    let all = async { while closing.join_next().await.is_some() {} };
    if tokio::time::timeout(limit, all).await.is_err() {
        tracing::warn!(left = closing.len(), ?limit, "sessions did not close in time");
    }
    closing.len()
}
