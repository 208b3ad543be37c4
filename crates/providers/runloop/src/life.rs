//! Sandboxes rest, go on, end, and are copied.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_hosted::{
    making::Origin,
    record::Labelled,
    server::{OVER, is_over},
};
use gloveport_provider::{
    MOST_SNAPSHOTS, Progress, ProviderError, Sandbox, SandboxId, SandboxState, SessionId, Snapshot,
};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    inner::Inner,
    names::{FORK, LABELS},
    view::failure,
    wire::{self, Devbox},
};

/// What stands before the id of a snapshot where an image is named.
const SCHEME: &str = "snapshot:";
/// How long a snapshot may take.
const SNAPSHOT: Duration = Duration::from_mins(30);
/// First and longest pause before a snapshot is looked at again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

impl Inner {
    /// A sandbox of ours, which must be there.
    pub(crate) async fn existing(&self, id: &SandboxId) -> Result<(Devbox, Labelled), ProviderError> {
        let devbox = self.control.get(id).await?.filter(|devbox| devbox.status != "shutdown");
        let ours = devbox.and_then(|devbox| Some((LABELS.read(devbox.metadata.as_ref())?, devbox)));
        match ours {
            Some((labelled, devbox)) => Ok((devbox, labelled)),
            None => Err(ProviderError::NotFound(id.clone())),
        }
    }

    /// Does something that is refused where it is done already, and waits until a sandbox is in this state.
    async fn turn(&self, action: &'static str, id: &SandboxId, what: &str, wanted: &str) -> Result<(), ProviderError> {
        match self.control.change(action, id, what).await {
            Ok(true) => {}
            Ok(false) => return Err(ProviderError::NotFound(id.clone())),
            // A first try of it may have arrived.
            Err(error) => match self.existing(id).await?.0.status.as_str() {
                status if status == wanted || status == transition(wanted) => {}
                _ => return Err(error),
            },
        }
        let statuses = [wanted, "failure", "shutdown"];
        let reached = self.control.wait(action, id, &statuses, self.options.start_within).await?;
        match reached {
            Some(devbox) if devbox.status == wanted => Ok(()),
            Some(devbox) if devbox.status == "failure" => {
                Err(ProviderError::Start { reason: failure(&devbox), log: String::new() })
            }
            _ => Err(ProviderError::NotFound(id.clone())),
        }
    }

    pub(crate) async fn pause(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let (devbox, _) = self.existing(id).await?;
        if devbox.status == "suspended" {
            return Ok(());
        }
        if devbox.status == "failure" {
            let state = SandboxState::Failed(failure(&devbox));
            return Err(ProviderError::State { action: "pause", id: id.clone(), state });
        }
        self.turn("pause a sandbox", id, "suspend", "suspended").await
    }

    /// Wakes a sandbox. Its launch command starts the server again.
    pub(crate) async fn resume(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let (devbox, labelled) = self.existing(id).await?;
        let refused = |state| Err(ProviderError::State { action: "resume", id: id.clone(), state });
        match devbox.status.as_str() {
            "running" => return Ok(()),
            "failure" => return refused(SandboxState::Failed(failure(&devbox))),
            _ if is_over(&labelled.record) => return refused(SandboxState::Stopped(OVER.to_owned())),
            // It is not refused half-way.
            "suspending" => {
                self.control.wait("pause a sandbox", id, &["suspended"], self.options.start_within).await?;
            }
            _ => {}
        }
        self.turn("resume a sandbox", id, "resume", "running").await
    }

    /// Ends a sandbox, and removes the snapshot that belongs to it. Whether there was one of ours.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let labelled = match self.existing(id).await {
            Ok((_, labelled)) => labelled,
            Err(ProviderError::NotFound(_)) => {
                self.backend.forget(id);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        // It was there a moment ago; who ended it since then, perhaps a first try of this one, does not matter.
        let action = "delete a sandbox";
        if self.control.change(action, id, "shutdown").await? {
            let ended = self.control.wait(action, id, &["shutdown", "failure"], self.options.start_within).await?;
            // One that has failed is told of for ever. Without our labels it is none of ours.
            if ended.is_some_and(|devbox| devbox.status == "failure") {
                self.control.disown(id).await?;
            }
        }
        self.backend.forget(id);
        if let Some(snapshot) = &labelled.record.fork
            && let Err(error) = self.control.delete_snapshot(snapshot).await
        {
            tracing::warn!(%error, snapshot, "the snapshot of a fork is left; `gloveport session gc` removes it");
        }
        Ok(true)
    }

    /// Keeps the disk of a sandbox. Gives the name of the image that it is.
    pub(crate) async fn snapshot(&self, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
        self.disk(id, name).await.map(|snapshot| format!("{SCHEME}{snapshot}"))
    }

    /// The snapshots of the account, but for what forks are made through.
    pub(crate) async fn kept(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let is_of_fork = |name: &Option<String>| name.as_ref().is_some_and(|name| name.starts_with(FORK));
        let kept = self.control.snapshots().await?.into_iter().filter(|snapshot| !is_of_fork(&snapshot.name));
        let told = |snapshot: wire::Snapshot| {
            let image = format!("{SCHEME}{}", snapshot.id);
            let name = snapshot.name.unwrap_or_else(|| image.clone());
            Snapshot { image, name, session: None, created: None }
        };
        Ok(kept.take(MOST_SNAPSHOTS).map(told).collect())
    }

    /// Deletes a snapshot. Whether there was one.
    pub(crate) async fn delete_kept(&self, image: &str) -> Result<bool, ProviderError> {
        match image.strip_prefix(SCHEME) {
            Some(id) if self.kept().await?.iter().any(|it| it.image == image) => self.control.delete_snapshot(id).await,
            _ => Ok(false),
        }
    }

    /// The same, with the id of the snapshot.
    async fn disk(&self, id: &SandboxId, name: &str) -> Result<String, ProviderError> {
        let (devbox, labelled) = self.existing(id).await?;
        if devbox.status == "running" {
            // What programs have written and the disk does not have yet.
            let ran = self.control.run("write all files", id, "sync").await?;
            match ran {
                Some((0, _)) => {}
                Some((_, said)) => return Err(self.control.service.failed("write all files before a snapshot", said)),
                None => return Err(ProviderError::NotFound(id.clone())),
            }
        }
        let body = json!({"name": name, "metadata": {LABELS.session: labelled.session.as_str()}});
        let made = self.control.snapshot(id, &body).await?.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        let (began, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            let action = "make a snapshot";
            let Some(told) = self.control.snapshot_status(&made.id).await? else {
                return Err(self.control.service.failed(action, "it was deleted meanwhile"));
            };
            match told.status.as_str() {
                "complete" => return Ok(made.id),
                "error" | "deleted" => {
                    let reason = told.error_message.unwrap_or_else(|| format!("it is `{}`", told.status));
                    return Err(self.control.service.failed(action, reason));
                }
                _ if began.elapsed() >= SNAPSHOT => {
                    let action = "waiting for Runloop to make a snapshot".to_owned();
                    return Err(ProviderError::Timeout { action, limit: SNAPSHOT });
                }
                _ => sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSES.1);
        }
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
        let snapshot = self.disk(id, &format!("{FORK}{session}")).await?;
        let spec = settings.spec(session.clone(), format!("{SCHEME}{snapshot}"));
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

/// The state on the way to another one.
fn transition(wanted: &str) -> &'static str {
    if wanted == "suspended" { "suspending" } else { "resuming" }
}
