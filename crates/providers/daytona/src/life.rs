//! Sandboxes rest, go on, end, and are copied.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gloveport_hosted::{
    making::Origin,
    record::{self, Labelled},
    server::{OVER, is_over},
};
use gloveport_provider::{
    MOST_SNAPSHOTS, Progress, ProviderError, ResourceLimits, Sandbox, SandboxId, SandboxState, SessionId, Snapshot,
};
use tokio::time::{Instant, sleep};

use crate::{
    inner::Inner,
    launch::Launch,
    names::{self, FORK, LABELS, NAME, SERVER},
    toolbox::Fault,
    view::{Server, server},
    wire::{Phase, Told},
};

/// How long somebody else who starts a server may take.
const STARTING: Duration = Duration::from_secs(10);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(250);

impl Inner {
    /// A sandbox of ours, which must be there.
    pub(crate) async fn existing(&self, id: &SandboxId) -> Result<(Told, Labelled), ProviderError> {
        let told = self.control.get(id.as_str()).await?;
        let told = told.filter(|told| told.id == *id && told.phase() != Phase::Gone);
        let ours = told.and_then(|told| Some((names::labelled(&told)?, told)));
        match ours {
            Some((labelled, told)) => Ok((told, labelled)),
            None => Err(ProviderError::NotFound(id.clone())),
        }
    }

    fn there(id: &SandboxId, is_there: bool) -> Result<(), ProviderError> {
        if is_there { Ok(()) } else { Err(ProviderError::NotFound(id.clone())) }
    }

    /// Lets a sandbox rest: a virtual machine with its memory, a container with its files.
    pub(crate) async fn pause(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let action = "pause a sandbox";
        let (told, labelled) = self.existing(id).await?;
        match told.phase() {
            Phase::Paused(true) => return Ok(()),
            Phase::Paused(false) => {}
            _ => {
                if !labelled.record.kept {
                    // Else it would be deleted when it is stopped.
                    Self::there(id, self.control.act(action, id, "autodelete/-1").await?)?;
                }
                let call = if told.is_machine() { "pause" } else { "stop" };
                match self.control.act(action, id, call).await {
                    Ok(is_there) => Self::there(id, is_there)?,
                    // A first try of this one, whose answer was lost, may have done it.
                    Err(error) => {
                        let (told, _) = self.existing(id).await?;
                        if !matches!(told.phase(), Phase::Paused(_)) {
                            return Err(error);
                        }
                    }
                }
            }
        }
        self.until(id, action, |phase| phase == Phase::Paused(true)).await?;
        self.forget_previews(id);
        Ok(())
    }

    /// Wakes a sandbox, and starts its server where that does not run.
    pub(crate) async fn resume(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let action = "resume a sandbox";
        let (mut told, labelled) = self.existing(id).await?;
        if is_over(&labelled.record) {
            let state = SandboxState::Stopped(OVER.to_owned());
            return Err(ProviderError::State { action: "resume", id: id.clone(), state });
        }
        let rested = matches!(told.phase(), Phase::Paused(_));
        if rested {
            self.until(id, action, |phase| !matches!(phase, Phase::Paused(false))).await?;
            match self.control.act(action, id, "start").await {
                Ok(is_there) => Self::there(id, is_there)?,
                Err(error) => {
                    let (told, _) = self.existing(id).await?;
                    if !matches!(told.phase(), Phase::Pending | Phase::Running) {
                        return Err(error);
                    }
                }
            }
        }
        if told.phase() != Phase::Running {
            told = self.until(id, action, |phase| phase == Phase::Running).await?;
        }
        self.forget_previews(id);
        if rested && !labelled.record.kept {
            Self::there(id, self.control.act(action, id, "autodelete/0").await?)?;
        }
        self.serve_again(&told, &labelled, rested).await.map_err(|fault| fault.of(id))
    }

    /// Starts the server of a sandbox whose processes have ended with its rest, or were killed.
    async fn serve_again(&self, told: &Told, labelled: &Labelled, rested: bool) -> Result<(), Fault> {
        let (toolbox, record) = (self.toolbox(told)?, &labelled.record);
        let found = server(&toolbox, record).await?;
        match found {
            Server::Running => return Ok(()),
            // Without a rest it has ended by itself, and stays so.
            Server::Ended(_) if !rested => return Ok(()),
            Server::Ended(_) | Server::Killed | Server::None => {}
        }
        if !toolbox.session(SERVER).await? {
            // Somebody else may be about to start it.
            let (began, may_begin) = (Instant::now(), rested || found == Server::None);
            while may_begin && began.elapsed() < STARTING {
                if server(&toolbox, record).await? == Server::Running {
                    return Ok(());
                }
                sleep(LOOK).await;
            }
            toolbox.end_session(SERVER).await?;
        }
        let action = "start the server of a sandbox again";
        let failed = |reason: &str| self.control.service.failed(action, reason);
        let api_key = self.control.service.key()?;
        let key = LABELS.key(api_key, labelled).ok_or_else(|| failed("its key was sealed with another API key"))?;
        let settings = labelled.settings().ok_or_else(|| failed("its labels do not tell what it was made from"))?;
        let mut spec = settings.spec(labelled.session.clone(), record.image.clone().unwrap_or_default());
        // The clock goes on while it rests.
        let left = record.expires.map(|expires| expires - record::seconds(SystemTime::now()));
        spec.time_to_live = left.and_then(|left| Duration::try_from_secs_f64(left).ok());
        if let Some(line) = self.secrets(&toolbox, record, &spec).await? {
            let input: gloveport_provider::container::Input =
                serde_json::from_str(line.expose()).map_err(|_| failed("its secrets are not understood"))?;
            spec.secrets = input.secrets.into_iter().map(|(name, value)| (name, value.into())).collect();
        }
        self.launch(&Launch { told, record, spec: &spec, key: &key }).await?;
        Ok(())
    }

