//! What is done about requests to the sandbox that fail (remote-runtime-api 3.2).
//!
//! An action is sent again only in these cases, each of which the reference knows, too:
//!
//! | failure | was it executed? |
//! |---|---|
//! | status 429 | no: it was refused |
//! | status 503 of a paused sandbox that is kept, after it was resumed | no: it was refused |
//! | no connection could be made | no: it was not sent |
//! | the connection closed without a whole answer, and the sandbox lives (client, layer B) | perhaps |
//!
//! One whose connection breaks in another way is not sent again, which the reference does.

use std::{sync::Arc, time::Duration};

use gloveport_client::{ClientError, Failure, Recovery, Verdict};
use gloveport_protocol::BoxFuture;
use gloveport_provider::SandboxState;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::revival::Revival;

/// Most requests in all after network errors.
const ATTEMPTS: u32 = 3;
/// How long an engine may take to notice that a sandbox has ended whose connection broke.
const NOTICE: Duration = Duration::from_secs(1);
/// Time for an answer of the engine.
const ENGINE: Duration = Duration::from_secs(10);
/// The request that has an action executed.
const ACTION: &str = "execute_action";

/// Decides about failed requests by what the engine says about the sandbox.
pub(super) struct Reconnect {
    pub(super) revival: Arc<Revival>,
    pub(super) keep_alive: bool,
    pub(super) retries: bool,
    pub(super) retry_wait: Duration,
    pub(super) stop: CancellationToken,
}

/// What the engine says.
enum Standing {
    /// It may answer later.
    Live,
    Paused,
    /// It does not come back, for this reason.
    Ended(String),
}

impl Recovery for Reconnect {
    fn recover<'a>(&'a self, failure: Failure<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            tokio::select! {
                verdict = self.decide(&failure) => verdict,
                () = self.stop.cancelled() => Verdict::Fail,
            }
        })
    }

    fn lost<'a>(&'a self, failure: Failure<'a>) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            match self.watch(NOTICE.min(self.retry_wait)).await {
                Standing::Ended(reason) => Some(ended(&reason, failure.error)),
                Standing::Live | Standing::Paused => None,
            }
        })
    }
}

impl Reconnect {
    async fn decide(&self, failure: &Failure<'_>) -> Verdict {
        if failure.closed {
            return Verdict::Fail;
        }
        match failure.error {
            // An error in the words of the native interface comes from the server itself, not from a proxy before it.
            ClientError::Status(error) if error.native.is_none() || error.is_paused() => match error.status.as_u16() {
                status @ (404 | 502 | 503 | 504) => self.refused(status, failure.error).await,
                _ => Verdict::Fail,
            },
            ClientError::Unreachable { .. } => self.broken(failure, true).await,
            ClientError::Broken { .. } => self.broken(failure, failure.request != ACTION).await,
            _ => Verdict::Fail,
        }
    }

    /// The server, or the proxy before it, answers that it cannot.
    async fn refused(&self, status: u16, error: &ClientError) -> Verdict {
        if let Standing::Ended(reason) = self.look().await {
            return Verdict::Disconnected(ended(&reason, error));
        }
        match status {
            404 => Verdict::Disconnected(format!(
                "Runtime is not responding. This may be temporary, please try again. Original error: {error}"
            )),
            503 if self.keep_alive => self.revive(error).await,
            _ => Verdict::Disconnected(unavailable(error)),
        }
    }

    /// No connection, or one that broke.
    async fn broken(&self, failure: &Failure<'_>, repeatable: bool) -> Verdict {
        let again = self.retries && repeatable && failure.count < ATTEMPTS;
        let patience = if again { self.retry_wait } else { NOTICE.min(self.retry_wait) };
        match self.watch(patience).await {
            Standing::Ended(reason) => Verdict::Disconnected(ended(&reason, failure.error)),
            Standing::Paused if self.keep_alive && repeatable => self.revive(failure.error).await,
            Standing::Paused => Verdict::Disconnected(unavailable(failure.error)),
            Standing::Live if again => Verdict::Again { after: Duration::ZERO },
            Standing::Live if self.retries && repeatable => Verdict::Exhausted,
            Standing::Live => Verdict::Fail,
        }
    }

    async fn revive(&self, error: &ClientError) -> Verdict {
        match self.revival.revive().await {
            Ok(()) => Verdict::Once,
            Err(reason) => Verdict::Disconnected(format!(
                "Runtime is paused and could not be resumed. Original error: {error}, Resume error: {reason}"
            )),
        }
    }

    /// Asks the engine until it tells that the sandbox rests or has ended, for at most this long.
    async fn watch(&self, patience: Duration) -> Standing {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_millis(5);
        loop {
            let standing = self.look().await;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !matches!(standing, Standing::Live) {
                return standing;
            }
            pause = (pause * 2).min(self.revival.provider.poll_interval());
            sleep(pause.min(left)).await;
        }
    }

    /// What the engine says. One that cannot be asked says nothing against the sandbox.
    async fn look(&self) -> Standing {
        let Revival { provider, id, .. } = &*self.revival;
        match timeout(ENGINE, provider.find(id)).await {
            Ok(Ok(None)) => Standing::Ended(format!("the sandbox `{id}` does not exist any more")),
            Ok(Ok(Some(sandbox))) => match sandbox.state {
                SandboxState::Paused => Standing::Paused,
                state if !state.is_live() => Standing::Ended(format!("the sandbox `{id}` is {state}")),
                _ => Standing::Live,
            },
            Ok(Err(error)) => {
                tracing::debug!(sandbox = %id, %error, "the engine cannot tell what became of it");
                Standing::Live
            }
            Err(_) => Standing::Live,
        }
    }
}

fn ended(reason: &str, error: &ClientError) -> String {
    format!("Runtime is gone: {reason}. Connect a new session. Original error: {error}")
}

fn unavailable(error: &ClientError) -> String {
    format!(
        "Runtime is temporarily unavailable. This may be due to a restart or network issue, please try again. \
         Original error: {error}"
    )
}
