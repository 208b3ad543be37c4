//! Pause, resume, delete, logs (docker-runtime 9 to 11).

use std::sync::Arc;

use bollard::query_parameters::{LogsOptionsBuilder, RemoveContainerOptionsBuilder};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gloveport_provider::{LogOptions, LogStream, ProviderError, SandboxId, SandboxState};
use tokio::time::{Duration, sleep};

use crate::{fault, inner::Inner, view::Container};

/// Largest piece of a log.
const PIECE: usize = 64 * 1024;
/// Lines of a log that an error shows.
const SHOWN: &str = "10";
/// Time for them.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);
/// How often a container that others remove is looked for.
const LOOKS: u32 = 200;

impl Inner {
    pub(crate) async fn pause(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let found = self.existing(id).await?;
        match found.sandbox.state {
            SandboxState::Paused => return Ok(()),
            SandboxState::Running => {}
            state => return Err(ProviderError::State { action: "pause", id: id.clone(), state }),
        }
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let action = format!("pause the container `{id}`");
        match self.engine.ask(&action, docker.pause_container(&found.engine_id)).await {
            // Somebody else was faster.
            Err(error) if error.is_conflict() && self.existing(id).await?.sandbox.state == SandboxState::Paused => {}
            other => other.map_err(fault::of)?,
        }
        match &found.network {
            Some(network) => self.pause_gate(id, network).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn resume(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let found = self.existing(id).await?;
        let docker = self.engine.docker().await.map_err(fault::of)?;
        match &found.sandbox.state {
            SandboxState::Running => return Ok(()),
            SandboxState::Paused => {}
            // Only its gate does not run.
            SandboxState::Unknown(_) if found.network.is_some() => {}
            state => return Err(ProviderError::State { action: "resume", id: id.clone(), state: state.clone() }),
        }
        if let Some(network) = &found.network {
            self.resume_gate(id, network).await?;
            if found.sandbox.state != SandboxState::Paused {
                return Ok(());
            }
        }
        let action = format!("resume the container `{id}`");
        let resumed = if found.frozen {
            self.engine.ask(&action, docker.unpause_container(&found.engine_id)).await
        } else {
            self.engine.ask(&action, docker.start_container(&found.engine_id, None)).await
        };
        match resumed {
            Err(error) if error.status() == Some(500) || error.is_conflict() => {
                match self.existing(id).await?.sandbox.state {
                    SandboxState::Running => Ok(()),
                    _ => Err(fault::of(error)),
                }
            }
            other => other.map_err(fault::of),
        }
    }

    /// Ends a sandbox and removes all that belongs to it; whether there was one.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let Some(found) = self.container(id.as_str()).await? else {
            self.forget(id);
            return Ok(false);
        };
        let removed = self.remove_whole(&found).await?;
        self.forget(id);
        self.holders.forget(&found.engine_id);
        if let Some(overlays) = &self.options.overlays {
            let directory = overlays.join(id.as_str());
            // Nothing mounts it any more; what another user has written there may stay.
            if let Err(error) = tokio::fs::remove_dir_all(&directory).await
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(%error, directory = %directory.display(), "the layers of a sandbox are left");
            }
        }
        Ok(removed)
    }

    /// Removes a sandbox with its gate and network; whether it was there. Returns when all is gone.
    pub(crate) async fn remove_whole(&self, found: &Container) -> Result<bool, ProviderError> {
        if found.audit.is_some() {
            self.stop_gently(&found.engine_id).await?;
        }
        let removed = self.remove(&found.engine_id).await?;
        let at_home = match &found.audit {
            Some(volume) => self.bring_home(&found.sandbox.id, volume).await,
            None => Ok(()),
        };
        if let Some(network) = &found.network {
            self.remove_closed(network).await?;
        }
        if let Some(volume) = found.audit.as_ref().filter(|_| at_home.is_ok()) {
            self.remove_audit_volume(volume).await?;
        }
        if let Some(image) = &found.fork {
            self.remove_snapshot(image).await;
        }
        if found.has_record {
            self.forget_record(&found.engine_id).await?;
        }
        at_home.map(|()| removed)
    }

    /// Removes a container with its own volumes; whether it was there. Returns when it is gone.
    pub(crate) async fn remove(&self, container: &str) -> Result<bool, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        for _ in 0..LOOKS {
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            let action = format!("remove the container `{container}`");
            match self.engine.ask(&action, docker.remove_container(container, Some(options))).await {
                Ok(()) => return Ok(true),
                Err(error) if error.is_not_found() => return Ok(false),
                // Somebody else removes it.
                Err(error) if error.is_conflict() => sleep(Duration::from_millis(50)).await,
                Err(error) => return Err(fault::of(error)),
            }
        }
        let limit = Duration::from_millis(50) * LOOKS;
        Err(ProviderError::Timeout { action: format!("the removal of the container `{container}`"), limit })
    }

    pub(crate) async fn logs(&self, id: &SandboxId, options: LogOptions) -> Result<LogStream, ProviderError> {
        let found = self.existing(id).await?;
        let docker = self.engine.docker().await.map_err(fault::of)?.clone();
        let tail = options.tail.map_or_else(|| "all".to_owned(), |lines| lines.min(i32::MAX as usize).to_string());
        let query = LogsOptionsBuilder::default().follow(options.follow).stdout(true).stderr(true).tail(&tail).build();
        let lines = docker.logs(&found.engine_id, Some(query));
        let action = format!("read the log of the container `{id}`");
        let endpoint = Arc::clone(&self.engine);
        let pieces = lines.flat_map(move |line| {
            let pieces: Vec<Result<Bytes, ProviderError>> = match line {
                Ok(line) => cut(line.into_bytes()).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(fault::of(endpoint.explain(&action, SHOWN_WITHIN, error)))],
            };
            stream::iter(pieces)
        });
        Ok(pieces.boxed())
    }

    /// The last lines of its log, for an error about it.
    pub(crate) async fn last_lines(&self, container: &str) -> String {
        let Ok(docker) = self.engine.docker().await else { return String::new() };
        let query = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(SHOWN).build();
        let lines = docker.logs(container, Some(query));
        let text = lines.filter_map(|line| async { line.ok() }).fold(String::new(), |text, line| async move {
            if text.len() < PIECE { text + &String::from_utf8_lossy(&line.into_bytes()) } else { text }
        });
        tokio::time::timeout(SHOWN_WITHIN, text).await.unwrap_or_default().trim_end().to_owned()
    }

    /// What the server writes goes to our log as well, until it ends (docker-runtime 9).
    pub(crate) fn follow(self: &Arc<Self>, id: SandboxId) {
        let inner = Arc::downgrade(self);
        tokio::spawn(async move {
            let Some(strong) = inner.upgrade() else { return };
            let log = strong.logs(&id, LogOptions { follow: true, tail: None }).await;
            let stop = strong.closing.clone();
            drop(strong);
            let mut log = match log {
                Ok(log) => log,
                Err(error) => return tracing::error!(%error, "the log of the sandbox cannot be followed"),
            };
            loop {
                let piece = tokio::select! {
                    piece = log.next() => piece,
                    () = stop.cancelled() => None,
                };
                let Some(Ok(piece)) = piece else { return };
                for line in String::from_utf8_lossy(&piece).lines().map(str::trim_end).filter(|line| !line.is_empty()) {
                    tracing::debug!("[inside container] {line}");
                }
            }
        });
    }

    /// The sandbox, which must be there.
    pub(crate) async fn existing(&self, id: &SandboxId) -> Result<Container, ProviderError> {
        self.container(id.as_str()).await?.ok_or_else(|| ProviderError::NotFound(id.clone()))
    }
}

fn cut(mut bytes: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    while bytes.len() > PIECE {
        pieces.push(bytes.split_to(PIECE));
    }
    pieces.push(bytes);
    pieces
}
