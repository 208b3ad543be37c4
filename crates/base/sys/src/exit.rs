//! How a process ended.

use serde::{Deserialize, Serialize};

/// How a program ended, and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit status, if it ended by itself.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// CPU time of the program and of its waited-for children, in microseconds.
    pub cpu_micros: u64,
    /// Largest resident memory of the program or of one of its waited-for children, in bytes.
    pub peak_memory: u64,
}

impl Exit {
    /// The status as a shell reports it: the exit status, or 128 plus the signal.
    pub fn shell_status(&self) -> i32 {
        match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => -1,
        }
    }

    /// Nothing is known of how it ended: its owner was killed.
    pub(crate) const UNKNOWN: Self = Self { code: None, signal: None, cpu_micros: 0, peak_memory: 0 };
}
