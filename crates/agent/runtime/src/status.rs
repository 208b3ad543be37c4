//! What a session tells about itself, and to whom (runtime-interface 4).

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

macro_rules! statuses {
    ($($(#[$meta:meta])* $name:ident = $wire:literal,)+) => {
        /// The state of a session's sandbox, in the words of the interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RuntimeStatus {
            $($(#[$meta])* $name,)+
        }

        impl RuntimeStatus {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)+
                }
            }
        }
    };
}

statuses! {
    /// The sandbox does not run.
    Stopped = "STATUS$STOPPED",
    /// Its image is being made.
    BuildingRuntime = "STATUS$BUILDING_RUNTIME",
    /// It is being started or found.
    StartingRuntime = "STATUS$STARTING_RUNTIME",
    /// It runs; its server need not answer yet.
    RuntimeStarted = "STATUS$RUNTIME_STARTED",
    /// The repository is fetched, or its set-up script runs.
    SettingUpWorkspace = "STATUS$SETTING_UP_WORKSPACE",
    /// The repository's hooks are installed.
    SettingUpGitHooks = "STATUS$SETTING_UP_GIT_HOOKS",
    /// Actions are executed.
    Ready = "STATUS$READY",
    /// An action failed in a way that is no observation.
    Error = "STATUS$ERROR",
    /// The sandbox is gone or cannot be reached.
    ErrorRuntimeDisconnected = "STATUS$ERROR_RUNTIME_DISCONNECTED",
    /// The model's provider refuses the key.
    ErrorLlmAuthentication = "STATUS$ERROR_LLM_AUTHENTICATION",
    /// The model's provider does not answer.
    ErrorLlmServiceUnavailable = "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE",
    /// The model's provider failed.
    ErrorLlmInternalServerError = "STATUS$ERROR_LLM_INTERNAL_SERVER_ERROR",
    /// The account at the model's provider is empty.
    ErrorLlmOutOfCredits = "STATUS$ERROR_LLM_OUT_OF_CREDITS",
    /// The model's provider refuses the content.
    ErrorLlmContentPolicyViolation = "STATUS$ERROR_LLM_CONTENT_POLICY_VIOLATION",
    /// The agent stopped because the model's provider refuses more requests.
    AgentRateLimitedStoppedMessage = "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE",
    /// A git provider refuses the token.
    GitProviderAuthenticationError = "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR",
    /// The model is asked once more.
    LlmRetry = "STATUS$LLM_RETRY",
    /// Knowledge could not be fetched.
    ErrorMemory = "STATUS$ERROR_MEMORY",
}

impl fmt::Display for RuntimeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How grave a status is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusLevel {
    /// As it should be.
    Info,
    /// Something is wrong.
    Error,
}

impl StatusLevel {
    /// The name that callbacks of the interface get.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Error => "error",
        }
    }
}

/// Is told each status: its level, the status, and a text, which may be empty. It must not block.
pub type StatusCallback = Arc<dyn Fn(StatusLevel, RuntimeStatus, &str) + Send + Sync>;

/// Keeps the latest status and tells the callback.
#[derive(Default)]
pub struct StatusReporter {
    callback: Option<StatusCallback>,
    latest: Mutex<Option<RuntimeStatus>>,
}

impl StatusReporter {
    /// Tells this callback, if there is one.
    pub fn new(callback: Option<StatusCallback>) -> Self {
        Self { callback, latest: Mutex::new(None) }
    }

    /// A new status of the session.
    pub fn set(&self, level: StatusLevel, status: RuntimeStatus, text: &str) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        self.tell(level, status, text);
    }

    /// A step of the set-up, which leaves the status of the session as it is (runtime-interface 4).
    pub fn tell(&self, level: StatusLevel, status: RuntimeStatus, text: &str) {
        if let Some(callback) = &self.callback {
            callback(level, status, text);
        }
    }

    /// The latest status; none before the first.
    pub fn latest(&self) -> Option<RuntimeStatus> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StatusReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusReporter").field("latest", &self.latest()).finish_non_exhaustive()
    }
}
