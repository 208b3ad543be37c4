//! What a container is made from, and why there is none.

use std::{ffi::OsString, path::PathBuf};

use crate::{amounts::Amounts, confined::Unsupported, owners::Owners};

/// What is in a container, beside the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its root directory, if that is not made of this machine.
    pub root: Option<Root>,
    /// Places of the machine.
    pub places: Vec<Place>,
    /// Whom it can talk to.
    pub network: Network,
    /// Most processes and threads, with those that keep it (about 20); `None` for 4,096.
    pub processes: Option<u64>,
    /// What all of them together may use. Memory and processes are bounded where the kernel can do that
    /// ([`Kept::here`](crate::amounts::Kept::here)); time of processors is bounded, or there is no container.
    pub amounts: Amounts,
    /// Its first process starts what makes users of its own in it, as an engine does that has a kernel of its own.
    pub nests: bool,
}

/// A root directory that has a system of its own, such as an image's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// What is in it at first. It stays as it is, and many can have the same. Its name has no links.
    pub lower: PathBuf,
    /// A directory with the two empty directories [`UPPER`](Self::UPPER) and [`WORK`](Self::WORK), for what is changed. Its
    /// name has no links, and its file system must know layers, as ext4, xfs and btrfs do.
    pub changes: PathBuf,
    /// Who owns files in it beside the user, if that is not root: what is in `lower` was given to them.
    pub owners: Option<Owners>,
}

impl Root {
    /// What is changed.
    pub const UPPER: &str = "upper";
    /// What the kernel needs for it.
    pub const WORK: &str = "work";
}

/// The network of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// That of the machine.
    Machine,
    /// One of its own, with nobody else in it.
    None,
    /// The same, and a program of the machine that listens in it.
    Gate(Gate),
}

/// A program outside of a container that serves those in it on a port of its loopback interface. It ends with the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// The program's file, and its arguments. What listens is its standard input, and what is for it alone its standard output;
    /// it has nothing else of the container.
    pub command: Vec<OsString>,
    /// The port.
    pub port: u16,
}

impl Container {
    pub(super) const fn has_own_network(&self) -> bool {
        !matches!(self.network, Network::Machine)
    }
}

/// A place of the machine that is in a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its name inside, from the root.
    pub target: PathBuf,
    /// Its name on the machine, without links.
    pub source: PathBuf,
    /// Whether it is written, or only read.
    pub is_written: bool,
}

/// Why there is no container. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The machine cannot do it.
    #[error("containers cannot be made here: {}; {}", .0.reason, .0.remedy)]
    Unsupported(#[from] Unsupported),
    /// The same, found out inside.
    #[error("containers cannot be made here: {0}")]
    Refused(String),
    /// A place cannot be given.
    #[error("cannot give the container the place {}: {reason}", .path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A step failed.
    #[error("cannot make the container: {step} failed: {reason}")]
    Step {
        /// What was being done.
        step: String,
        /// Why it failed.
        reason: String,
    },
}

impl ContainerError {
    /// Why this machine cannot do it and what helps, if that is what it is.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Unsupported(missing) => Some(format!("{}; {}", missing.reason, missing.remedy)),
            Self::Refused(why) => Some(why.clone()),
            Self::Place { .. } | Self::Step { .. } => None,
        }
    }

    pub(super) fn step(step: &str, error: &dyn std::fmt::Display) -> Self {
        Self::Step { step: step.to_owned(), reason: error.to_string() }
    }
}
