//! What the gate of a running sandbox is told, and tells: a line of JSON each way over a socket beside it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The name of the socket, in the directory of a sandbox on this machine.
pub const SOCKET: &str = "gate";
/// The abstract name of the socket of a gate that has a network of its own, in which nobody of the sandbox is.
pub const ABSTRACT: &str = "gloveport-gate";
/// Most bytes of a line.
pub const LONGEST: u64 = 1024 * 1024;
/// Most bytes of what a gate puts into requests, with what it trusts: a line of JSON on its standard input.
pub const LONGEST_EDGE: u64 = 16 * 1024 * 1024;
/// Time in which a gate waits for that line.
pub const EDGE_WITHIN: Duration = Duration::from_secs(20);
/// The line on its standard output that says that it has it.
pub const EDGE_TAKEN: &str = "taken";
/// The line that says that none came.
pub const EDGE_ABSENT: &str = "absent";

/// What changes. Without a rule it is a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkChange {
    /// Rules of what is let through from now on (`host`, `*.host`, an address or a network, each also with `:port`).
    pub allow: Vec<String>,
    /// Rules of what is not, whatever else lets it through. Connections to it end.
    pub deny: Vec<String>,
}

/// What a gate does now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkState {
    /// What it lets through …
    pub allowed: Vec<String>,
    /// … but for this.
    pub denied: Vec<String>,
    /// Whom it was asked for lately, the last one at the end.
    pub asked: Vec<Asked>,
}

/// A host that a sandbox has asked its gate for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The host, and its port.
    pub target: String,
    /// Whether it was let through the last time.
    pub allowed: bool,
    /// How often it was asked for.
    pub times: u64,
    /// When, the last time, in seconds since 1970.
    pub last: f64,
}

/// What a gate answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The change is made.
    State(NetworkState),
    /// A rule cannot be understood, and nothing has changed.
    Wrong(String),
}
