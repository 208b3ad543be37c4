//! What the labels of a sandbox say of it: the engine is the only database.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use gloveport_provider::{Sandbox, SandboxState};
use serde::{Deserialize, Serialize};

/// The label of sandboxes that were made here.
pub(crate) const LABEL: (&str, &str) = ("gloveport-e2b", "1");
/// The label with what is known of one.
const MARK: &str = "gloveport-e2b-mark";

/// What is known of a sandbox from its beginning on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Mark {
    /// The template as the client has named it.
    pub(crate) template: String,
    /// What the client has said of it (`metadata`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<String, String>,
    /// Seconds that it was to run.
    pub(crate) timeout: u64,
    /// It is paused when its time is over, and not ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) auto_pause: bool,
    /// A digest of the request, where it had a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    /// Whether it was said that it may, or may not, reach the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) internet: Option<bool>,
}

impl Mark {
    /// The labels of a sandbox with this mark.
    pub(crate) fn labels(&self) -> Result<[(String, String); 2], serde_json::Error> {
        Ok([(LABEL.0.to_owned(), LABEL.1.to_owned()), (MARK.to_owned(), serde_json::to_string(self)?)])
    }

    /// The mark of a sandbox that was made here.
    pub(crate) fn of(sandbox: &Sandbox) -> Option<Self> {
        if sandbox.labels.get(LABEL.0).map(String::as_str) != Some(LABEL.1) {
            return None;
        }
        let mark = sandbox.labels.get(MARK).and_then(|text| serde_json::from_str(text).ok());
        Some(mark.unwrap_or_default())
    }
}

/// When a sandbox was made.
pub(crate) fn created(sandbox: &Sandbox) -> SystemTime {
    sandbox.created.unwrap_or_else(SystemTime::now)
}

/// When a sandbox ends of which nothing else is known: its time is counted from its beginning.
pub(crate) fn first_end(sandbox: &Sandbox, mark: &Mark) -> SystemTime {
    created(sandbox) + Duration::from_secs(mark.timeout)
}

/// Whether it is paused; none of one that has ended.
pub(crate) fn is_paused(sandbox: &Sandbox) -> Option<bool> {
    sandbox.state.is_live().then(|| sandbox.state == SandboxState::Paused)
}
