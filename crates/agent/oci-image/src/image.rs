//! What callers ask for and get.

use std::{
    fmt,
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
    time::SystemTime,
};

use crate::config::Config;

/// Whether an image is pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pull {
    /// If it is not on this machine. A file or directory that an image is read from is read again when it has changed.
    #[default]
    Missing,
    /// If the registry has another one by now, or if it is not on this machine.
    Always,
    /// Never: an image that is not on this machine is an error.
    Never,
}

/// How far a pull is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is being found out what the name stands for.
    Resolving,
    /// Another process pulls this image at the moment, and is waited for.
    Waiting,
    /// Layers are downloaded, while earlier ones may be unpacked.
    Downloading {
        /// Bytes so far.
        done: u64,
        /// Bytes of all layers.
        whole: u64,
    },
    /// A layer is unpacked.
    Unpacking {
        /// Its number, from 1 on.
        layer: usize,
        /// How many there are.
        of: usize,
    },
    /// The image can be used.
    Done,
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEGABYTE: u64 = 1_000_000;
        match self {
            Self::Resolving => formatter.write_str("asking for the image"),
            Self::Waiting => formatter.write_str("waiting for another process that pulls it"),
            Self::Downloading { done, whole } => {
                write!(formatter, "downloaded {} of {} MB", done / MEGABYTE, whole.div_ceil(MEGABYTE))
            }
            Self::Unpacking { layer, of } => write!(formatter, "unpacking layer {layer} of {of}"),
            Self::Done => formatter.write_str("the image is there"),
        }
    }
}

/// An image that is on this machine, and stays there as long as its lease is held.
#[derive(Debug)]
pub struct Image {
    /// The digest of its configuration, `sha256:…`: what Docker calls the image's ID. It stands for the contents of all
    /// layers, however they were compressed and whatever registry they came from.
    pub digest: String,
    /// Its tree. Nobody may write there: others use the same one.
    pub root: PathBuf,
    /// Whether its files were given to others ([`Options::owners`](crate::Options)).
    pub has_owners: bool,
    /// What it says about the programs in it.
    pub config: Config,
    /// Device nodes that were left out of the tree.
    pub left_out: u64,
    /// Keeps it from being removed.
    pub lease: Lease,
}

/// Keeps an image from being removed: a shared lock of a file.
///
/// The lock belongs to the open file. A process that inherits the descriptor holds the lease until it ends or closes it,
/// whatever becomes of this process. The descriptor is closed on `exec` unless that is changed for a child.
#[derive(Debug)]
pub struct Lease(pub(crate) File);

impl Lease {
    /// The same lease, for somebody else; it ends when all of them are dropped.
    ///
    /// # Errors
    ///
    /// This process has too many files open.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }
}

impl AsFd for Lease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Lease> for OwnedFd {
    fn from(lease: Lease) -> Self {
        lease.0.into()
    }
}

/// An image of the store, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it was asked for as; a name that stands for another image by now is not among them.
    pub references: Vec<String>,
    /// Its digest, `sha256:…`.
    pub digest: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// When it was unpacked.
    pub created: SystemTime,
    /// When it was last asked for.
    pub last_used: SystemTime,
    /// Whether a process holds a lease.
    pub in_use: bool,
}

impl Stored {
    /// Takes what is kept of the same image in another way.
    pub(crate) fn join(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.created = self.created.min(other.created);
        self.last_used = self.last_used.max(other.last_used);
        self.in_use |= other.in_use;
    }
}
