//! Bodies of requests. A member that is not known is an error that names it.

use std::{collections::BTreeMap, time::Duration};

use gloveport_protocol::Secret;
use gloveport_provider::{ExposedPort, NetworkPolicy, ResourceLimits, RunAs, SandboxSpec, SessionId};
use http::StatusCode;
use serde::Deserialize;

use super::query::shown;
use crate::{
    fault::Fault,
    identity::Identity,
    labels::{LABEL, NOT_KEPT},
    policy::Asked,
    shared::Shared,
};

/// Most labels of a sandbox.
const LABELS: usize = 64;
/// Most characters of the name of a label.
const LABEL_NAME: usize = 63;
/// Most characters of its value.
const LABEL_VALUE: usize = 256;
/// What labels of the gateway begin with.
const RESERVED: [&str; 3] = ["gloveport-gateway", "gloveport-tenant", "gloveport-session"];
/// Most ports.
const PORTS: usize = 32;
/// Most plugins.
const PLUGINS: usize = 32;
/// Longest life and idle time: ten years.
const LONGEST: u64 = 10 * 365 * 24 * 3600;
/// Most characters of a snapshot's name.
const SNAPSHOT_NAME: usize = 100;

/// A sandbox that is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CreateRequest {
    session_id: Option<String>,
    image: Option<String>,
    command: Option<Vec<String>>,
    working_dir: Option<String>,
    environment: BTreeMap<String, String>,
    secrets: BTreeMap<String, Secret>,
    session_api_key: Option<Secret>,
    workspace: Option<Workspace>,
    labels: BTreeMap<String, String>,
    plugins: Vec<String>,
    resources: Resources,
    network: Option<Network>,
    ports: Vec<Port>,
    user: Option<User>,
    runtime_class: Option<String>,
    ttl_seconds: Option<u64>,
    idle_seconds: Option<u64>,
    kept: Option<bool>,
}

/// What it may use up.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Resources {
    cpus: Option<f64>,
    memory_bytes: Option<u64>,
    disk_bytes: Option<u64>,
    processes: Option<u64>,
    factor: Option<u32>,
    gpus: bool,
}

/// Where its work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Workspace {
    Temporary,
    Directory,
    Volume,
}

