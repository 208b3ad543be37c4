//! A sandbox as the native API tells it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use gloveport_protocol::Secret;
use gloveport_provider::{Sandbox, SandboxState};
use serde::Serialize;

use super::request::is_reserved;
use crate::{labels::NOT_KEPT, public::Public};

/// A sandbox.
#[derive(Debug, Serialize)]
pub(super) struct View {
    id: String,
    session_id: String,
    state: String,
    /// Why it is so; empty where there is nothing to say.
    reason: String,
    url: String,
    session_api_key: Option<String>,
    ports: Vec<PortView>,
    labels: BTreeMap<String, String>,
    image: Option<String>,
    workspace: Option<String>,
    kept: bool,
    created_at: Option<String>,
    expires_at: Option<String>,
    restarts: RestartsView,
}

/// A port of a program in a sandbox.
#[derive(Debug, Serialize)]
struct PortView {
    name: String,
    port: Option<u16>,
    url: Option<String>,
}

/// How often the engine has started it anew, and why.
#[derive(Debug, Serialize)]
struct RestartsView {
    count: u32,
    reasons: Vec<String>,
}

impl View {
    /// A sandbox for clients that reach the gateway by this URL.
    pub(super) fn of(sandbox: &Sandbox, public: &Public) -> Self {
        let names: BTreeSet<&String> = sandbox.ports.keys().chain(sandbox.urls.keys()).collect();
        let port = |name: &String| PortView {
            name: name.clone(),
            port: sandbox.ports.get(name).copied(),
            url: sandbox.urls.contains_key(name).then(|| public.port(&sandbox.id, name)),
        };
        let labels = sandbox.labels.iter().filter(|(name, _)| !is_reserved(name));
        Self {
            id: sandbox.id.to_string(),
            session_id: sandbox.session_id.to_string(),
            state: word(&sandbox.state),
            reason: sandbox.state.reason().to_owned(),
            url: public.sandbox(&sandbox.id),
            session_api_key: sandbox.session_key.as_ref().map(Secret::expose).map(str::to_owned),
            ports: names.into_iter().map(port).collect(),
            labels: labels.map(|(name, value)| (name.clone(), value.clone())).collect(),
            image: sandbox.image.clone(),
            workspace: sandbox.workspace.clone(),
            kept: !sandbox.labels.contains_key(NOT_KEPT),
            created_at: sandbox.created.and_then(time),
            expires_at: sandbox.expires.and_then(time),
            restarts: RestartsView { count: sandbox.restarts.count, reasons: sandbox.restarts.reasons.clone() },
        }
    }
}

/// All states as they are written.
pub(super) const STATES: [&str; 7] = ["pending", "running", "paused", "stopped", "failed", "crash_looping", "unknown"];

/// A state as it is written.
pub(super) fn word(state: &SandboxState) -> String {
    state.word().replace('-', "_")
}

/// A time as it is written: RFC 3339, to a thousandth of a second.
pub(super) fn time(time: SystemTime) -> Option<String> {
    Some(format!("{:.3}", jiff::Timestamp::try_from(time).ok()?))
}
