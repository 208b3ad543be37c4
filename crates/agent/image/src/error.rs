//! What can go wrong with images.

use std::{io, path::PathBuf, time::Duration};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The name of an image cannot be used.
    #[error("`{name}` is not a valid name for an image: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A part of what an image is to be made of cannot be used.
    #[error("{what} `{value}` cannot be used: {reason}")]
    Value {
        /// What it is for.
        what: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The program that goes into the image cannot be used.
    #[error("the program {} cannot go into the image: {reason}", path.display())]
    Program {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The build folder cannot be written or read.
    #[error("cannot {what} {}: {source}", path.display())]
    Folder {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The engine is too old, or lacks what is asked for.
    #[error("{reason}; {remedy}")]
    Unsupported {
        /// What cannot be done.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// The engine refused, or could not be reached.
    #[error(transparent)]
    Engine(#[from] gloveport_docker_engine::EngineError),
    /// The build service refused, or could not be reached.
    #[error("{what}: {reason}")]
    Service {
        /// What was tried, and on what.
        what: String,
        /// The service's own words.
        reason: String,
    },
    /// The build failed.
    #[error("build of {image} failed: {reason}{}", last_lines(log))]
    Build {
        /// The first name that was asked for.
        image: String,
        /// The engine's own words.
        reason: String,
        /// The last lines that the build said.
        log: Vec<String>,
    },
    /// A step took too long.
    #[error("{what} took longer than {} s and was given up{}", limit.as_secs(), last_lines(log))]
    TimedOut {
        /// The step, and on what.
        what: String,
        /// The limit.
        limit: Duration,
        /// The last lines that it said.
        log: Vec<String>,
    },
}

fn last_lines(log: &[String]) -> String {
    if log.is_empty() { String::new() } else { format!("; its last lines:\n  {}", log.join("\n  ")) }
}

impl ImageError {
    pub(crate) fn folder(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Folder { what, path, source }
    }
}
