//! Ports of programs in a sandbox, by name.

use std::collections::BTreeMap;

use gloveport_provider::{ProviderError, SandboxSpec};

use crate::fault::wrong;

/// The plugin that needs a port of its own, and that port.
pub const EDITOR: (&str, u16) = ("vscode", 60_001);
/// Ports for programs of the user.
pub const WORK: [(&str, u16); 2] = [("work-1", 12_000), ("work-2", 12_001)];
/// First port of those that a spec asks for without a number.
const FIRST_FREE: u16 = 12_002;
/// Ports of programs that a spec can ask for.
const MOST_PORTS: usize = 64;

/// Ports that a service has for itself in every sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    /// Those ports.
    pub ports: &'static [u16],
    /// Whose they are, for messages: `the agent of E2B`.
    pub whose: &'static str,
}

impl Reserved {
    /// None.
    pub const NONE: Self = Self { ports: &[], whose: "the service" };

    fn told(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let ports = if ports.is_empty() { "none".to_owned() } else { ports.join(", ") };
        format!("{} has {ports}", self.whose)
    }
}

/// The ports of programs by name, for a server that listens on this one.
///
/// # Errors
///
/// There are too many, or one is used twice.
pub fn ports(spec: &SandboxSpec, server: u16, reserved: &Reserved) -> Result<BTreeMap<String, u16>, ProviderError> {
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
    let mut seen = std::collections::BTreeSet::from([server]);
    seen.extend(reserved.ports);
    match ports.values().find(|port| !seen.insert(**port)) {
        Some(port) => Err(wrong("ports", format!("{port} is used twice; {}", reserved.told()))),
        None => Ok(ports),
    }
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
        let given =
            ports(&asked(&[("web", None), ("db", Some(12_002)), ("more", None)]), 60_000, &Reserved::NONE).unwrap();
        let expected = [("db", 12_002), ("more", 12_004), ("web", 12_003), ("work-1", 12_000), ("work-2", 12_001)];
        assert_eq!(given, expected.map(|(name, port)| (name.to_owned(), port)).into());
        let agent = Reserved { ports: &[49_983], whose: "the agent of E2B" };
        let error = ports(&asked(&[("web", Some(49_983))]), 60_000, &agent).unwrap_err().to_string();
        assert!(error.contains("the agent of E2B has 49983"), "{error}");
        for twice in [49_983, 60_000, 12_000] {
            let error = ports(&asked(&[("web", Some(twice))]), 60_000, &agent).unwrap_err().to_string();
            assert!(error.contains(&format!("{twice} is used twice; the agent")), "{error}");
        }
    }
}
