//! What the service has beside what the core does, and a request that was understood so far.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use axum::http::HeaderMap;
use serde_json::Value;

use crate::{Execution, Sandbox, Shared};

/// A sandbox of Daytona.
pub(super) type Held = Sandbox<More>;

/// What Daytona knows of a sandbox beside what the core does.
pub struct More {
    pub(super) name: String,
    /// What was asked for.
    pub(super) wish: Value,
    /// `container` or `linux-vm`.
    pub(super) class: &'static str,
    /// How often it was started: tokens of ports are new then.
    pub(super) turns: u32,
    /// How often it was changed.
    pub(super) changes: u64,
    /// When it was last of use.
    pub(super) used: SystemTime,
    /// Minutes until it is stopped when nobody uses it, and until it is deleted when it is stopped.
    pub(super) auto_stop: u64,
    pub(super) auto_delete: i64,
    /// When it is deleted, whatever it does.
    pub(super) destroyed: Option<SystemTime>,
    /// Why it failed.
    pub(super) reason: Option<&'static str>,
    /// Sessions of processes, with their commands.
    pub(super) sessions: BTreeMap<String, Vec<(String, Arc<Execution>)>>,
}

/// What Daytona has beside sandboxes.
#[derive(Default)]
pub struct Daytona {
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    /// Sandboxes that lists do not show yet.
    pub(super) late: BTreeSet<String>,
    /// New sandboxes are not shown in lists.
    pub(super) is_late: bool,
    /// Daemons know no `upload-v2`.
    pub(super) is_old: bool,
    /// The class of new sandboxes is a virtual machine.
    pub(super) has_machines: bool,
}

/// A snapshot.
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) layer: PathBuf,
}

impl Daytona {
    /// Names of the snapshots that were made.
    pub fn snapshots(&self) -> Vec<String> {
        self.snapshots.values().map(|snapshot| snapshot.name.clone()).collect()
    }

    /// From now on lists do not show new sandboxes.
    pub fn be_late(&mut self) {
        self.is_late = true;
    }

    /// From now on daemons are those of an older release.
    pub fn be_old(&mut self) {
        self.is_old = true;
    }

    /// From now on sandboxes are virtual machines.
    pub fn have_machines(&mut self) {
        self.has_machines = true;
    }
}

/// A header; none where it is no text.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A request that was understood so far.
pub(super) struct Call {
    pub(super) world: Shared<Daytona>,
    pub(super) query: Vec<(String, String)>,
    pub(super) json: Value,
    /// Whoever asks knows no pages.
    pub(super) is_whole: bool,
}

impl Call {
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}
