//! A server of sessions, and what it does by itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::Router;
use futures_util::{StreamExt as _, stream};
use gloveport_event_stream::StoreError;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{SessionOptions, api, sessions::Sessions};

/// Pause between two looks at what others want.
const HAND_OVER: Duration = Duration::from_millis(200);
/// Sessions that are handed over at a time.
const AT_ONCE: usize = 16;
/// Pause between two looks at what others have left.
const LOOK: Duration = Duration::from_secs(5);
/// Longest pause between two looks at what is idle.
const CARE: Duration = Duration::from_secs(5);

/// Why there is no server of sessions.
#[derive(Debug, thiserror::Error)]
#[error("the directory of sessions cannot be used: {0}")]
pub struct SessionServerError(#[from] StoreError);

/// A server of sessions. Clones are the same.
#[derive(Clone, Debug)]
pub struct SessionServer {
    sessions: Arc<Sessions>,
}

impl SessionServer {
    /// A server over this directory, which is made.
    ///
    /// # Errors
    ///
    /// The directory cannot be used.
    pub fn new(options: SessionOptions) -> Result<Self, SessionServerError> {
        Ok(Self { sessions: Arc::new(Sessions::new(options)?) })
    }

    /// The requests, below `/v1/sessions`. Each must have an [`Owner`] as an extension.
    pub fn router(&self) -> Router {
        api::router(&self.sessions)
    }

    /// Lets go what is idle, and puts in order what servers have left that have died, until `stop` is cancelled. Then
    /// followers are told no more.
    pub async fn care(&self, stop: CancellationToken) {
        tokio::join!(self.care_for_idle(&stop), self.hand_over(&stop));
        self.sessions.stop.cancel();
    }

    async fn care_for_idle(&self, stop: &CancellationToken) {
        let sessions = &self.sessions;
        let pause = (sessions.options.idle / 4).clamp(Duration::from_millis(50), CARE);
        let mut looked: Option<Instant> = None;
        loop {
            if looked.is_none_or(|at| at.elapsed() >= LOOK) {
                sessions.put_in_order().await;
                looked = Some(Instant::now());
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                break;
            }
            sessions.let_go_idle().await;
        }
    }

    /// Lets go what another server wants, as soon as nothing is being done in it.
    async fn hand_over(&self, stop: &CancellationToken) {
        while stop.run_until_cancelled(sleep(HAND_OVER)).await.is_some() {
            match self.sessions.files.wanted().await {
                Ok(wanted) => {
                    let each = stream::iter(wanted);
                    each.for_each_concurrent(AT_ONCE, async |key| self.sessions.hand_over(&key).await).await;
                }
                Err(error) => tracing::warn!(%error, "what other servers want cannot be seen"),
            }
        }
    }

    /// Lets go all sessions. Their sandboxes stay.
    pub async fn close(&self) {
        self.sessions.close().await;
    }
}