/// Whom it may talk to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Network {
    Full,
    None,
    Only(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Port {
    name: String,
    #[serde(default)]
    port: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the names of the interface")]
struct User {
    user: u32,
    #[serde(default)]
    group: Option<u32>,
    #[serde(default)]
    files_group: Option<u32>,
}

/// A new id of a session.
pub(super) fn random() -> Result<SessionId, Fault> {
    SessionId::random().map_err(|error| {
        tracing::error!(%error, "there are no random numbers");
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the gateway could not make an id for the session")
    })
}

impl CreateRequest {
    /// The session that it is for; a new one if it names none.
    pub(super) fn session(&self) -> Result<SessionId, Fault> {
        match &self.session_id {
            Some(id) => SessionId::new(id).map_err(|error| Fault::wrong(error.to_string())),
            None => random(),
        }
    }

    /// What is made for it, if the runtime can, and what of it the tenant may be refused.
    pub(super) fn spec(
        self,
        session: SessionId,
        shared: &Shared,
        who: &Identity,
    ) -> Result<(SandboxSpec, Asked), Fault> {
        self.check(who)?;
        let can = &shared.can;
        let asked = self.asked(shared);
        let mut spec = SandboxSpec::new(session);
        spec.image = self.image.filter(|image| !image.is_empty());
        (spec.command, spec.working_dir) = (self.command, self.working_dir);
        (spec.environment, spec.secrets) = (self.environment, self.secrets);
        spec.session_key = self.session_api_key;
        spec.labels = self.labels;
        spec.plugins = self.plugins;
        spec.limits = ResourceLimits {
            cpus: self.resources.cpus,
            memory: self.resources.memory_bytes,
            disk: self.resources.disk_bytes,
            processes: self.resources.processes,
            // A size of 1 is the base.
            factor: self.resources.factor.filter(|factor| *factor != 1 || can.resource_factor),
            gpus: self.resources.gpus,
        };
        spec.network = match self.network {
            None | Some(Network::Full) => NetworkPolicy::Full,
            Some(Network::None) => NetworkPolicy::None,
            Some(Network::Only(hosts)) => NetworkPolicy::Only(hosts),
        };
        spec.ports = self.ports.into_iter().map(|port| ExposedPort { name: port.name, port: port.port }).collect();
        spec.user = self.user.map(|who| RunAs { user: who.user, group: who.group, files_group: who.files_group });
        spec.runtime_class = self.runtime_class.filter(|class| !class.is_empty());
        let shorter =
            |asked: Option<u64>, most: Option<Duration>| asked.map(Duration::from_secs).into_iter().chain(most).min();
        spec.time_to_live = shorter(self.ttl_seconds, shared.options.time_to_live);
        spec.idle_stop = shorter(self.idle_seconds, shared.options.idle_stop);
        // Sandboxes outlive the gateway that made them where they can.
        spec.keep_alive = can.keep_alive;
        spec.check(shared.provider.name(), can)?;
        if can.labels {
            spec.labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
            if self.kept == Some(false) {
                spec.labels.insert(NOT_KEPT.to_owned(), "true".to_owned());
            }
        }
        Ok((spec, asked))
    }

    /// How much of the tenant's quotas it takes. What is larger than the base size counts as a factor, for those who may have
    /// a certain one only.
    fn asked(&self, shared: &Shared) -> Asked {
        let size = &shared.options.size;
        let factor = self.resources.factor.unwrap_or(1).max(1);
        let (base_cpus, base_memory) = size.times(factor);
        let cpu_millis = self.resources.cpus.map_or(base_cpus, thousandths);
        let memory = self.resources.memory_bytes.unwrap_or(base_memory);
        let times = |amount: u64, base: u64| amount.div_ceil(base.max(1));
        let larger = times(cpu_millis, size.cpu_millis).max(times(memory, size.memory_bytes));
        Asked {
            image: self.image.clone(),
            class: self.runtime_class.clone(),
            factor: u32::try_from(larger).unwrap_or(u32::MAX).max(factor),
            amounts: Some((cpu_millis, memory)),
        }
    }

    fn check(&self, who: &Identity) -> Result<(), Fault> {
        if !matches!(self.workspace, None | Some(Workspace::Temporary)) {
            let detail = "the workspace of a sandbox behind a gateway is `temporary`: directories and volumes of its machine \
                are not for clients";
            return Err(Fault::new(StatusCode::FORBIDDEN, detail));
        }
        let limits = who.tenant.as_ref().map(|tenant| &tenant.limits);
        if self.resources.gpus && limits.is_some_and(|limits| limits.largest_factor.is_some()) {
            let detail = "the tenant may not use GPUs: it has a largest resource factor";
            return Err(Fault::new(StatusCode::FORBIDDEN, detail));
        }
        if self.labels.len() > LABELS {
            return Err(Fault::wrong(format!("a sandbox may have {LABELS} labels at most")));
        }
        self.labels.iter().try_for_each(|(name, value)| check_label(name, value))?;
        if self.ports.len() > PORTS || self.plugins.len() > PLUGINS {
            return Err(Fault::wrong(format!("a sandbox may have {PORTS} ports and {PLUGINS} plugins at most")));
        }
        for port in &self.ports {
            check_word("the name of a port", &port.name)?;
        }
        for plugin in &self.plugins {
            check_word("the name of a plugin", plugin)?;
        }
        check_time("ttl_seconds", self.ttl_seconds)?;
        check_time("idle_seconds", self.idle_seconds)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float is cut to what the type can hold")]
fn thousandths(cpus: f64) -> u64 {
    (cpus * 1000.0).ceil() as u64
}

fn check_time(name: &str, seconds: Option<u64>) -> Result<(), Fault> {
    match seconds {
        Some(seconds) if !(1..=LONGEST).contains(&seconds) => {
            Err(Fault::wrong(format!("`{name}` must be from 1 to {LONGEST}, not {seconds}")))
        }
        _ => Ok(()),
    }
}

/// A word that can be part of a path, a host and a command line.
fn check_word(what: &str, word: &str) -> Result<(), Fault> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let begins_well = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins_well && word.len() <= LABEL_NAME && word.bytes().all(is_plain) {
        return Ok(());
    }
    let word = shown(word);
    Err(Fault::wrong(format!(
        "`{word}` cannot be {what}: use 1 to {LABEL_NAME} letters, digits, `_` and `-`, a letter or digit first"
    )))
}

fn check_label(name: &str, value: &str) -> Result<(), Fault> {
    check_label_name(name)?;
    if value.chars().count() > LABEL_VALUE || value.chars().any(char::is_control) {
        return Err(Fault::wrong(format!(
            "the value of the label `{name}` must have {LABEL_VALUE} characters at most, and no control characters"
        )));
    }
    Ok(())
}

/// Whether clients may name a label.
pub(super) fn check_label_name(name: &str) -> Result<(), Fault> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins_well || name.len() > LABEL_NAME || !name.bytes().all(is_plain) {
        let name = shown(name);
        return Err(Fault::wrong(format!(
            "`{name}` cannot be the name of a label: use 1 to {LABEL_NAME} letters, digits, `.`, `_`, `-` and `/`, a letter \
             or digit first"
        )));
    }
    if is_reserved(name) {
        return Err(Fault::wrong(format!("the label `{name}` cannot be set: the gateway sets it itself")));
    }
    Ok(())
}

/// Whether a label is the gateway's.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| name.get(..reserved.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(reserved)))
}

/// The files of a sandbox that are to be kept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotRequest {
    name: String,
}

