//! A sandbox as its engine tells it.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use gloveport_protocol::Secret;
use serde::{Deserialize, Serialize, Serializer};

use crate::{SandboxId, SessionId};

/// A sandbox as its engine tells it, at the moment of asking. Its JSON has times as seconds since 1970, and the key
/// masked.
#[derive(Clone, Debug, Serialize)]
pub struct Sandbox {
    /// The provider's id for it.
    pub id: SandboxId,
    /// The session it is for.
    pub session_id: SessionId,
    /// Name of the provider.
    pub provider: String,
    /// What it does.
    #[serde(flatten)]
    pub state: SandboxState,
    /// URL of its server, without a slash at the end; `None` while it has none.
    pub url: Option<String>,
    /// The key that its server asks for, as `X-Session-API-Key`; `None` for a server without one.
    pub session_key: Option<Secret>,
    /// URLs of exposed ports by name: `vscode`, `work-1`, the names of the spec.
    pub urls: BTreeMap<String, String>,
    /// Ports in the sandbox that these URLs lead to, by the same names, as far as they are known (`work_hosts` of the
    /// Remote Runtime API).
    pub ports: BTreeMap<String, u16>,
    /// Headers that each request to its server needs beside the key: the access tokens of the tunnels of hosted
    /// services.
    pub headers: BTreeMap<String, Secret>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The image it was made from.
    pub image: Option<String>,
    /// Where the work is, as a path in the sandbox.
    pub workspace: Option<String>,
    /// How long it stays.
    pub lifetime: Lifetime,
    /// When it was made.
    #[serde(serialize_with = "seconds")]
    pub created: Option<SystemTime>,
    /// When it ends by itself.
    #[serde(serialize_with = "seconds")]
    pub expires: Option<SystemTime>,
    /// How often the engine started it anew, and why.
    pub restarts: Restarts,
}

/// What a sandbox does. Whether its server answers is found out by asking it
/// ([`wait_until_alive`](crate::wait_until_alive)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "reason", rename_all = "kebab-case")]
pub enum SandboxState {
    /// It is being made: scheduled, pulled, created.
    Pending,
    /// It runs; its server answers now or soon.
    Running,
    /// It rests, and can be resumed.
    Paused,
    /// It has ended by itself or by its time limit, and does not come back.
    Stopped(String),
    /// It could not be started, or ended with an error.
    Failed(String),
    /// It ended again and again, and the engine goes on trying.
    CrashLooping(String),
    /// The engine cannot tell.
    Unknown(String),
}

impl SandboxState {
    /// The state in one word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped(_) => "stopped",
            Self::Failed(_) => "failed",
            Self::CrashLooping(_) => "crash-looping",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Why it is so, as far as the engine says; may be empty.
    pub fn reason(&self) -> &str {
        match self {
            Self::Pending | Self::Running | Self::Paused => "",
            Self::Stopped(reason) | Self::Failed(reason) | Self::CrashLooping(reason) | Self::Unknown(reason) => reason,
        }
    }

    /// Whether it takes up anything that runs, or may come back.
    pub const fn is_live(&self) -> bool {
        !matches!(self, Self::Stopped(_) | Self::Failed(_))
    }
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            "" => f.write_str(self.word()),
            reason => write!(f, "{} ({reason})", self.word()),
        }
    }
}

/// How long a sandbox stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// As long as the backend that made it.
    Backend,
    /// Until somebody deletes it.
    Kept,
    /// It was to be kept, and the backend that held it has died without giving it up.
    Orphaned,
}

/// How often an engine started a sandbox anew, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarts {
    /// How often.
    pub count: u32,
    /// Why, the latest last: `OOMKilled`, `Error`.
    pub reasons: Vec<String>,
}

#[expect(clippy::ref_option, reason = "the form in which serde calls it")]
fn seconds<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64());
    since.serialize(serializer)
}
