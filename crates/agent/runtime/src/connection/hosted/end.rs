//! What becomes of the sandbox: left, paused, kept or deleted (remote-runtime-api 3.3, local-and-cli-runtime A7).

use std::{sync::Arc, time::Duration};

use gloveport_protocol::BoxFuture;
use gloveport_provider::{Provider, ProviderError, Sandbox, SessionId};

use super::{Hosted, HostedOptions, Stage, State};
use crate::RuntimeError;

/// Most sandboxes that a session can have left behind.
const MOST: usize = 64;

/// What becomes of a sandbox when its session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Others go on using it.
    Left,
    /// It is paused and can be resumed.
    Paused,
    /// It goes on, and can be attached to.
    Kept,
    /// Nothing of it stays.
    Deleted,
}

impl Fate {
    const fn of(state: &State, options: &HostedOptions) -> Self {
        // One that was found by a connection that was given up was never the session's.
        if state.attached || matches!(state.stage, Stage::Found) {
            Self::Left
        } else if matches!(state.stage, Stage::Made) {
            // Nobody has ever used it.
            Self::Deleted
        } else if options.keep_alive && options.pause_closed {
            Self::Paused
        } else if options.keep_alive {
            Self::Kept
        } else {
            Self::Deleted
        }
    }
}

impl Hosted {
    /// Gives up the sandbox. It is asked one time for whatever becomes of it; a second call does nothing.
    pub(super) async fn give_up(&self) -> Result<(), RuntimeError> {
        self.stop.cancel();
        // A connection that is being made undoes itself first.
        let _alone = self.connecting.lock().await;
        let state = std::mem::take(&mut *self.state());
        if let Some(refill) = &state.refill {
            refill.abort();
        }
        if let Some(client) = &state.client {
            client.close();
        }
        let Some(sandbox) = &state.sandbox else { return Ok(()) };
        let (id, provider) = (&sandbox.id, &self.provider);
        let result = match Fate::of(&state, &self.options) {
            Fate::Left | Fate::Kept => Ok(()),
            Fate::Paused => self.limited("pausing", sandbox, provider.pause(id)).await,
            Fate::Deleted => return self.limited("deleting", sandbox, provider.delete(id)).await.map(drop),
        };
        // What could not be paused is kept nevertheless.
        let released = if state.held { self.limited("releasing", sandbox, provider.release(id)).await } else { Ok(()) };
        result.and(released)
    }

    /// Takes back what a failed connection has done.
    pub(super) async fn undo(&self) {
        let state = std::mem::take(&mut *self.state());
        let Some(sandbox) = &state.sandbox else { return };
        let undone = if state.stage == Stage::Made {
            self.limited("deleting", sandbox, self.provider.delete(&sandbox.id)).await.map(drop)
        } else if state.held {
            self.limited("releasing", sandbox, self.provider.release(&sandbox.id)).await
        } else {
            Ok(())
        };
        if let Err(error) = undone {
            tracing::error!(session = %self.spec.session_id, sandbox = %sandbox.id, %error, "a failed start left this");
        }
    }

    /// Lets the sandbox rest. Actions wait until it is resumed, or fail (remote-runtime-api 3.2).
    pub async fn pause(&self) -> Result<(), RuntimeError> {
        let sandbox = self.connected()?;
        Ok(self.provider.pause(&sandbox.id).await?)
    }

    /// Lets a paused sandbox go on, waits for its server, and sets its environment up again.
    pub async fn resume(&self) -> Result<(), RuntimeError> {
        let revival = self.state().revival.clone().ok_or(RuntimeError::NotConnected)?;
        tokio::select! {
            resumed = revival.revive() => resumed,
            () = self.stop.cancelled() => Err(RuntimeError::Closed),
        }
    }

    /// Ends the sandbox, whatever the options say, and removes all that belongs to it; `false` if there was none any
    /// more. What is asked of the session from now on fails.
    pub async fn delete(&self) -> Result<bool, RuntimeError> {
        let sandbox = self.connected()?;
        let deleted = self.limited("deleting", &sandbox, self.provider.delete(&sandbox.id)).await?;
        let client = {
            let mut state = self.state();
            (state.sandbox, state.stage, state.held, state.revival) = (None, Stage::Found, false, None);
            state.client.take()
        };
        if let Some(client) = client {
            client.close();
        }
        Ok(deleted)
    }

    async fn limited<T>(
        &self,
        what: &str,
        sandbox: &Sandbox,
        work: BoxFuture<'_, Result<T, ProviderError>>,
    ) -> Result<T, RuntimeError> {
        limited(self.options.close_within, what, sandbox, work).await
    }
}

async fn limited<T>(
    limit: Duration,
    what: &str,
    sandbox: &Sandbox,
    work: BoxFuture<'_, Result<T, ProviderError>>,
) -> Result<T, RuntimeError> {
    let timeout = |_| ProviderError::Timeout { action: format!("{what} the sandbox `{}`", sandbox.id), limit };
    Ok(tokio::time::timeout(limit, work).await.map_err(timeout)??)
}

/// Ends all sandboxes of a session and removes what belongs to them, whoever uses them: what a backend calls when the
/// conversation is deleted (runtime-interface 3, step 11). `false` if there was none.
pub async fn delete(provider: &Arc<dyn Provider>, session: &SessionId) -> Result<bool, RuntimeError> {
    let limit = HostedOptions::default().close_within;
    let mut deleted = false;
    for _ in 0..MOST {
        let Some(sandbox) = provider.find_session(session).await? else { return Ok(deleted) };
        deleted |= limited(limit, "deleting", &sandbox, provider.delete(&sandbox.id)).await?;
    }
    let action = format!("delete the sandboxes of the session `{session}`");
    let reason = format!("there are more than {MOST}, or new ones are made all the time");
    Err(ProviderError::Engine { engine: provider.name().to_owned(), action, reason }.into())
}