impl SnapshotRequest {
    /// The name, if it can be part of that of an image.
    pub(super) fn name(&self) -> Result<&str, Fault> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins_well = self.name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins_well && self.name.len() <= SNAPSHOT_NAME && self.name.bytes().all(is_plain) {
            return Ok(&self.name);
        }
        Err(Fault::wrong(format!(
            "`{}` cannot be the name of a snapshot: use 1 to {SNAPSHOT_NAME} letters, digits, `.`, `_` and `-`, a letter or \
             digit first",
            shown(&self.name)
        )))
    }
}

/// A session that is to begin with the files of another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkRequest {
    #[serde(default)]
    pub(super) session_id: Option<String>,
}

/// A sandbox that is to live longer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendRequest {
    ttl_seconds: u64,
}

impl ExtendRequest {
    /// Whether it makes sense.
    pub(super) fn check(&self) -> Result<(), Fault> {
        check_time("ttl_seconds", Some(self.ttl_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_clients_are_plain_and_none_of_ours() {
        assert!(check_label("team/x.y", "infra ä").is_ok());
        for (name, value) in [
            ("", "a"),
            ("-a", "a"),
            ("a b", "a"),
            ("a\0", "a"),
            ("gloveport-tenant", "two"),
            ("Gloveport-Session", "x"),
            ("gloveport-gateway", "default"),
            (&"a".repeat(64), "a"),
            ("a", "b\nc"),
            ("a", "\0"),
            ("a", &"b".repeat(257)),
        ] {
            assert!(check_label(name, value).is_err(), "{name:?} {value:?}");
        }
    }

    #[test]
    fn numbers_that_nobody_would_send_are_refused_or_cut() {
        assert_eq!((thousandths(1.5), thousandths(f64::MAX), thousandths(-1.0)), (1500, u64::MAX, 0));
        for seconds in [0, LONGEST + 1, u64::MAX] {
            assert!(check_time("ttl_seconds", Some(seconds)).is_err(), "{seconds}");
        }
    }
}
