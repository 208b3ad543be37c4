//! The JSON of the control plane (`hosted-apis` 2.2). Members that nobody reads here are passed over.

use std::collections::BTreeMap;

use gloveport_protocol::Secret;
use gloveport_provider::SandboxId;
use serde::{Deserialize, Serialize};

/// Asks for a sandbox.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Create<'a> {
    #[serde(rename = "templateID")]
    pub(crate) template: &'a str,
    /// Seconds until it ends, or rests.
    pub(crate) timeout: u64,
    pub(crate) metadata: &'a BTreeMap<String, String>,
    /// It rests at that time instead of ending.
    pub(crate) auto_pause: bool,
    #[serde(rename = "allow_internet_access", skip_serializing_if = "Option::is_none")]
    pub(crate) allow_internet_access: Option<bool>,
    pub(crate) network: Network,
    /// Only older servers ask for it: the newer call always makes such sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secure: Option<bool>,
}

/// Who reaches a sandbox, and whom it reaches.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Network {
    pub(crate) allow_public_traffic: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow_out: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) deny_out: Vec<String>,
}

/// What a sandbox is reached with. Only the answers to create and connect have all of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Made {
    #[serde(rename = "sandboxID")]
    pub(crate) id: SandboxId,
    pub(crate) envd_access_token: Option<Secret>,
    pub(crate) traffic_access_token: Option<Secret>,
    pub(crate) domain: Option<String>,
}

/// A sandbox as it is looked at or listed. Lists leave out how it is reached.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    #[serde(rename = "sandboxID")]
    pub(crate) id: SandboxId,
    pub(crate) state: String,
    pub(crate) started_at: Option<String>,
    pub(crate) end_at: Option<String>,
    #[serde(default)]
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    pub(crate) envd_access_token: Option<Secret>,
    pub(crate) domain: Option<String>,
}

/// A snapshot that was made.
#[derive(Debug, Deserialize)]
pub(crate) struct Snapshot {
    #[serde(rename = "snapshotID")]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wish_has_the_names_of_the_service() {
        let metadata = [("a".to_owned(), "b".to_owned())].into();
        let network =
            Network { allow_public_traffic: false, allow_out: vec!["x.test".to_owned()], deny_out: Vec::new() };
        let mut wish = Create {
            template: "base",
            timeout: 900,
            metadata: &metadata,
            auto_pause: true,
            allow_internet_access: None,
            network,
            secure: None,
        };
        let expected = json!({
            "templateID": "base", "timeout": 900, "metadata": {"a": "b"}, "autoPause": true,
            "network": {"allowPublicTraffic": false, "allowOut": ["x.test"]},
        });
        assert_eq!(serde_json::to_value(&wish).unwrap(), expected);
        (wish.allow_internet_access, wish.secure) = (Some(false), Some(true));
        let sent = serde_json::to_value(&wish).unwrap();
        assert_eq!((&sent["allow_internet_access"], &sent["secure"]), (&json!(false), &json!(true)));
    }

    #[test]
    fn what_the_service_tells_is_read_with_what_it_leaves_out() {
        let made: Made = serde_json::from_value(json!({
            "templateID": "base", "sandboxID": "iabc123", "clientID": "c", "envdVersion": "0.6.4",
            "envdAccessToken": "t", "domain": null, "more": 1,
        }))
        .unwrap();
        assert_eq!((made.id.as_str(), made.envd_access_token, made.domain), ("iabc123", Some(Secret::new("t")), None));
        let told: Told = serde_json::from_value(json!({
            "sandboxID": "iabc123", "state": "paused", "startedAt": "2026-01-31T12:00:00Z", "endAt": "2026-01-31T12:15:00Z",
        }))
        .unwrap();
        assert_eq!((told.state.as_str(), told.metadata), ("paused", None));
        serde_json::from_value::<Told>(json!({"sandboxID": "../x", "state": "running"})).unwrap_err();
    }
}
