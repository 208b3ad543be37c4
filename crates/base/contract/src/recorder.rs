//! How a server tells what happens in its sandbox to a recorder that the sandbox does not reach otherwise: lines over a
//! connection, each of which is answered when it is written.
//!
//! ```text
//! server                     recorder
//! key ──────────────────────► is it the one whose hash it was given?
//!  ◄────────────────── Answer
//! an event, as JSON ────────► adds it to the log
//!  ◄────────────────── Answer
//! what the event tells of begins
//! ```

use std::{fmt, net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};

/// Most bytes of a key, with its line feed.
pub const LONGEST_KEY: u64 = 256;
/// Most bytes of a line. What is kept of texts is shorter.
pub const LONGEST: u64 = 8 * 1024 * 1024;
/// Most bytes of an answer.
pub const LONGEST_ANSWER: u64 = 8 * 1024;
/// Time in which a connection has to say its key.
pub const KEY_WITHIN: Duration = Duration::from_secs(5);

/// What an audit log is told first of a sandbox, and what it is never told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audited {
    /// The level of isolation.
    pub isolation: String,
    /// What the gate lets through at first.
    pub network: Vec<String>,
    /// The secrets that the gate puts in, and their hosts.
    pub edge_secrets: Vec<String>,
    /// Variables whose values are left out.
    pub secrets: Vec<String>,
}

/// Where a server tells what happens, and what it says first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorder {
    /// Where the recorder listens.
    pub address: SocketAddr,
    /// The key that it asks for.
    pub key: String,
    /// What it is told first.
    pub first: Audited,
}

impl fmt::Debug for Recorder {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("address", &self.address).field("first", &self.first).finish_non_exhaustive()
    }
}

/// What a recorder says to a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is written.
    Kept,
    /// It is not, for this reason.
    Failed(String),
}
