//! Makes a sandbox, and leaves nothing of one that does not come to life.

use std::time::Duration;

use gloveport_hosting::{WaitError, WaitOptions, wait_until_alive};
use gloveport_protocol::Secret;
use gloveport_provider::{Phase, Progress, Provider, ProviderError, Sandbox, SandboxSpec, SessionId};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long the removal of what was begun may take.
const REMOVAL: Duration = Duration::from_secs(30);

/// How a sandbox is waited for.
pub(super) struct Launch {
    /// Until its server answers, or only until the engine has it.
    pub(super) until_alive: bool,
    /// In all.
    pub(super) limit: Duration,
    /// Gives it up.
    pub(super) stop: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error(transparent)]
    Create(#[from] ProviderError),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error("the sandbox was not created within {} s; --timeout allows more", .0.as_secs_f64())]
    Late(Duration),
    #[error("interrupted; nothing is left of the session")]
    Interrupted,
}

/// A key that nobody can guess, by which we also know our own sandbox.
pub(super) fn session_key() -> anyhow::Result<Secret> {
    let part = || SessionId::random().map_err(|error| anyhow::anyhow!("the system gives no random numbers: {error}"));
    Ok(Secret::new(format!("{}{}", part()?, part()?)))
}

/// Makes the sandbox, whose spec has a key of [`session_key`].
pub(super) async fn launch(
    provider: &dyn Provider,
    spec: &SandboxSpec,
    progress: &Progress,
    launch: &Launch,
) -> anyhow::Result<Sandbox> {
    let made = tokio::select! {
        made = make(provider, spec, progress, launch) => made,
        () = launch.stop.cancelled() => Err(LaunchError::Interrupted),
    };
    match made {
        Ok(sandbox) => Ok(sandbox),
        // Nothing was begun by an engine that has never answered.
        Err(error @ LaunchError::Create(ProviderError::Unreachable { .. })) if progress.timings().is_empty() => {
            Err(error.into())
        }
        Err(error) => {
            match timeout(REMOVAL, remove(provider, spec)).await {
                Ok(Ok(())) => {}
                Ok(Err(left)) => {
                    tracing::warn!("what was begun could not be removed: {left}; try `gloveport session gc`");
                }
                Err(_) => tracing::warn!("what was begun is still being removed; see `gloveport session gc`"),
            }
            Err(with_phase(error, progress))
        }
    }
}

/// What was being done when an engine failed, and for how long.
fn with_phase(error: LaunchError, progress: &Progress) -> anyhow::Error {
    let of_engine = matches!(
        error,
        LaunchError::Create(
            ProviderError::Engine { .. }
                | ProviderError::Start { .. }
                | ProviderError::Timeout { .. }
                | ProviderError::Unreachable { .. }
        ) | LaunchError::Wait(WaitError::NotYet { .. } | WaitError::Never(_))
    );
    // A sandbox that failed does not run, whatever was told before.
    match progress.timings().iter().rfind(|timing| !matches!(timing.phase, Phase::Started | Phase::Alive)) {
        Some(latest) if of_engine => {
            let what =
                format!("{}, {:.1} s after the start", latest.phase.text(), (latest.began + latest.took).as_secs_f64());
            anyhow::Error::from(error).context(what)
        }
        _ => error.into(),
    }
}

async fn make(
    provider: &dyn Provider,
    spec: &SandboxSpec,
    progress: &Progress,
    launch: &Launch,
) -> Result<Sandbox, LaunchError> {
    let deadline = Instant::now() + launch.limit;
    let created = timeout_at(deadline, provider.create(spec, progress)).await;
    let sandbox = created.map_err(|_| LaunchError::Late(launch.limit))??;
    if !launch.until_alive {
        return Ok(sandbox);
    }
    let limit = deadline.saturating_duration_since(Instant::now());
    let options = WaitOptions { limit, cancel: launch.stop.clone() };
    match wait_until_alive(provider, sandbox, &options, progress).await {
        Err(WaitError::Cancelled(_)) => Err(LaunchError::Interrupted),
        waited => Ok(waited?),
    }
}

/// Removes what is there of this very sandbox. One of the same session that somebody else has made has another key.
async fn remove(provider: &dyn Provider, spec: &SandboxSpec) -> Result<(), ProviderError> {
    if let Some(sandbox) = provider.find_session(&spec.session_id).await?
        && spec.session_key.is_some()
        && sandbox.session_key == spec.session_key
    {
        provider.delete(&sandbox.id).await?;
    }
    Ok(())
}
