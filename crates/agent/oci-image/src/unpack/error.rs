//! Why a layer is not unpacked, before it is known which layer it is.

use std::io;

use crate::{
    error::{ImageError, is_full},
    words,
};

/// Most characters of a name that an error shows.
const SHOWN: usize = 200;

/// Why a layer is not unpacked.
#[derive(Debug)]
pub(super) enum LayerError {
    /// It cannot be unpacked.
    Refused { entry: Option<String>, reason: String },
    /// The disk is full.
    Full,
    /// Something that has an error of its own.
    Image(ImageError),
}

impl LayerError {
    pub(super) fn damaged(reason: &str) -> Self {
        Self::Refused { entry: None, reason: reason.to_owned() }
    }

    /// What the system said to this.
    pub(super) fn system(what: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        if is_full(&error) { Self::Full } else { Self::damaged(&format!("cannot {what}: {error}")) }
    }

    /// The same, with the name of the entry at which it happened.
    pub(super) fn at(self, name: &[u8]) -> Self {
        match self {
            Self::Refused { entry: None, reason } => Self::Refused { entry: Some(shown(name)), reason },
            other => other,
        }
    }
}

impl From<ImageError> for LayerError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

/// A name as an error shows it: on one line, and not longer than a line.
pub(super) fn shown(name: &[u8]) -> String {
    words::shown(&String::from_utf8_lossy(name), SHOWN)
}