    /// Ends a sandbox, waits until it is gone, and removes the snapshot that belongs to it. Whether there was one of ours.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let told = self.control.get(id.as_str()).await?.filter(|told| told.id == *id);
        let Some((told, labelled)) = told.and_then(|told| names::labelled(&told).map(|labelled| (told, labelled)))
        else {
            self.forget(id);
            return Ok(false);
        };
        let was_there = told.phase() != Phase::Gone;
        if was_there {
            // It was there a moment ago; who ended it since then, perhaps a first try of this one, does not matter.
            match self.control.delete(id).await {
                Ok(_) => {}
                Err(error) => {
                    let told = self.control.get(id.as_str()).await?;
                    if told.is_some_and(|told| told.phase() != Phase::Gone) {
                        return Err(error);
                    }
                }
            }
        }
        self.gone(id).await?;
        self.forget(id);
        if let Some(snapshot) = &labelled.record.fork
            && let Err(error) = self.delete_snapshot(snapshot).await
        {
            tracing::warn!(%error, snapshot, "the snapshot of a fork is left; `gloveport session gc` removes it");
        }
        Ok(was_there)
    }

    /// Removes a snapshot by its name. Whether there was one.
    async fn delete_snapshot(&self, name: &str) -> Result<bool, ProviderError> {
        match self.control.snapshot(name).await? {
            Some(snapshot) => self.control.delete_snapshot(&snapshot.id).await,
            None => Ok(false),
        }
    }

    /// The snapshots of the organization, but for what forks are made through.
    pub(crate) async fn kept(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let kept = self.control.snapshots().await?.into_iter().filter(|snapshot| !snapshot.name.starts_with(FORK));
        let told = |name: String| Snapshot { image: name.clone(), name, session: None, created: None };
        Ok(kept.take(MOST_SNAPSHOTS).map(|snapshot| told(snapshot.name)).collect())
    }

    /// Deletes a snapshot of the organization. Whether there was one.
    pub(crate) async fn delete_kept(&self, image: &str) -> Result<bool, ProviderError> {
        if image.is_empty() || image.starts_with(FORK) {
            return Ok(false);
        }
        self.delete_snapshot(image).await
    }

    /// Keeps the files of a sandbox as a snapshot, and gives its name. What of the secrets is among them is sealed.
    pub(crate) async fn snapshot(&self, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
        let action = "make a snapshot";
        let (told, _) = self.existing(id).await?;
        if told.is_machine() {
            let what = "snapshots of a virtual machine, whose memory has secrets".to_owned();
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        if told.phase() == Phase::Running {
            // What programs have written and the disk does not have yet.
            let (code, said) = self.toolbox(&told)?.run(action, "sync", &[]).await.map_err(|fault| fault.of(id))?;
            if code != 0 {
                return Err(self.control.service.failed("write all files before a snapshot", said));
            }
        }
        Self::there(id, self.control.keep(id, name).await?)?;
        let began = Instant::now();
        loop {
            if let Some(snapshot) = self.control.snapshot(name).await? {
                match snapshot.state.as_str() {
                    "active" => break,
                    "error" | "build_failed" => {
                        let reason = snapshot.error_reason.unwrap_or(snapshot.state);
                        return Err(self.control.service.failed(action, reason));
                    }
                    _ => {}
                }
            }
            if began.elapsed() >= self.options.start_within {
                let action = "waiting for Daytona to make a snapshot".to_owned();
                return Err(ProviderError::Timeout { action, limit: self.options.start_within });
            }
            sleep(LOOK).await;
        }
        Ok(name.to_owned())
    }

    /// Makes a sandbox of another session from the files of this one.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        id: &SandboxId,
        session: &SessionId,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        let (_, labelled) = self.existing(id).await?;
        let settings = labelled.settings().ok_or_else(|| {
            self.control.service.failed("fork a sandbox", "its labels do not tell what it was made from")
        })?;
        let snapshot = self.snapshot(id, &format!("{FORK}{session}")).await?;
        let mut spec = settings.spec(session.clone(), snapshot.clone());
        // The snapshot has them.
        spec.limits = ResourceLimits::default();
        let origin = Origin { workspace: Some(labelled.record.workspace), snapshot: Some(snapshot.clone()) };
        let made = self.create(&spec, origin, progress).await;
        if made.is_err()
            && let Err(error) = self.delete_snapshot(&snapshot).await
        {
            tracing::warn!(%error, snapshot, "the snapshot of a fork that was not made is left");
        }
        made
    }
}
