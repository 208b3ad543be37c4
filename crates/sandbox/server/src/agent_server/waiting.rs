//! What a server is before it is told its settings, and what it becomes by them.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use axum::Router;
use futures_util::FutureExt as _;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use super::options::{Deferred, DeferredSettings, SettleError, Settled};
use crate::{
    app::App,
    options::{ServerOptions, Wire},
};

/// Time to become what the settings say.
const SETTLE: Duration = Duration::from_secs(30);
/// Time that a server which stops gives it to end.
const END: Duration = Duration::from_secs(2);

/// Makes the routes of a server.
pub(crate) type Assemble = fn(Arc<App>) -> Router;

/// A server that waits, or has waited.
#[derive(Debug)]
pub(crate) struct Waiting {
    deferred: Deferred,
    state: Mutex<State>,
    settled: OnceLock<Known>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It waits; why the last settings did not do, if there were some.
    Dormant { error: Option<String> },
    /// It has them.
    Initializing,
    /// It serves.
    Ready,
}

impl State {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Dormant { .. } => "dormant",
            Self::Initializing => "initializing",
            Self::Ready => "ready",
        }
    }
}

/// What it has become.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
}

impl Waiting {
    pub(crate) fn new(deferred: Deferred) -> Self {
        let state = Mutex::new(State::Dormant { error: None });
        Self { deferred, state, settled: OnceLock::new(), task: Mutex::default() }
    }

    /// Whether the settings are taken only from whoever shows a key.
    pub(crate) fn has_key(&self) -> bool {
        self.deferred.key.is_some()
    }

    pub(super) fn state(&self) -> State {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settled(&self) -> Option<&Known> {
        self.settled.get()
    }

    /// The server that answers, once it has its settings.
    pub(crate) fn app(&self) -> Option<&Arc<App>> {
        self.settled.get().map(|known| &known.app)
    }

    /// Pages that may ask from a browser.
    pub(crate) fn origins(&self) -> &[String] {
        self.app().and_then(|app| app.origins()).unwrap_or(&self.deferred.origins)
    }

    /// Takes settings if it waits for some; the state that it is in, if not. `told` learns what came of them. It goes on when
    /// whoever brought them is gone.
    pub(super) fn begin<F>(
        &self,
        app: &Arc<App>,
        settings: DeferredSettings,
        assemble: Assemble,
        told: F,
    ) -> Result<(), State>
    where
        F: FnOnce(Result<(), SettleError>) + Send + 'static,
    {
        let mut state = self.locked();
        if !matches!(*state, State::Dormant { .. }) {
            return Err(state.clone());
        }
        *state = State::Initializing;
        drop(state);
        let (app, settling) = (Arc::clone(app), self.deferred.settle(settings));
        let task = tokio::spawn(async move {
            let made = AssertUnwindSafe(become_server(&app, settling, assemble)).catch_unwind().await;
            let made = made.unwrap_or_else(|_| Err(SettleError::Failed("a defect of the server".to_owned())));
            if let Some(waiting) = &app.waiting {
                told(waiting.end(made));
            }
        });
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(())
    }

    fn end(&self, made: Result<Known, SettleError>) -> Result<(), SettleError> {
        let mut state = self.locked();
        let outcome = made.map(|known| {
            // Nobody else sets it: one that is not dormant takes no settings.
            let _first = self.settled.set(known);
        });
        *state = match &outcome {
            Ok(()) => State::Ready,
            Err(SettleError::Refused(_)) => State::Dormant { error: None },
            Err(SettleError::Failed(text)) => State::Dormant { error: Some(text.clone()) },
        };
        outcome
    }

    /// Ends what it has become, and what it is about to become.
    pub(crate) async fn close(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut task) = task
            && timeout(END, &mut task).await.is_err()
        {
            task.abort();
        }
        if let Some(app) = self.app() {
            Box::pin(app.close()).await;
            app.executor.close().await;
        }
    }
}

/// The server that the settings make.
async fn become_server(
    app: &App,
    settling: impl Future<Output = Result<Settled, SettleError>>,
    assemble: Assemble,
) -> Result<Known, SettleError> {
    let too_slow = |_| SettleError::Failed(format!("it took longer than {} seconds", SETTLE.as_secs()));
    let Settled { executor, keys, options } = timeout(SETTLE, settling).await.map_err(too_slow)??;
    let mut keys = keys.into_iter();
    let options = ServerOptions {
        session_key: keys.next(),
        other_keys: keys.collect(),
        wire: Wire::AgentServer(options),
        ..app.options.clone()
    };
    let (of_app, stop) = (Arc::clone(&executor), app.stop.clone());
    // The events of commands of earlier servers are read.
    match spawn_blocking(move || App::new(of_app, options, stop)).await {
        Ok(app) => Ok(Known { router: assemble(Arc::clone(&app)), app }),
        Err(error) => {
            executor.close().await;
            Err(SettleError::Failed(error.to_string()))
        }
    }
}
