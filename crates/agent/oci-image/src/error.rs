//! What can go wrong with images.

use std::{io, path::PathBuf, time::Duration};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The name of an image cannot be used.
    #[error("`{reference}` does not name an image: {reason}")]
    Reference {
        /// The name.
        reference: String,
        /// What is wrong with it, and how it is written.
        reason: String,
    },
    /// The image is not on this machine, and was not to be pulled.
    #[error("the image `{reference}` is not on this machine, and pulling it is switched off; pull it first")]
    NotHere {
        /// The name.
        reference: String,
    },
    /// There is no such image to be removed.
    #[error("there is no image `{reference}` on this machine")]
    Unknown {
        /// The name, or the digest.
        reference: String,
    },
    /// The image is used by a process.
    #[error("the image `{reference}` is in use; end the sandboxes that were made from it, then remove it again")]
    InUse {
        /// The name, or the digest.
        reference: String,
    },
    /// The store itself cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Store {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Files cannot be given to owners.
    #[error("files of images cannot be given to the owners that images name: {source}")]
    Owners {
        /// Why not.
        source: io::Error,
    },
    /// The disk is full.
    #[error(
        "there is no room left where {} is{}; remove images that are not used any more, or free space there",
        path.display(),
        needed.map(|(needed, free)| format!(": {needed} bytes are needed, {free} are free")).unwrap_or_default()
    )]
    Full {
        /// Where images are kept.
        path: PathBuf,
        /// Bytes that are needed at least, and bytes that are free, if it was known beforehand.
        needed: Option<(u64, u64)>,
    },
    /// A file that an image is read from cannot be read.
    #[error("cannot {what} {}: {source}", path.display())]
    Source {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The registry could not be reached, or answered with something that cannot be used.
    #[error("cannot {what} from the registry {registry}: {reason}")]
    Registry {
        /// What was tried.
        what: String,
        /// The registry's host.
        registry: String,
        /// Why it failed, and what to do.
        reason: String,
    },
    /// What was read is not what an image consists of.
    #[error("the image `{image}` cannot be used: {reason}")]
    Invalid {
        /// The name.
        image: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not those that were asked for.
    #[error("{what} is damaged or was exchanged: its digest is {found}, and {expected} was expected; nothing was kept")]
    Digest {
        /// What was read.
        what: String,
        /// The digest that it must have.
        expected: String,
        /// The digest that it has.
        found: String,
    },
    /// The image is for other machines.
    #[error("the image `{image}` has nothing for {wanted}, but only for {offered}; use an image for this machine")]
    Platform {
        /// The name.
        image: String,
        /// The system and architecture of this machine.
        wanted: String,
        /// Those that the image is for.
        offered: String,
    },
    /// A bound was reached.
    #[error("{what} has more than {limit} {unit}, which is the bound; if it is trusted, raise the bound")]
    Bound {
        /// What is too large.
        what: String,
        /// The bound.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A layer has an entry that cannot be unpacked, or is no archive.
    #[error("layer {layer} of the image cannot be unpacked{}: {reason}", entry.as_ref().map(|entry| format!(", at `{entry}`")).unwrap_or_default())]
    Layer {
        /// Its number, from 1 on.
        layer: usize,
        /// The name of the entry, shortened.
        entry: Option<String>,
        /// What is wrong with it.
        reason: String,
    },
    /// Something took too long.
    #[error("{what} took longer than {} s and was given up", limit.as_secs_f32())]
    TimedOut {
        /// What it was.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// Whoever asked for the image does not want it any more.
    #[error("unpacking the image was given up, because nobody waits for it any more")]
    Stopped,
}

impl ImageError {
    /// For work on a file of the store; a full disk has an error of its own.
    pub(crate) fn store<E: Into<io::Error>>(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| {
            let source = source.into();
            if is_full(&source) { Self::Full { path, needed: None } } else { Self::Store { what, path, source } }
        }
    }

    /// For work on a file that an image is read from.
    pub(crate) fn source<E: Into<io::Error>>(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Source { what, path, source: source.into() }
    }

    /// For an image that is not what it must be.
    pub(crate) fn invalid(image: &str, reason: impl Into<String>) -> Self {
        Self::Invalid { image: image.to_owned(), reason: reason.into() }
    }
}

/// Whether there is no room on the disk, or none for this user.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
