//! Labels, ports and paths.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gloveport_provider::{ProviderError, SandboxSpec};

use crate::fault::wrong;

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "e2b";

/// The label with the session.
pub(crate) const SESSION: &str = "gloveport.e2b.session";
/// The label with what one wish for a sandbox has for itself, by which it is found again when the answer was lost.
pub(crate) const WISH: &str = "gloveport.e2b.wish";
/// The label with all else that is known of a sandbox, as JSON.
pub(crate) const RECORD: &str = "gloveport.e2b.record";
/// The label with what a fork is made with again, as JSON.
pub(crate) const SETTINGS: &str = "gloveport.e2b.settings";
/// Labels that the provider sets itself.
pub(crate) const OURS: [&str; 4] = [SESSION, WISH, RECORD, SETTINGS];

/// What the names of snapshots begin with that were made for a fork and end with it.
pub(crate) const FORK: &str = "gloveport-fork-";
/// The tag of our server among the processes of a sandbox.
pub(crate) const TAG: &str = "gloveport-server";
/// The port of the agent (`hosted-apis` 2.3).
pub(crate) const AGENT_PORT: u16 = 49_983;

/// The plugin that needs a port of its own, and that port.
pub(crate) const EDITOR: (&str, u16) = ("vscode", 60_001);
/// Ports for programs of the user.
pub(crate) const WORK: [(&str, u16); 2] = [("work-1", 12_000), ("work-2", 12_001)];
/// First port of those that a spec asks for without a number.
const FIRST_FREE: u16 = 12_002;
/// Ports of programs that a spec can ask for.
const MOST_PORTS: usize = 64;

/// The ports of programs by name, for a server that listens on this one.
pub(crate) fn ports(spec: &SandboxSpec, server: u16) -> Result<BTreeMap<String, u16>, ProviderError> {
    if spec.ports.len() > MOST_PORTS {
        return Err(wrong("ports", format!("{MOST_PORTS} are possible at most")));
    }
    let mut ports: BTreeMap<String, u16> = WORK.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
    if spec.plugins.iter().any(|plugin| plugin == EDITOR.0) {
        ports.insert(EDITOR.0.to_owned(), EDITOR.1);
    }
    let mut free = FIRST_FREE..;
    for wanted in &spec.ports {
        let taken = |port: &u16| *port == server || spec.ports.iter().any(|other| other.port == Some(*port));
        let port = wanted.port.or_else(|| free.find(|port| !taken(port)));
        ports.insert(wanted.name.clone(), port.ok_or_else(|| wrong("ports", "no port is free"))?);
    }
    let mut seen = std::collections::BTreeSet::from([server, AGENT_PORT]);
    match ports.values().find(|port| !seen.insert(**port)) {
        Some(port) => Err(wrong("ports", format!("{port} is used twice; the agent of E2B has {AGENT_PORT}"))),
        None => Ok(ports),
    }
}

/// A time as labels tell it: seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

/// The time of a label, if it can be one.
pub(crate) fn time(seconds: f64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

#[cfg(test)]
mod tests {
    use gloveport_provider::{ExposedPort, SessionId};

    use super::*;

    #[test]
    fn every_port_has_one_name_and_none_is_the_agents() {
        let asked = |ports: &[(&str, Option<u16>)]| SandboxSpec {
            ports: ports.iter().map(|(name, port)| ExposedPort { name: (*name).to_owned(), port: *port }).collect(),
            ..SandboxSpec::new(SessionId::new("s").unwrap())
        };
        let given = ports(&asked(&[("web", None), ("db", Some(12_002)), ("more", None)]), 60_000).unwrap();
        let expected = [("db", 12_002), ("more", 12_004), ("web", 12_003), ("work-1", 12_000), ("work-2", 12_001)];
        assert_eq!(given, expected.map(|(name, port)| (name.to_owned(), port)).into());
        for twice in [AGENT_PORT, 60_000, 12_000] {
            let error = ports(&asked(&[("web", Some(twice))]), 60_000).unwrap_err().to_string();
            assert!(error.contains(&format!("{twice} is used twice")), "{error}");
        }
    }
}
