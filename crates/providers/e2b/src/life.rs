//! Sandboxes rest, go on, end, and are copied.

use std::sync::Arc;

use gloveport_hosted::{
    making::Origin,
    record::Labelled,
    server::{OVER, is_over},
};
use gloveport_provider::{
    MOST_SNAPSHOTS, Progress, ProviderError, Sandbox, SandboxId, SandboxState, SessionId, Snapshot,
};

use crate::{
    inner::Inner,
    names::{FORK, LABELS, is_of_fork},
    wire::Told,
};

impl Inner {
    /// A sandbox of ours, which must be there.
    pub(crate) async fn existing(&self, id: &SandboxId) -> Result<(Told, Labelled), ProviderError> {
        let told = self.control.get(id).await?;
        let ours = told.and_then(|told| Some((LABELS.read(told.metadata.as_ref())?, told)));
        match ours {
            Some((labelled, told)) => Ok((told, labelled)),
            None => Err(ProviderError::NotFound(id.clone())),
        }
    }

    pub(crate) async fn pause(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let (told, _) = self.existing(id).await?;
        if told.state == "paused" || self.control.pause(id).await? {
            return Ok(());
        }
        Err(ProviderError::NotFound(id.clone()))
    }

    /// Wakes a sandbox. What it is reached with is learnt anew.
    pub(crate) async fn resume(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let (told, labelled) = self.existing(id).await?;
        if told.state == "running" {
            return Ok(());
        }
        if is_over(&labelled.record) {
            let state = SandboxState::Stopped(OVER.to_owned());
            return Err(ProviderError::State { action: "resume", id: id.clone(), state });
        }
        let made = self.control.connect(id, self.options.time_limit).await?;
        self.reached(made.ok_or_else(|| ProviderError::NotFound(id.clone()))?);
        Ok(())
    }

    /// Ends a sandbox, and removes the snapshot that belongs to it. Whether there was one of ours.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let labelled = match self.existing(id).await {
            Ok((_, labelled)) => labelled,
            Err(ProviderError::NotFound(_)) => {
                self.forget(id);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        // It was there a moment ago; who ended it since then, perhaps a first try of this one, does not matter.
        self.control.kill(id).await?;
        self.forget(id);
        if let Some(snapshot) = &labelled.record.fork
            && let Err(error) = self.control.delete_snapshot(snapshot).await
        {
            tracing::warn!(%error, snapshot, "the snapshot of a fork is left; `gloveport session gc` removes it");
        }
        Ok(true)
    }

    /// Keeps the disk of a sandbox as a template. Memory, in which the key and the secrets are, is no part of it.
    pub(crate) async fn snapshot(&self, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
        let (told, labelled) = self.existing(id).await?;
        if told.state == "running" {
            // What programs have written and the disk does not have yet.
            let tokens = self.tokens_of(&told, &labelled.record).await.map_err(|fault| fault.of(id))?;
            let agent = self.agent(id, &tokens)?;
            let (code, said) = agent.run("write all files", "sync", &[]).await.map_err(|fault| fault.of(id))?;
            if code != 0 {
                return Err(self.control.service.failed("write all files before a snapshot", said));
            }
        }
        let made = self.control.snapshot(id, name).await?;
        made.map(|snapshot| snapshot.id).ok_or_else(|| ProviderError::NotFound(id.clone()))
    }

    /// The snapshots of the account, but for what forks are made through.
    pub(crate) async fn kept(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let kept = self.control.snapshots().await?.into_iter().filter(|snapshot| !is_of_fork(&snapshot.names));
        Ok(kept
            .take(MOST_SNAPSHOTS)
            .map(|snapshot| {
                // A full name is `PROJECT/NAME:TAG`; a gateway gives the plain one last.
                let full = snapshot.names.last().unwrap_or(&snapshot.id);
                let plain = full.rsplit('/').next().and_then(|name| name.split(':').next()).unwrap_or(full).to_owned();
                Snapshot { image: snapshot.id, name: plain, session: None, created: None }
            })
            .collect())
    }

    /// Deletes a snapshot of the account, and no other template. Whether there was one.
    pub(crate) async fn delete_kept(&self, image: &str) -> Result<bool, ProviderError> {
        let is_one = self.kept().await?.iter().any(|snapshot| snapshot.image == image);
        Ok(is_one && self.control.delete_snapshot(image).await?)
    }

    /// Makes a sandbox of another session from the disk of this one.
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
        let name = format!("{FORK}{session}").to_ascii_lowercase().replace('.', "-");
        let snapshot = self.snapshot(id, &name).await?;
        let spec = settings.spec(session.clone(), snapshot.clone());
        let origin = Origin { workspace: Some(labelled.record.workspace), snapshot: Some(snapshot.clone()) };
        let made = self.create(&spec, origin, progress).await;
        if made.is_err()
            && let Err(error) = self.control.delete_snapshot(&snapshot).await
        {
            tracing::warn!(%error, snapshot, "the snapshot of a fork that was not made is left");
        }
        made
    }
}
