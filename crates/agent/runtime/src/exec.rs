//! Commands of a session whose output comes while they run.

use std::{fmt, sync::Arc};

use gloveport_event_stream::{EventStore, MaskStream, Masker};
use gloveport_protocol::{
    Action, ActionEvent, BoxFuture, Event, EventSource, Observation, ObservationEvent, RunAction,
    exec::{ExecRequest, Session as Shell},
};

use crate::{
    Approver, Begun, Journal, Operation, Operations, Refused, RunEnd, Runtime, RuntimeError,
    operation::observed,
    runtime::{Handling, Session},
};

/// What became of a command.
#[derive(Debug)]
pub enum Executed {
    /// It was executed; this is in the history.
    Observed(ObservationEvent),
    /// It was not executed.
    Refused(Refused),
}

impl Runtime {
    /// The operations of this session: rated by its gate, and written down in its stream, if it has one. Nobody else
    /// executes what begins here.
    pub fn operations(&self, approver: Arc<dyn Approver>) -> Operations {
        let journal = StreamJournal { session: Arc::clone(&self.session) };
        Operations::new(Some(Arc::clone(&self.session.gate)), approver, Arc::new(journal))
    }

    /// Runs a command and tells its output as it comes. It is rated, asked about and written down as any operation.
    ///
    /// One without a time limit has that of the configuration. A sandbox that knows no commands with output as it comes
    /// executes an action instead, and its output comes at the end.
    pub async fn exec(
        &self,
        mut request: ExecRequest,
        source: EventSource,
        approver: Arc<dyn Approver>,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Executed, RuntimeError> {
        self.connection()?;
        let text = request.command.clone();
        let cwd = request.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
        let action = ActionEvent::from(Action::Run(RunAction { cwd, ..RunAction::new(&text) }));
        let operation = match self.operations(approver).begin(action, source).await? {
            Begun::Allowed(operation) => operation,
            Begun::Refused(refused) => return Ok(Executed::Refused(*refused)),
        };
        request.timeout = request.timeout.or(self.with_limit(operation.action().clone()).timeout);
        self.refresh_tokens(&operation.action().action).await;
        match self.run(&operation, request, output).await {
            Ok(observation) => Ok(Executed::Observed(operation.finish(observation).await?)),
            Err(error) => {
                let reason = error.to_string();
                let lost = operation.output().observation(&text, RunEnd::Lost { reason: &reason });
                if let Err(error) = operation.finish(lost).await {
                    tracing::error!(sid = self.sid(), %error, "the history does not say that a command failed");
                }
                Err(error)
            }
        }
    }

    async fn run(
        &self,
        operation: &Operation,
        request: ExecRequest,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Observation, RuntimeError> {
        let connection = self.connection()?;
        let mut kept = operation.output();
        let mut take = |bytes: &[u8]| {
            kept.push(bytes);
            output(bytes);
        };
        let ended = tokio::select! {
            ended = connection.exec(request.clone(), &mut take) => ended?,
            () = self.session.stop.cancelled() => return Err(RuntimeError::Closed),
        };
        match ended {
            Some(end) => Ok(kept.observation(&request.command, RunEnd::Ended(&end))),
            None => self.run_as_action(request, output).await,
        }
    }

    async fn run_as_action(
        &self,
        request: ExecRequest,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Observation, RuntimeError> {
        if request.session != Shell::Main || request.cwd.is_some() || !request.env.is_empty() {
            return Err(RuntimeError::OnlyActions);
        }
        // It is hidden so that all of its output comes; in the history it is as long as agents see it.
        let run = RunAction { blocking: true, hidden: true, ..RunAction::new(&request.command) };
        let event = ActionEvent { timeout: request.timeout, ..ActionEvent::from(Action::Run(run)) };
        let observation = self.execute(&event).await?;
        output(observation.content().as_bytes());
        Ok(observed(&request.command, observation))
    }
}

/// The stream of a session. What is added here is not executed by the session's dispatcher.
struct StreamJournal {
    session: Arc<Session>,
}

impl fmt::Debug for StreamJournal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StreamJournal").field("sid", &self.session.sid).finish_non_exhaustive()
    }
}

impl Journal for StreamJournal {
    fn add(&self, event: Event, source: EventSource) -> BoxFuture<'_, Result<Option<i64>, RuntimeError>> {
        Box::pin(async move {
            let Some(stream) = &self.session.stream else { return Ok(None) };
            let is_action = matches!(event, Event::Action(_));
            let session = Arc::clone(&self.session);
            let assigned = move |id| {
                if is_action {
                    session.expect_event(id, Handling::Done);
                }
            };
            Ok(stream.add_with(event, source, assigned).await?.id())
        })
    }

    fn events(&self) -> Option<EventStore> {
        self.session.stream.as_ref().map(|stream| stream.store().clone())
    }

    fn mask(&self) -> MaskStream {
        match &self.session.stream {
            Some(stream) => stream.mask_stream(),
            None => Masker::default().stream(),
        }
    }
}
