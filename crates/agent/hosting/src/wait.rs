//! Waits until the server of a sandbox answers, and says what became of it if it does not.

use std::time::Duration;

use gloveport_client::{ActionExecutionClient, causes};
use gloveport_provider::{Phase, Progress, Provider, ProviderError, Sandbox, SandboxState};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{Unreachable, client};

/// Shortest pause between two requests to the server; the longer it was waited for, the longer they are.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Shortest time for one answer; the longer it was waited for, the longer it is. What is sent while there is no way yet is
/// lost without a word, and is not to be waited for when there is one.
const FIRST_ANSWER: Duration = Duration::from_millis(300);
/// Longest time for one answer.
const LONGEST_ANSWER: Duration = Duration::from_secs(5);

/// How long is waited.
#[derive(Clone, Debug)]
pub struct WaitOptions {
    /// In all.
    pub limit: Duration,
    /// Ends the wait.
    pub cancel: CancellationToken,
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self { limit: Duration::from_mins(2), cancel: CancellationToken::new() }
    }
}

/// Why the server does not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It may still come: it did not within the limit.
    #[error("the server of the sandbox `{id}` did not answer within {} s: {last}", limit.as_secs_f64())]
    NotYet {
        /// The sandbox.
        id: String,
        /// The limit.
        limit: Duration,
        /// What was seen last.
        last: String,
    },
    /// It never will: the sandbox has failed or ended.
    #[error("the sandbox `{}` is {}", .0.id, .0.state)]
    Never(Box<Sandbox>),
    /// It was deleted or paused meanwhile.
    #[error("the sandbox `{id}` is {what}")]
    Gone {
        /// The sandbox.
        id: String,
        /// "deleted" or "paused".
        what: &'static str,
    },
    /// Nobody waits any more.
    #[error("the wait for the sandbox `{0}` was given up")]
    Cancelled(String),
    /// The engine does not tell.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// Waits until the server of a sandbox answers `GET /alive` with a success, and gives the sandbox as it is then.
///
/// The engine is asked as often as [`Provider::poll_interval`] allows, so that a sandbox that has failed is known at
/// once and not at the limit. An engine that cannot be reached for a while is waited for.
pub async fn wait_until_alive(
    provider: &dyn Provider,
    sandbox: Sandbox,
    options: &WaitOptions,
    progress: &Progress,
) -> Result<Sandbox, WaitError> {
    progress.enter(Phase::Waiting, "");
    let id = sandbox.id.clone();
    let mut wait = Wait { provider, sandbox, client: None, last: "it has no URL yet".to_owned() };
    let waited = tokio::select! {
        waited = timeout(options.limit, wait.until_alive()) => waited,
        () = options.cancel.cancelled() => return Err(WaitError::Cancelled(id.to_string())),
    };
    let Ok(waited) = waited else {
        return Err(WaitError::NotYet { id: id.to_string(), limit: options.limit, last: wait.last });
    };
    waited?;
    progress.enter(Phase::Alive, "");
    Ok(wait.sandbox)
}

struct Wait<'a> {
    provider: &'a dyn Provider,
    sandbox: Sandbox,
    /// For the URL and key of the sandbox, once it has a URL.
    client: Option<ActionExecutionClient>,
    /// What was seen last.
    last: String,
}

impl Wait<'_> {
    async fn until_alive(&mut self) -> Result<(), WaitError> {
        let began = Instant::now();
        let mut ask_engine = began + self.provider.poll_interval();
        loop {
            if self.is_alive(began.elapsed().clamp(FIRST_ANSWER, LONGEST_ANSWER)).await? {
                return Ok(());
            }
            if Instant::now() >= ask_engine {
                self.ask_engine().await?;
                ask_engine = Instant::now() + self.provider.poll_interval();
            }
            // A tenth of the time so far is what is lost at most.
            sleep((began.elapsed() / 10).clamp(FIRST_PAUSE, LONGEST_PAUSE)).await;
        }
    }

    /// Whether the server answers within this time.
    async fn is_alive(&mut self, within: Duration) -> Result<bool, WaitError> {
        let client = match &self.client {
            Some(client) => client,
            None => match client(&self.sandbox) {
                Ok(made) => self.client.insert(made),
                Err(Unreachable::NoUrl(_)) => return Ok(false),
                Err(error) => {
                    return Err(WaitError::Provider(ProviderError::Engine {
                        engine: self.provider.name().to_owned(),
                        action: "give the URL of the server".to_owned(),
                        reason: causes(&error),
                    }));
                }
            },
        };
        match timeout(within, client.probe()).await {
            Ok(Ok(())) => return Ok(true),
            Ok(Err(error)) => self.last = causes(&error),
            Err(_) => self.last = format!("no answer within {} s", within.as_secs_f64()),
        }
        Ok(false)
    }

    /// What the engine says about the sandbox.
    async fn ask_engine(&mut self) -> Result<(), WaitError> {
        let id = self.sandbox.id.to_string();
        let found = match self.provider.find(&self.sandbox.id).await {
            Ok(found) => found,
            Err(error) if error.is_temporary() => {
                self.last = causes(&error);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let Some(found) = found else { return Err(WaitError::Gone { id, what: "deleted" }) };
        match &found.state {
            SandboxState::Paused => return Err(WaitError::Gone { id, what: "paused" }),
            SandboxState::Stopped(_) | SandboxState::Failed(_) | SandboxState::CrashLooping(_) => {
                return Err(WaitError::Never(Box::new(found)));
            }
            SandboxState::Pending | SandboxState::Unknown(_) => self.last = format!("it is {}", found.state),
            SandboxState::Running => {}
        }
        let moved = found.url != self.sandbox.url || found.headers != self.sandbox.headers;
        self.sandbox = found;
        if moved {
            self.client = None;
        }
        Ok(())
    }
}
