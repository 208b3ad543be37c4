//! What is done in a session by its commands: rated by the configured gate, asked about, and written down.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use gloveport_client::ActionExecutionClient;
use gloveport_event_stream::{EventStore, MaskStream, Masker};
use gloveport_protocol::{BoxFuture, Event, EventSource, Secret};
use gloveport_provider::ProviderContext;
use gloveport_runtime::{
    Approver, Journal, NoJournal, Operation, Operations, RunEnd, RuntimeError, gate_of_operations,
};

use super::{
    handling::Handling,
    history::History,
    runtimes::{Found, Runtimes},
    secrets,
};
use crate::{approve::Person, explained};

/// The operations of a session.
pub(super) async fn of_session(
    runtimes: &Runtimes,
    client: &ActionExecutionClient,
    found: &Found,
    handling: Handling,
) -> anyhow::Result<Operations> {
    asked_by(runtimes, client, found, handling, person(handling)).await
}

/// The same with somebody else who answers questions.
pub(super) async fn asked_by(
    runtimes: &Runtimes,
    client: &ActionExecutionClient,
    found: &Found,
    handling: Handling,
    approver: Arc<dyn Approver>,
) -> anyhow::Result<Operations> {
    let journal: Arc<dyn Journal> = if handling.unrecorded {
        Arc::new(NoJournal)
    } else {
        match Recorder::new(runtimes, client, found).await {
            Ok(Some(recorder)) => Arc::new(recorder),
            Ok(None) => Arc::new(NoJournal),
            Err(error) => {
                tracing::warn!("{NO_ACTION}: {error:#}");
                Arc::new(NoJournal)
            }
        }
    };
    operations(&runtimes.context, found.sandbox.workspace.as_deref(), approver, journal)
}

/// The operations of a sandbox that is only made for one, and of which nothing is kept.
pub(super) fn of_fresh(context: &ProviderContext, handling: Handling) -> anyhow::Result<Operations> {
    of_fresh_asked_by(context, person(handling))
}

/// The same with somebody else who answers questions.
pub(super) fn of_fresh_asked_by(context: &ProviderContext, approver: Arc<dyn Approver>) -> anyhow::Result<Operations> {
    operations(context, None, approver, Arc::new(NoJournal))
}

/// Whoever runs the command.
fn person(handling: Handling) -> Arc<dyn Approver> {
    Arc::new(Person::new(handling.approve, handling.input_is_taken))
}

fn operations(
    context: &ProviderContext,
    workspace: Option<&str>,
    approver: Arc<dyn Approver>,
    journal: Arc<dyn Journal>,
) -> anyhow::Result<Operations> {
    let gate = gate_of_operations(&context.config, &context.environment, workspace)
        .context("the section [security] of the configuration cannot be followed")?;
    Ok(Operations::new(gate, approver, journal))
}

/// What was done for a command, and its operation; or the error with which it failed, which its history tells then.
pub(super) async fn or_lost<T>(
    operation: Box<Operation>,
    command: &str,
    done: anyhow::Result<T>,
) -> anyhow::Result<(Box<Operation>, T)> {
    match done {
        Ok(done) => Ok((operation, done)),
        Err(error) => {
            let reason = explained(&error);
            let lost = operation.output().observation(command, RunEnd::Lost { reason: &reason });
            operation.finish(lost).await?;
            Err(error)
        }
    }
}

/// What a person is told of an operation that is not in the history.
const NO_ACTION: &str = "the command is not in the session's history";

/// The history of a session, which its commands write in turns. What cannot be written down is told, and the command
/// runs all the same: a full disk is a reason to run one.
struct Recorder {
    history: History,
    runtime: String,
    secrets: BTreeMap<String, Secret>,
    /// Something is written down already.
    begun: AtomicBool,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorder").field("runtime", &self.runtime).finish_non_exhaustive()
    }
}

impl Recorder {
    async fn new(runtimes: &Runtimes, client: &ActionExecutionClient, found: &Found) -> anyhow::Result<Option<Self>> {
        let sandbox = &found.sandbox;
        let Some(history) = History::of(&runtimes.context, sandbox.session_id.as_str())? else { return Ok(None) };
        let secrets = secrets::of(client, sandbox).await?;
        Ok(Some(Self { history, runtime: found.runtime.clone(), secrets, begun: AtomicBool::new(false) }))
    }

    async fn try_add(&self, event: Event, source: EventSource) -> anyhow::Result<Option<i64>> {
        let begun = self.begun.load(Ordering::Relaxed);
        // One that was removed meanwhile stays removed.
        if begun && !self.history.exists().await? {
            return Ok(None);
        }
        let id = self.history.add(event, source, self.secrets.clone()).await?;
        if !begun {
            self.begun.store(true, Ordering::Relaxed);
            self.history.hosted_by(&self.runtime).await?;
        }
        Ok(id)
    }
}

impl Journal for Recorder {
    fn add(&self, event: Event, source: EventSource) -> BoxFuture<'_, Result<Option<i64>, RuntimeError>> {
        Box::pin(async move {
            let what = match &event {
                Event::Action(_) => NO_ACTION,
                Event::Observation(_) => "what came of the command is not in the session's history",
            };
            Ok(self.try_add(event, source).await.unwrap_or_else(|error| {
                tracing::warn!("{what}: {error:#}");
                None
            }))
        })
    }

    fn events(&self) -> Option<EventStore> {
        Some(self.history.events())
    }

    fn mask(&self) -> MaskStream {
        let mut masker = Masker::default();
        masker.set(self.secrets.clone());
        masker.stream()
    }
}
