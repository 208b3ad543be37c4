//! Snapshots as engines tell them.

use std::time::SystemTime;

/// Most snapshots of a list.
pub const MOST_SNAPSHOTS: usize = 10_000;

/// The files of a sandbox that somebody wanted to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name under which the engine knows it, for [`SandboxSpec::image`](crate::SandboxSpec::image).
    pub image: String,
    /// The name that it was asked for, where the engine tells it; otherwise the image.
    pub name: String,
    /// The session whose files they are, where the engine tells it.
    pub session: Option<String>,
    /// When it was made, where the engine tells it.
    pub created: Option<SystemTime>,
}
