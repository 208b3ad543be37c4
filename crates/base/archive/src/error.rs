//! What can go wrong with an archive.

use std::{io, path::PathBuf};

use crate::limits::Summary;

/// Why an archive could not be made or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Something that is to be packed can not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file became shorter while it was packed, so the promised length can not be kept.
    #[error("`{}` became shorter while it was read: {planned} bytes were expected, and it ended after {found}", path.display())]
    Shrank {
        /// The file.
        path: PathBuf,
        /// Its size when packing began.
        planned: u64,
        /// Bytes that were read.
        found: u64,
    },
    /// A name is longer than the format can hold.
    #[error("the name of `{}` is too long for the archive", path.display())]
    LongName {
        /// The file.
        path: PathBuf,
    },
    /// There is more to pack than can be planned.
    #[error("there are more than {limit} files below `{}`", path.display())]
    TooManyToPack {
        /// The directory.
        path: PathBuf,
        /// Most files.
        limit: usize,
    },
    /// The archive can not be handed on: whoever reads it is gone, or the storage is full.
    #[error("cannot write the archive: {0}")]
    Output(io::Error),
    /// The archive can not be read: whoever sends it is gone, or the storage fails.
    #[error("cannot read the archive: {0}")]
    Input(io::Error),
    /// It is no zip at all.
    #[error("this is not a zip file")]
    NotAZip,
    /// The archive contradicts itself or ends too early.
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    /// The archive has something that is not unpacked.
    #[error("`{entry}` is {what}, which is not unpacked")]
    Unsupported {
        /// Name of the entry.
        entry: String,
        /// What it is, such as `a device`.
        what: &'static str,
    },
    /// An entry would land outside of the destination.
    #[error("`{entry}` would be written outside of the destination")]
    Escapes {
        /// Name of the entry.
        entry: String,
    },
    /// Something is where an entry belongs that it may not replace.
    #[error("`{entry}` cannot be written: a {kind} is in the way")]
    InTheWay {
        /// Name of the entry.
        entry: String,
        /// What is there, such as `FIFO`.
        kind: &'static str,
    },
    /// The destination can not be used.
    #[error("cannot unpack into `{}`: {source}", path.display())]
    Destination {
        /// The destination.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An entry can not be written.
    #[error("cannot write `{entry}`: {source}")]
    Write {
        /// Name of the entry.
        entry: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The contents are larger than [`ArchiveLimits::bytes`](crate::ArchiveLimits::bytes).
    #[error("the contents of the archive are larger than {limit} bytes")]
    TooManyBytes {
        /// The bound.
        limit: u64,
    },
    /// There are more files and directories than [`ArchiveLimits::files`](crate::ArchiveLimits::files).
    #[error("the archive has more than {limit} files and directories")]
    TooManyFiles {
        /// The bound.
        limit: u64,
    },
    /// The contents are far larger than the archive.
    #[error("`{entry}` makes the contents more than {ratio} times as large as the archive, as a bomb would")]
    Bomb {
        /// Name of the entry at which that became clear.
        entry: String,
        /// The bound.
        ratio: u64,
    },
    /// Nobody wants it any more.
    #[error("unpacking was cancelled")]
    Cancelled,
    /// Unpacking stopped on the way. What was unpacked before stays.
    #[error("{source} (stopped after {} files with {} bytes)", done.files, done.bytes)]
    Stopped {
        /// The reason.
        source: Box<ArchiveError>,
        /// What is unpacked.
        done: Summary,
    },
}

impl ArchiveError {
    /// The reason itself, without how far it came.
    pub fn reason(&self) -> &Self {
        match self {
            Self::Stopped { source, .. } => source,
            other => other,
        }
    }

    /// The error of the system behind it, if there is one.
    pub fn os_error(&self) -> Option<&io::Error> {
        match self.reason() {
            Self::Read { source, .. }
            | Self::Destination { source, .. }
            | Self::Write { source, .. }
            | Self::Output(source)
            | Self::Input(source) => Some(source),
            _ => None,
        }
    }

    /// Adds how far it came.
    pub(crate) fn stopped(self, done: Summary) -> Self {
        match self {
            Self::NotAZip | Self::Destination { .. } | Self::Stopped { .. } => self,
            other => Self::Stopped { source: Box::new(other), done },
        }
    }
}
