//! What can be set on a server of sessions.

use std::{path::PathBuf, time::Duration};

/// What can be set on a server of sessions.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Where histories are, and what is needed to go on. Servers that share it share the sessions.
    pub directory: PathBuf,
    /// A session in which nothing happens for this long is let go: its sandbox stays, and the next request takes it up
    /// again, here or at another server.
    pub idle: Duration,
    /// Most sessions that are served at a time.
    pub served: usize,
    /// Most sessions of a tenant, those that have ended and still have a history among them.
    pub per_tenant: usize,
    /// Most followers of one session.
    pub followers: usize,
}

impl SessionOptions {
    /// With this directory, and nothing else set.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            idle: Duration::from_mins(10),
            served: 1024,
            per_tenant: 10_000,
            followers: 64,
        }
    }
}
