//! Bounds of what is pulled and unpacked.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::owners::Owners;

/// Most bytes of a manifest, a list of manifests or a configuration.
pub(crate) const DOCUMENT: u64 = 4 * 1024 * 1024;

/// Bounds of an image, and of the time that is waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of all layers as they are stored or sent.
    pub compressed: u64,
    /// Most bytes of all layers when they are unpacked, whatever a later layer removes again.
    pub unpacked: u64,
    /// Most entries of all layers.
    pub entries: u64,
    /// Most layers.
    pub layers: usize,
    /// For a connection to a registry.
    pub connect: Duration,
    /// Without a byte from a registry.
    pub silence: Duration,
    /// While another process pulls the same image.
    pub wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed: 20 << 30,
            unpacked: 40 << 30,
            entries: 2_000_000,
            layers: 128,
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            wait: Duration::from_mins(30),
        }
    }
}

/// How a store works.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bounds.
    pub limits: Limits,
    /// The file with credentials for registries, as Docker has it (`config.json`); `None` for no credentials.
    pub docker_config: Option<PathBuf>,
    /// Who gives files to the owners that images name; `None` for files that belong to the user alone, or, for root, to whom
    /// images name. Both kinds are kept apart.
    pub owners: Option<Arc<dyn Owners>>,
}
