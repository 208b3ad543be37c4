//! Sandboxes are held, end, and are copied.

use std::{sync::Arc, time::Duration};

use gloveport_hosted::record::Labelled;
use gloveport_provider::{Progress, ProviderError, Sandbox, SandboxId, SandboxState, SessionId};
use tokio::time::Instant;

use crate::{
    inner::Inner,
    names::NAME,
    view::{TERMINATED, ended},
    wire::{Empty, Outcome, SetTags, Text, Waited},
};

/// How long a snapshot may take.
const SNAPSHOT: Duration = Duration::from_mins(30);
/// How long one stays that somebody asked for; this is what the service's own SDK asks for.
const STAYS: Duration = Duration::from_hours(30 * 24);
/// How long one stays that a fork is made from: longer than any sandbox.
const OF_FORK: Duration = Duration::from_hours(48);
/// How long the service may wait before it says how far a sandbox is.
const STEP: Duration = Duration::from_secs(10);

impl Inner {
    /// A sandbox of ours that nobody has ended, and how it has ended by itself.
    pub(crate) async fn existing(&self, id: &SandboxId) -> Result<(Labelled, Option<Outcome>), ProviderError> {
        let (outcome, labelled) = tokio::try_join!(self.outcome(id, Duration::ZERO), self.labelled(id))?;
        match (outcome, labelled) {
            (Some(outcome), Some(labelled)) if !is_terminated(outcome.as_ref()) => Ok((labelled, outcome)),
            _ => Err(ProviderError::NotFound(id.clone())),
        }
    }

    /// From now on this backend holds a sandbox. How long it lives was settled when it was made.
    pub(crate) async fn hold(&self, id: &SandboxId) -> Result<(), ProviderError> {
        self.backend.check_open(NAME)?;
        self.existing(id).await?;
        self.backend.held().insert(id.clone());
        Ok(())
    }

    /// Ends a sandbox. Whether there was one of ours.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let outcome = match self.existing(id).await {
            Ok((_, outcome)) => outcome,
            Err(ProviderError::NotFound(_)) => {
                self.backend.forget(id);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let outcome = match outcome {
            None => self.terminate(id).await?,
            outcome => outcome,
        };
        // The service tells of one for ever that has ended by itself. Without our tags it is none of ours.
        if outcome.is_some() && !is_terminated(outcome.as_ref()) {
            let wish = SetTags { sandbox_id: id.to_string(), tags: Vec::new() };
            let _is_gone: Option<Empty> =
                self.control.told("take the tags off a sandbox", "SandboxTagsSetV2", &wish).await?;
        }
        self.backend.forget(id);
        Ok(true)
    }

    /// Ends a sandbox that was there a moment ago, and waits for its end; how it has ended, if that is known.
    async fn terminate(&self, id: &SandboxId) -> Result<Option<Outcome>, ProviderError> {
        let (action, began, limit) = ("delete a sandbox", Instant::now(), self.options.start_within);
        let told: Option<Waited> =
            self.control.told(action, "SandboxTerminateV2", &Text { text: id.to_string() }).await?;
        if told.is_none() {
            return Ok(None);
        }
        while began.elapsed() < limit {
            match self.outcome(id, STEP).await? {
                Some(None) => {}
                Some(outcome) => return Ok(outcome),
                None => return Ok(None),
            }
        }
        Err(ProviderError::Timeout { action: format!("deleting the sandbox `{id}`"), limit })
    }

    /// Keeps the files of a sandbox. Gives the name of the image that it is. The service knows images by their ids alone.
    pub(crate) async fn snapshot(&self, id: &SandboxId) -> Result<String, ProviderError> {
        self.existing(id).await?;
        self.files(id, STAYS).await
    }

    async fn files(&self, id: &SandboxId, stays: Duration) -> Result<String, ProviderError> {
        let Some(router) = self.router(id).await? else { return Err(self.not_running(id).await?) };
        match router.snapshot(stays, SNAPSHOT).await {
            Ok(image) => Ok(format!("image:{image}")),
            Err(refused) => match self.outcome(id, Duration::ZERO).await? {
                Some(None) => Err(refused.error),
                _ => Err(self.not_running(id).await?),
            },
        }
    }

    /// The error of what only a sandbox can do that runs.
    pub(crate) async fn not_running(&self, id: &SandboxId) -> Result<ProviderError, ProviderError> {
        Ok(match self.outcome(id, Duration::ZERO).await? {
            Some(None) => ProviderError::State { action: "look into", id: id.clone(), state: SandboxState::Pending },
            Some(Some(outcome)) if outcome.status != TERMINATED => {
                ProviderError::State { action: "look into", id: id.clone(), state: ended(&outcome) }
            }
            _ => ProviderError::NotFound(id.clone()),
        })
    }

    /// Makes a sandbox of another session from the files of this one.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        id: &SandboxId,
        session: &SessionId,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        let (labelled, _) = self.existing(id).await?;
        let settings = labelled.settings().ok_or_else(|| {
            self.control.service.failed("fork a sandbox", "its tags do not tell what it was made from")
        })?;
        // It is not copied for nothing.
        if let Some(found) = self.by_name(session, false).await? {
            let of = format!("the session `{session}` has the name of the sandbox {found}");
            return match self.labelled(&found).await? {
                Some(_) => Err(ProviderError::SessionExists { session: session.clone(), sandbox: found }),
                None => Err(self.control.service.failed("fork a sandbox", format!("{of}, which is not of gloveport"))),
            };
        }
        let image = self.files(id, OF_FORK).await?;
        let spec = settings.spec(session.clone(), image);
        self.create(&spec, Some(labelled.record.workspace), progress).await
    }
}

fn is_terminated(outcome: Option<&Outcome>) -> bool {
    outcome.is_some_and(|outcome| outcome.status == TERMINATED)
}
