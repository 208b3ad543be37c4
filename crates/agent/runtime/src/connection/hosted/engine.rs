//! What the runtimes of OpenHands tell while they connect, each in its own order and words (runtime-interface 4, 16).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_hosting::WaitError;
use gloveport_provider::{
    Capabilities, Phase, PhaseReport, ProgressCallback, ProviderError, SandboxState, SessionId, StandsFor,
};

use crate::{Cause, RuntimeError, RuntimeStatus, StatusLevel, StatusReporter};

/// Whose order and words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Local,
    Docker,
    Kubernetes,
    Remote,
    /// One that OpenHands does not have.
    Other,
}

impl Engine {
    pub(crate) const fn of(provider: &Capabilities) -> Self {
        match provider.stands_for {
            Some(StandsFor::Local) => Self::Local,
            Some(StandsFor::Docker) => Self::Docker,
            Some(StandsFor::Kubernetes) => Self::Kubernetes,
            Some(StandsFor::Remote) => Self::Remote,
            None => Self::Other,
        }
    }

    /// What a phase is as a status; none tells nothing.
    const fn status(self, phase: Phase, attach: bool) -> Option<RuntimeStatus> {
        let told = match phase {
            Phase::PreparingImage => return Some(RuntimeStatus::BuildingRuntime),
            Phase::Started if matches!(self, Self::Docker | Self::Other) => return Some(RuntimeStatus::RuntimeStarted),
            // The session tells that it is ready when the environment is set up, which is not done for an attached one.
            Phase::Alive if attach && matches!(self, Self::Remote) => return Some(RuntimeStatus::Ready),
            Phase::Alive | Phase::Started => false,
            Phase::Creating => !matches!(self, Self::Local),
            Phase::Resuming => matches!(self, Self::Remote | Self::Other),
            Phase::Waiting if attach => matches!(self, Self::Local | Self::Other),
            Phase::Finding | Phase::Waiting => !matches!(self, Self::Remote),
        };
        if told { Some(RuntimeStatus::StartingRuntime) } else { None }
    }

    /// Tells phases as statuses.
    pub(super) fn reporter(self, status: &Arc<StatusReporter>, attach: bool) -> ProgressCallback {
        let reporter = Arc::clone(status);
        let latest = Mutex::new(None);
        Arc::new(move |report: &PhaseReport<'_>| {
            // A provider may make several things in one phase, and wait itself before it is waited for.
            if latest.lock().unwrap_or_else(PoisonError::into_inner).replace(report.phase) == Some(report.phase) {
                return;
            }
            if let Some(status) = self.status(report.phase, attach) {
                reporter.set(StatusLevel::Info, status, "");
            }
        })
    }

    /// There is nothing to attach to.
    pub(super) fn missing(self, session: &SessionId) -> RuntimeError {
        let what = match self {
            Self::Remote => {
                return RuntimeError::NotFound(format!("Could not find existing runtime for SID: {session}"));
            }
            Self::Local => format!("No existing server found for session {session}"),
            Self::Docker => format!("Container openhands-runtime-{session} not found."),
            Self::Kubernetes => format!("Pod openhands-runtime-{session} not found."),
            Self::Other => format!("No existing sandbox found for session {session}"),
        };
        RuntimeError::Disconnected { what, source: None }
    }

    /// The engine did not make the sandbox. What is wrong with the request itself is told as it is.
    pub(super) fn not_made(self, error: ProviderError) -> RuntimeError {
        match (self, error) {
            (_, error @ (ProviderError::Unsupported { .. } | ProviderError::Spec { .. } | ProviderError::Name(_))) => {
                error.into()
            }
            (Self::Remote, error) => RuntimeError::Unavailable {
                what: "the runtime service did not start a sandbox".to_owned(),
                source: Some(Box::new(error)),
            },
            (Self::Kubernetes, error) => {
                RuntimeError::NotFound(format!("Failed to initialize kubernetes resources: {error}"))
            }
            (_, error) => error.into(),
        }
    }

    /// The server of the sandbox did not come.
    pub(super) fn not_alive(self, error: WaitError) -> RuntimeError {
        match (self, error) {
            (_, WaitError::Cancelled(_)) => RuntimeError::Closed,
            (Self::Kubernetes, error) => disconnected("Failed to connect to runtime", Box::new(error)),
            (_, WaitError::Provider(error)) => error.into(),
            (Self::Remote, error @ (WaitError::NotYet { .. } | WaitError::Gone { .. })) => {
                let what = "Runtime is not ready".to_owned();
                RuntimeError::Unavailable { what, source: Some(Box::new(error)) }
            }
            (Self::Remote, WaitError::Never(sandbox)) => {
                let what = match &sandbox.state {
                    SandboxState::CrashLooping(_) => "Runtime crashed and is being restarted, potentially due to \
                                                      memory usage. Please try again."
                        .to_owned(),
                    other => format!("Runtime is unavailable (status: {}). Please try again.", other.word()),
                };
                // The text is the one that others look for; the reason is added where there is one.
                let reason = sandbox.state.reason().to_owned();
                let source = (!reason.is_empty()).then(|| Cause::from(reason));
                RuntimeError::Unavailable { what, source }
            }
            (_, error @ WaitError::NotYet { .. }) => {
                RuntimeError::Unavailable { what: error.to_string(), source: None }
            }
            (Self::Docker, WaitError::Never(sandbox)) => {
                let what = format!("Container {} has exited.", sandbox.id);
                disconnected(what, Cause::from(sandbox.state.to_string()))
            }
            (Self::Docker, WaitError::Gone { id, what: "deleted" }) => {
                RuntimeError::NotFound(format!("Container {id} not found."))
            }
            (Self::Local, WaitError::Never(sandbox)) => {
                disconnected("Server process died", Box::new(WaitError::Never(sandbox)))
            }
            (_, error) => RuntimeError::Disconnected { what: error.to_string(), source: None },
        }
    }

    /// How long the server is waited for.
    pub(super) const fn alive_within(self, configured: Duration) -> Duration {
        match self {
            Self::Remote => configured,
            Self::Kubernetes => Duration::from_mins(5),
            Self::Local | Self::Docker | Self::Other => Duration::from_mins(2),
        }
    }
}

fn disconnected(what: impl Into<String>, source: Cause) -> RuntimeError {
    RuntimeError::Disconnected { what: what.into(), source: Some(source) }
}
