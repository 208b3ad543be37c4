//! The JSON of the service (`hosted-apis` 3.2, 3.3). Members that nobody reads here are passed over.

use std::collections::BTreeMap;

use gloveport_protocol::Secret;
use gloveport_provider::SandboxId;
use serde::{Deserialize, Serialize};

/// Asks for a sandbox.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Create<'a> {
    /// Unique among those of the organization.
    pub(crate) name: &'a str,
    pub(crate) labels: BTreeMap<String, String>,
    /// Its ports need no token.
    pub(crate) public: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) build_info: Option<Build>,
    /// Processors, and GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disk: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<&'a str>,
    /// Minutes without use until it is stopped; 0 is never.
    pub(crate) auto_stop_interval: u64,
    /// Minutes for which it is stopped until it is deleted; 0 is at once, and a negative number never.
    pub(crate) auto_delete_interval: i64,
    /// Minutes until it is deleted, whatever it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_minutes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_block_all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_allow_list: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) domain_allow_list: Option<String>,
}

/// What a sandbox is built from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Build {
    pub(crate) dockerfile_content: String,
}

/// A sandbox as it is looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    pub(crate) id: SandboxId,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) state: Option<String>,
    pub(crate) error_reason: Option<String>,
    pub(crate) sandbox_class: Option<String>,
    /// URL of the daemons of all sandboxes.
    pub(crate) toolbox_proxy_url: Option<String>,
    pub(crate) auto_destroy_at: Option<String>,
    pub(crate) updated_at: Option<String>,
}

/// What a sandbox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    /// It is stopped, paused or archived, or about to be. Whether it is so already.
    Paused(bool),
    Gone,
    Failed,
    /// In a word that nobody here knows.
    Unknown,
}

impl Told {
    pub(crate) fn phase(&self) -> Phase {
        match self.state.as_deref().unwrap_or_default() {
            "creating" | "restoring" | "starting" | "resuming" | "pending_build" | "building_snapshot"
            | "pulling_snapshot" | "forking" => Phase::Pending,
            "started" | "snapshotting" | "resizing" => Phase::Running,
            "stopped" | "archived" | "paused" => Phase::Paused(true),
            "stopping" | "archiving" | "pausing" => Phase::Paused(false),
            "destroying" | "destroyed" => Phase::Gone,
            "error" | "build_failed" => Phase::Failed,
            _ => Phase::Unknown,
        }
    }

    /// Why it failed.
    pub(crate) fn reason(&self) -> String {
        let state = self.state.as_deref().unwrap_or("unknown");
        match self.error_reason.as_deref().filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("the service says: {reason} ({state})"),
            None => format!("the service says `{state}` and no reason"),
        }
    }

    /// A virtual machine keeps its processes when it rests; a container does not.
    pub(crate) fn is_machine(&self) -> bool {
        !matches!(self.sandbox_class.as_deref(), None | Some("container"))
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    pub(crate) items: Vec<Told>,
    pub(crate) next_cursor: Option<String>,
}

/// How a port is reached.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Preview {
    pub(crate) url: String,
    pub(crate) token: Option<Secret>,
}

/// A snapshot.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) state: String,
    pub(crate) error_reason: Option<String>,
}

/// A page of snapshots.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshots {
    pub(crate) items: Vec<Snapshot>,
    #[serde(default)]
    pub(crate) total_pages: u64,
}

/// What a command in a sandbox came to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Executed {
    pub(crate) exit_code: i64,
    #[serde(default)]
    pub(crate) result: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wish_has_the_names_of_the_service_and_nothing_that_was_not_asked_for() {
        let mut wish = Create { name: "s", auto_stop_interval: 15, auto_delete_interval: -1, ..Create::default() };
        let plain =
            json!({"name": "s", "labels": {}, "public": false, "autoStopInterval": 15, "autoDeleteInterval": -1});
        assert_eq!(serde_json::to_value(&wish).unwrap(), plain);
        wish.build_info = Some(Build { dockerfile_content: "FROM a\n".to_owned() });
        (wish.ttl_minutes, wish.network_block_all) = (Some(2), Some(true));
        let sent = serde_json::to_value(&wish).unwrap();
        assert_eq!(sent["buildInfo"], json!({"dockerfileContent": "FROM a\n"}));
        assert_eq!((&sent["ttlMinutes"], &sent["networkBlockAll"]), (&json!(2), &json!(true)));
    }

    #[test]
    fn states_of_the_service_are_ours() {
        for (state, phase) in [
            ("pulling_snapshot", Phase::Pending),
            ("started", Phase::Running),
            ("snapshotting", Phase::Running),
            ("stopping", Phase::Paused(false)),
            ("archived", Phase::Paused(true)),
            ("destroying", Phase::Gone),
            ("build_failed", Phase::Failed),
            ("dancing", Phase::Unknown),
        ] {
            let told: Told = serde_json::from_value(json!({"id": "a-b", "state": state, "more": 1})).unwrap();
            assert_eq!(told.phase(), phase, "{state}");
        }
        serde_json::from_value::<Told>(json!({"id": "../x"})).unwrap_err();
    }
}
