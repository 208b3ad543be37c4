//! The JSON that the program answers, and which error an answer is.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use gloveport_protocol::Secret;
use gloveport_provider::{
    Check, GcReport, Lifetime, ProviderError, Removed, Restarts, Sandbox, SandboxId, SandboxState, SessionId,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::call::{Call, Ended};

/// Most characters of an answer that is no JSON that an error shows.
const SHOWN: usize = 300;

/// Fields that this version does not know.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Unknown(pub(crate) BTreeMap<String, Value>);

impl Unknown {
    /// Tells their names, never their values.
    pub(crate) fn tell(&self, what: &str) {
        if !self.0.is_empty() {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            tracing::debug!(what, ?names, "fields of an answer that are not known are passed over");
        }
    }
}

/// What an error is about.
pub(crate) enum About<'a> {
    Nothing,
    Sandbox(&'a SandboxId),
    Session(&'a SessionId),
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    hint: Option<String>,
    /// Of `invalid-spec`.
    #[serde(default)]
    field: Option<String>,
    /// Of `session-exists`: the sandbox.
    #[serde(default)]
    id: Option<SandboxId>,
    /// Of `wrong-state`.
    #[serde(flatten)]
    state: Option<SandboxState>,
    /// Of `start-failed`.
    #[serde(default)]
    log: Option<String>,
}

/// Reads the answer of a call.
pub(crate) fn read<T: DeserializeOwned>(call: &Call, ended: &Ended, about: &About<'_>) -> Result<T, ProviderError> {
    let value = match serde_json::from_slice::<Value>(&ended.answer) {
        Ok(value) => value,
        Err(error) => return Err(call.failed(&no_answer(call, ended, &error), &ended.lines)),
    };
    if let Some(failure) = value.get("error").filter(|failure| !failure.is_null()) {
        return Err(match Failure::deserialize(failure) {
            Ok(failure) => failure.into_error(call, ended, about),
            Err(error) => call.failed(&format!("its error cannot be read: {error}"), &ended.lines),
        });
    }
    if !ended.status.success() {
        return Err(
            call.failed(&format!("it ended with {}, and an answer that is no error", ended.status), &ended.lines)
        );
    }
    serde_json::from_value(value)
        .map_err(|error| call.failed(&format!("its answer cannot be read: {error}"), &ended.lines))
}

/// The error that the last line of standard error holds, for calls whose output is no JSON.
pub(crate) fn read_line(call: &Call, ended: &Ended, about: &About<'_>) -> ProviderError {
    #[derive(Deserialize)]
    struct Line {
        error: Failure,
    }
    match ended.lines.last().map(serde_json::from_str::<Line>) {
        Some(Ok(line)) => line.error.into_error(call, ended, about),
        _ => call.failed(&format!("it ended with {}", ended.status), &ended.lines),
    }
}

fn no_answer(call: &Call, ended: &Ended, error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(&ended.answer);
    let how = if ended.status.success() { String::new() } else { format!("it ended with {} and ", ended.status) };
    if text.trim().is_empty() {
        return format!("{how}it wrote no answer");
    }
    // Only what a mask was laid over may be shown: the beginning may be half of a secret.
    let shown: String = call.mask.apply(&text).chars().take(SHOWN).collect();
    format!("{how}its answer is not a JSON object ({error}): {shown}")
}

impl Failure {
    fn into_error(self, call: &Call, ended: &Ended, about: &About<'_>) -> ProviderError {
        let message = call.mask.apply(&self.message);
        let hint = self.hint.map(|hint| call.mask.apply(&hint));
        let engine = call.engine();
        let otherwise = |code: &str| {
            let code = if code == "failed" { String::new() } else { format!(" ({code})") };
            let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            ProviderError::Engine {
                engine: engine.clone(),
                action: call.verb.word().to_owned(),
                reason: format!("{message}{code}{hint}"),
            }
        };
        let say = |fallback: &str| hint.clone().unwrap_or_else(|| fallback.to_owned());
        match (self.code.as_str(), about) {
            ("unsupported", _) => ProviderError::Unsupported { provider: call.provider.clone(), what: message },
            ("invalid-spec", _) => {
                ProviderError::Spec { field: self.field.unwrap_or_else(|| "the spec".to_owned()), reason: message }
            }
            ("not-found", About::Sandbox(id)) => ProviderError::NotFound((*id).clone()),
            ("session-exists", About::Session(session)) => match self.id {
                Some(sandbox) => ProviderError::SessionExists { session: (*session).clone(), sandbox },
                None => otherwise("session-exists, without the sandbox"),
            },
            ("wrong-state", About::Sandbox(id)) => {
                let state = self.state.unwrap_or(SandboxState::Unknown(message));
                ProviderError::State { action: call.verb.word(), id: (*id).clone(), state }
            }
            ("start-failed", _) => {
                let log = self.log.map_or_else(|| ended.lines.tail(), |log| call.mask.apply(&log));
                ProviderError::Start { reason: message, log }
            }
            ("access", _) => {
                ProviderError::Access { engine, reason: message, hint: say("check the credentials of the program") }
            }
            ("unreachable", _) => {
                let hint = say("`gloveport doctor` shows what the program needs");
                ProviderError::Unreachable { engine, source: message.into(), hint }
            }
            ("timeout", _) => ProviderError::Timeout {
                action: format!("`{}` of {engine}: {message}", call.verb.word()),
                limit: ended.took,
            },
            (code, _) => otherwise(code),
        }
    }
}

/// An answer with a sandbox.
#[derive(Deserialize)]
pub(crate) struct OneAnswer {
    pub(crate) sandbox: Option<SandboxAnswer>,
}

/// An answer with sandboxes.
#[derive(Deserialize)]
pub(crate) struct ListAnswer {
    pub(crate) sandboxes: Vec<SandboxAnswer>,
}

/// A sandbox as a program tells it.
#[derive(Deserialize)]
pub(crate) struct SandboxAnswer {
    id: SandboxId,
    session_id: SessionId,
    state: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    session_key: Option<Secret>,
    #[serde(default)]
    urls: BTreeMap<String, String>,
    #[serde(default)]
    ports: BTreeMap<String, u16>,
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    workspace: Option<String>,
    lifetime: Lifetime,
    #[serde(default)]
    created: Option<f64>,
    #[serde(default)]
    expires: Option<f64>,
    #[serde(default)]
    restarts: Restarts,
    #[serde(flatten)]
    more: Unknown,
}

impl SandboxAnswer {
    /// The sandbox; the error is the reason for people.
    pub(crate) fn into_sandbox(self, provider: &str) -> Result<Sandbox, String> {
        self.more.tell("sandbox");
        let reason = self.reason.unwrap_or_default();
        let state = match self.state.as_str() {
            "pending" => SandboxState::Pending,
            "running" => SandboxState::Running,
            "paused" => SandboxState::Paused,
            "stopped" => SandboxState::Stopped(reason),
            "failed" => SandboxState::Failed(reason),
            "crash-looping" => SandboxState::CrashLooping(reason),
            "unknown" => SandboxState::Unknown(reason),
            other => return Err(format!("`{other}` is not a state of a sandbox")),
        };
        let url = self.url.map(|url| url.trim_end_matches('/').to_owned());
        if let Some(url) = url.as_ref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return Err(format!("`{url}` is not a URL of a server; it must begin with http:// or https://"));
        }
        let time = |seconds: Option<f64>| {
            let since = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since))
        };
        Ok(Sandbox {
            id: self.id,
            session_id: self.session_id,
            provider: provider.to_owned(),
            state,
            url,
            session_key: self.session_key.filter(|key| !key.is_empty()),
            urls: self.urls,
            ports: self.ports,
            headers: self.headers,
            labels: self.labels,
            image: self.image,
            workspace: self.workspace,
            lifetime: self.lifetime,
            created: time(self.created),
            expires: time(self.expires),
            restarts: self.restarts,
        })
    }
}

