//! What the provider and the server in a container have agreed on.
//!
//! ```text
//! provider                       container
//! create (command, key) ───────►
//! attach standard input ───────►
//! start ───────────────────────► waits for one line on its standard input
//! Input ───────────────────────► listens
//! ```
//!
//! A sandbox that lives with its backend ends with its standard input, however the backend ends: the engine closes it when
//! the connection breaks. Secrets are in that line, and so neither in the container's configuration nor in any image. Those
//! of a sandbox that is kept are also in a file of a volume that belongs to the container alone, because it may be started
//! again by somebody who does not know them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::recorder::Recorder;

/// Port in the container on which the server listens, also one that the caller brings (`spec/remote-runtime-api.md` 1).
pub const PORT: u16 = 60_000;
/// Where our own things are in a container.
pub const DIRECTORY: &str = "/.gloveport";
/// Directory of the volume in which a kept sandbox finds its secrets again.
pub const STATE: &str = "/.gloveport/state";
/// The file in it.
pub const INPUT: &str = "/.gloveport/state/input.json";
/// Variable with the key that the server asks for.
pub const KEY: &str = "SESSION_API_KEY";

/// Exit code of a server whose time is over.
pub const EXPIRED: i64 = 80;
/// Exit code of a server that nobody used.
pub const UNUSED: i64 = 81;
/// Exit code of a server whose backend is gone.
pub const ABANDONED: i64 = 82;
/// Exit code of a server of which nothing can be recorded any more, though it is to be.
pub const UNRECORDED: i64 = 83;

/// The file in that directory in which a server that was started ahead keeps what it was told, for a later start of its container.
pub const CLAIMED: &str = "/.gloveport/state/claimed.json";

/// Where a server that was started ahead is told what it is for, by `POST` with its [key](KEY) in `X-Session-API-Key`.
pub const CLAIM: &str = "/gloveport/claim";

/// What such a server is told. From then on it has another key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimed {
    /// The key that it asks for from now on.
    pub session_key: String,
    /// Variables of its tools.
    pub environment: BTreeMap<String, String>,
    /// More of them, which others may not see.
    pub secrets: BTreeMap<String, String>,
    /// Plugins to load.
    pub plugins: Vec<String>,
    /// It ends after so many seconds.
    pub time_to_live: Option<f64>,
    /// It ends when nobody has asked it anything for so many seconds.
    pub idle_stop: Option<f64>,
}

/// What it keeps of that in its container: its time is over at a moment, and not anew with each start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptClaim {
    /// What it was told.
    pub claimed: Claimed,
    /// When its time is over, in seconds since 1970.
    pub until: Option<f64>,
}

impl fmt::Debug for Claimed {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session_key: _, environment, secrets, plugins, time_to_live, idle_stop } = self;
        f.debug_struct("Claimed")
            .field("environment", &environment.keys())
            .field("secrets", &secrets.keys())
            .field("plugins", plugins)
            .field("time_to_live", time_to_live)
            .field("idle_stop", idle_stop)
            .finish_non_exhaustive()
    }
}

/// The line on standard input.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Variables of the tools that others may not see.
    pub secrets: BTreeMap<String, String>,
    /// Who records what happens; `None` if nothing is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Recorder>,
}

impl fmt::Debug for Input {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("secrets", &self.secrets.keys()).field("audit", &self.audit).finish()
    }
}
