//! The process that a call means: one with pipes, or one on a terminal.

use std::fmt::Write as _;

use gloveport_protocol::{
    processes::ProcessStatus,
    terminals::{TerminalState, TerminalStatus},
};
use serde::Deserialize;

use super::handle::Agent;
use crate::connect::{Code, ConnectError};

/// What ids of terminals begin with that were made here.
const TERMINAL: &str = "e2b.";
/// Longest tag of a process on a terminal.
const TAG: usize = 40;

/// How a call names a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Selector {
    pid: Option<u32>,
    tag: Option<String>,
}

/// A process that runs.
#[derive(Debug)]
pub(super) enum Target {
    Pipes(ProcessStatus),
    Terminal(TerminalStatus),
}

/// The id of a terminal for a process with this tag.
pub(super) fn terminal_id(tag: Option<&str>) -> Result<String, ConnectError> {
    let tag = tag.unwrap_or_default();
    if tag.len() > TAG {
        return Err(ConnectError::wrong(format!("the tag of a process on a terminal has {TAG} bytes at most")));
    }
    let random = gloveport_ids::random::<12>()
        .map_err(|error| ConnectError::new(Code::Internal, format!("the system gives no random numbers: {error}")))?;
    let mut id = TERMINAL.to_owned();
    for byte in tag.bytes() {
        // Writing into a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    Ok(format!("{id}.{random}"))
}

/// The tag in the id of a terminal that was made here; an empty one is none.
pub(super) fn tag_of(id: &str) -> Option<String> {
    let (digits, _) = id.strip_prefix(TERMINAL)?.split_once('.')?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

impl Agent {
    /// All processes that were started here and run.
    pub(super) async fn running(&self) -> Result<Vec<Target>, ConnectError> {
        let client = &self.place.client;
        let processes = client.processes().list().await?.processes.into_iter();
        let mut running: Vec<Target> = processes.filter(|process| process.end.is_none()).map(Target::Pipes).collect();
        let terminals = client.terminals().list().await?.into_iter();
        running.extend(terminals.filter(is_ours).map(Target::Terminal));
        Ok(running)
    }

    /// The process that a call means.
    pub(super) async fn target(&self, selector: Option<&Selector>) -> Result<Target, ConnectError> {
        let none = || ConnectError::wrong("the call names no process; give its pid or its tag");
        let selector = selector.filter(|it| it.pid.is_some() || it.tag.is_some()).ok_or_else(none)?;
        let found = self.running().await?.into_iter().find(|target| match (selector.pid, &selector.tag) {
            (Some(pid), _) => target.pid() == Some(pid),
            (None, tag) => tag.is_some() && target.tag() == *tag,
        });
        found.ok_or_else(|| {
            let name = selector.pid.map_or_else(
                || format!("tag {}", selector.tag.as_deref().unwrap_or_default()),
                |pid| format!("pid {pid}"),
            );
            ConnectError::new(Code::NotFound, format!("process with {name} not found"))
        })
    }
}

fn is_ours(terminal: &TerminalStatus) -> bool {
    terminal.id.starts_with(TERMINAL) && matches!(terminal.state, TerminalState::Running { .. })
}

impl Target {
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Pipes(process) => Some(process.pid),
            Self::Terminal(TerminalStatus { state: TerminalState::Running { pid }, .. }) => Some(*pid),
            Self::Terminal(_) => None,
        }
    }

    pub(super) fn tag(&self) -> Option<String> {
        match self {
            Self::Pipes(process) => process.tag.clone(),
            Self::Terminal(terminal) => tag_of(&terminal.id).filter(|tag| !tag.is_empty()),
        }
    }

    pub(super) fn argv(&self) -> &[String] {
        match self {
            Self::Pipes(process) => &process.argv,
            Self::Terminal(terminal) => &terminal.argv,
        }
    }

    pub(super) fn directory(&self) -> String {
        let directory = match self {
            Self::Pipes(process) => &process.cwd,
            Self::Terminal(terminal) => &terminal.cwd,
        };
        directory.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_the_id_that_was_made_of_it() {
        for tag in ["", "build", "ä b", &"x".repeat(TAG)] {
            let id = terminal_id(Some(tag)).unwrap();
            assert!(id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'), "{id}");
            assert_eq!(tag_of(&id).as_deref(), Some(tag));
        }
        assert!(terminal_id(Some(&"x".repeat(TAG + 1))).is_err());
        assert_eq!((tag_of("work"), tag_of("e2b.zz.a")), (None, None));
    }
}