/// An answer to `delete`.
#[derive(Deserialize)]
pub(crate) struct DeleteAnswer {
    pub(crate) deleted: bool,
}

/// An answer to `collect-garbage`.
#[derive(Deserialize)]
pub(crate) struct GarbageAnswer {
    #[serde(default)]
    removed: Vec<RemovedAnswer>,
    #[serde(default)]
    failed: Vec<String>,
}

#[derive(Deserialize)]
struct RemovedAnswer {
    #[serde(default)]
    id: Option<SandboxId>,
    #[serde(default)]
    session_id: Option<SessionId>,
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    reason: String,
}

impl From<GarbageAnswer> for GcReport {
    fn from(answer: GarbageAnswer) -> Self {
        let removed =
            |one: RemovedAnswer| Removed { id: one.id, session_id: one.session_id, path: one.path, reason: one.reason };
        Self { removed: answer.removed.into_iter().map(removed).collect(), failed: answer.failed }
    }
}

/// An answer to `check`.
#[derive(Deserialize)]
pub(crate) struct CheckAnswer {
    checks: Vec<CheckLine>,
}

#[derive(Deserialize)]
struct CheckLine {
    name: String,
    works: bool,
    #[serde(default)]
    found: String,
    #[serde(default)]
    remedy: Option<String>,
}

impl From<CheckAnswer> for Vec<Check> {
    fn from(answer: CheckAnswer) -> Self {
        let check =
            |line: CheckLine| Check { name: line.name, works: line.works, found: line.found, remedy: line.remedy };
        answer.checks.into_iter().map(check).collect()
    }
}

/// An answer that says nothing but that it worked.
#[derive(Deserialize)]
pub(crate) struct Done {}

/// Reads bytes as every kind of answer.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let of = |value: &Value| {
        if let Ok(OneAnswer { sandbox: Some(sandbox) }) = serde_json::from_value(value.clone())
            && let Ok(sandbox) = sandbox.into_sandbox("exec:fuzz")
        {
            assert!(sandbox.url.is_none_or(|url| url.starts_with("http://") || url.starts_with("https://")));
        }
        if let Ok(ListAnswer { sandboxes }) = serde_json::from_value(value.clone()) {
            for sandbox in sandboxes {
                let _refused = sandbox.into_sandbox("exec:fuzz");
            }
        }
        let _garbage = serde_json::from_value::<GarbageAnswer>(value.clone()).map(GcReport::from);
        let _checks = serde_json::from_value::<CheckAnswer>(value.clone()).map(Vec::<Check>::from);
        let _failure = value.get("error").map(Failure::deserialize);
        let _deleted = serde_json::from_value::<DeleteAnswer>(value.clone());
    };
    of(&value);
    let _description = crate::describe::Description::read(value);
}
