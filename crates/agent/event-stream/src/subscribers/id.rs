//! Who subscribes.

use std::{cmp::Ordering, fmt};

/// The parts of a backend that are told of events.
///
/// They are sorted by their names, and are told in this order; which of them is done first is not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubscriberId {
    /// What drives the agent.
    AgentController,
    /// What resolves issues.
    OpenhandsResolver,
    /// The server for people's browsers.
    Server,
    /// What executes actions.
    Runtime,
    /// What answers recalls.
    Memory,
    /// The command line.
    Main,
    /// A test.
    Test,
}

impl SubscriberId {
    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentController => "agent_controller",
            Self::OpenhandsResolver => "openhands_resolver",
            Self::Server => "server",
            Self::Runtime => "runtime",
            Self::Memory => "memory",
            Self::Main => "main",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for SubscriberId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Ord for SubscriberId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for SubscriberId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
