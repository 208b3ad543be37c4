//! A session gets its sandbox: a new one, or the one that it has.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use gloveport_provider::{Progress, ProviderError, SandboxState};
use gloveport_runtime::{RuntimeError, SelectedRepository, delete};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    fault::Fault,
    live::{Live, Rise},
    record::State,
};

/// Longest time until a new session is ready: images are fetched, repositories cloned and set up.
const LIMIT: Duration = Duration::from_mins(40);

/// Why a session has no sandbox.
struct Trouble {
    fault: Fault,
    /// It never will have one.
    is_final: bool,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self { fault, is_final: false }
    }
}

impl From<RuntimeError> for Trouble {
    fn from(error: RuntimeError) -> Self {
        Fault::from(error).into()
    }
}

impl From<ProviderError> for Trouble {
    fn from(error: ProviderError) -> Self {
        Fault::from(error).into()
    }
}

impl Live {
    /// Begins to get the sandbox, if nobody has begun.
    pub(crate) fn rise(self: &Arc<Self>) {
        let begins = self.rise.send_if_modified(|rise| {
            let is_down = matches!(rise, Rise::Down);
            if is_down {
                *rise = Rise::Coming { admitted: false };
            }
            is_down
        });
        if begins {
            let live = Arc::clone(self);
            let rising = tokio::spawn(async move { live.get_up().await });
            *self.rising.lock().unwrap_or_else(PoisonError::into_inner) = Some(AbortOnDropHandle::new(rising));
        }
    }

    /// Waits until it has its sandbox, or has none.
    pub(crate) async fn risen(&self, limit: Duration) -> Result<(), Fault> {
        let mut rise = self.rise.subscribe();
        let settled = rise.wait_for(|rise| matches!(rise, Rise::Up | Rise::Over(_)));
        match timeout(limit, settled).await {
            Ok(Ok(rise)) => match &*rise {
                Rise::Over(fault) => Err(fault.clone()),
                Rise::Up | Rise::Down | Rise::Coming { .. } => Ok(()),
            },
            Ok(Err(_)) => Err(Fault::later("the session is being let go; ask again")),
            Err(_) => Err(Fault::later("the sandbox of the session does not answer yet; ask again")),
        }
    }

    async fn get_up(&self) {
        let state = self.record.lock().await.state;
        let work = async {
            match state {
                State::Starting => self.begin().await.map_err(|trouble| Trouble { is_final: true, ..trouble }),
                State::Ready | State::Paused => self.go_on(state).await,
                State::Ended | State::Failed => Err(Fault::conflict("the session is over").into()),
            }
        };
        let late = || {
            let detail = format!("the session was not ready within {} minutes", LIMIT.as_secs() / 60);
            Trouble { fault: Fault::later(detail), is_final: true }
        };
        let trouble = match timeout(LIMIT, work).await.unwrap_or_else(|_| Err(late())) {
            Ok(()) => {
                // The runtime does not say so of a sandbox that there was.
                self.status.ready();
                self.rise.send_replace(Rise::Up);
                return;
            }
            Err(trouble) => trouble,
        };
        let mut fault = trouble.fault;
        fault.detail = self.masked(&fault.detail).await;
        tracing::warn!(session = %self.key.id, tenant = self.key.tenant, error = fault.detail, "a session has no sandbox");
        self.runtime.close().await;
        if trouble.is_final && state == State::Starting {
            // What was begun is nobody's.
            if let Err(error) = delete(&self.owner.provider, &self.key.id).await {
                tracing::warn!(session = %self.key.id, %error, "the sandbox of a session that failed is left behind");
            }
        }
        if trouble.is_final {
            let reason = fault.detail.clone();
            let noted = self.change(|record| (record.state, record.reason) = (State::Failed, Some(reason))).await;
            if let Err(error) = noted {
                tracing::error!(session = %self.key.id, error = error.detail, "that a session failed is not noted");
            }
        }
        let text = fault.detail.clone();
        // Who submits an action from here on finds it over, and answers it.
        self.rise.send_replace(Rise::Over(fault));
        self.answer_open(&text).await;
    }

    /// A new session, or one whose start another server has begun.
    async fn begin(&self) -> Result<(), Trouble> {
        let wanted = self.record.lock().await.wanted.clone();
        let rise = self.rise.clone();
        let progress = Progress::to(Arc::new(move |_| {
            rise.send_if_modified(|rise| match rise {
                Rise::Coming { admitted } => !std::mem::replace(admitted, true),
                Rise::Down | Rise::Up | Rise::Over(_) => false,
            });
        }));
        let sandbox = match self.owner.provider.create(&Self::spec(&self.key, &wanted), &progress).await {
            Ok(sandbox) => sandbox.id,
            Err(ProviderError::SessionExists { sandbox, .. }) => sandbox,
            Err(error) => return Err(error.into()),
        };
        self.change(|record| record.sandbox = Some(sandbox.to_string())).await?;
        self.runtime.connect().await?;
        self.hide_session_key();
        if !wanted.mcp_servers.is_empty() {
            self.runtime.mcp_config(&[]).await?;
        }
        if let Some(name) = wanted.repository {
            if self.record.lock().await.cloned.is_none() {
                let selected = SelectedRepository { name, branch: wanted.branch };
                let directory = self.runtime.clone_or_init_repo(Some(&selected)).await?;
                self.change(|record| record.cloned = Some(directory)).await?;
            }
            self.runtime.maybe_run_setup_script().await?;
            self.runtime.maybe_set_up_git_hooks().await?;
        }
        self.change(|record| record.state = State::Ready).await?;
        Ok(())
    }

    /// A session that has a sandbox.
    async fn go_on(&self, state: State) -> Result<(), Trouble> {
        // To make another one would be to forget what was done in the first.
        let found = self.owner.provider.find_session(&self.key.id).await?;
        let Some(sandbox) = found.filter(|sandbox| sandbox.state.is_live()) else {
            let fault = Fault::conflict("the sandbox of the session is gone");
            return Err(Trouble { fault, is_final: true });
        };
        if sandbox.state == SandboxState::Paused {
            // A quota may have no room for it, which is told as it is.
            self.owner.provider.resume(&sandbox.id).await?;
        }
        self.runtime.connect().await?;
        self.hide_session_key();
        if state == State::Paused {
            // Some engines do not keep processes over a pause.
            let variables = self.hidden.lock().await.variables();
            self.runtime.add_env_vars(&variables).await?;
            self.change(|record| record.state = State::Ready).await?;
        }
        Ok(())
    }
}
