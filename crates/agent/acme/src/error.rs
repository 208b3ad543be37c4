//! What can go wrong.

use std::{io, path::PathBuf};

/// Why there is no certificate, or no new one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// There is nothing to have a certificate for.
    #[error("there is no name to have a certificate for")]
    NoName,
    /// A name cannot be in a certificate.
    #[error("`{0}` cannot be in a certificate: it must be a name like example.org or *.example.org")]
    Name(String),
    /// TLS cannot show that all names of a domain are ours.
    #[error("a certificate for `{0}` needs a program that changes the DNS")]
    NeedsDns(String),
    /// The directory URL is none.
    #[error("`{0}` is no URL of an ACME directory: it must begin with https://")]
    Directory(String),
    /// Something in the directory cannot be read or written.
    #[error("cannot {what} `{path}`: {source}")]
    Store {
        /// What was tried.
        what: &'static str,
        /// The file or the directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The authority refuses, or cannot be asked.
    #[error("{what}: {reason}")]
    Authority {
        /// What was asked for.
        what: &'static str,
        /// What it said, or why it could not be asked.
        reason: String,
    },
    /// It was not shown that the names are ours.
    #[error("the authority does not believe that `{name}` is ours: {reason}")]
    Refused {
        /// The name.
        name: String,
        /// What the authority found.
        reason: String,
    },
    /// The program that changes the DNS has failed.
    #[error("`{program} {verb} {name}` {reason}")]
    Hook {
        /// The program.
        program: PathBuf,
        /// What it was to do.
        verb: &'static str,
        /// The record.
        name: String,
        /// How it failed.
        reason: String,
    },
    /// A key or a certificate cannot be made.
    #[error("cannot make {what}: {source}")]
    Make {
        /// What.
        what: &'static str,
        /// Why.
        source: rcgen::Error,
    },
    /// It took too long.
    #[error("there was no certificate within {0} s")]
    TimedOut(u64),
}
