//! Why the store could not do something.

use std::{io, path::PathBuf, time::Duration};

/// Why the store could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The text names no database.
    #[error("`{0}` names no database: give the path of a file, or postgres://USER@HOST/DATABASE")]
    Location(String),
    /// The file of the database cannot be used.
    #[error("cannot use the database file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The database does not answer, or not as it should. The same call may succeed later.
    #[error("the database {place} could not {action}: {reason}")]
    Away {
        /// Which database, without its password.
        place: String,
        /// What was tried.
        action: &'static str,
        /// What it says.
        reason: String,
    },
    /// It took too long. The same call may succeed later.
    #[error("the database {place} could not {action} within {} s", limit.as_secs())]
    Timeout {
        /// Which database.
        place: String,
        /// What was tried.
        action: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// A newer version has brought it up to date.
    #[error("the database has the schema {found}, and this version knows those up to {known}; use a newer version")]
    Schema {
        /// What the database has.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// A value cannot be stored.
    #[error("{field} cannot be used: {reason}")]
    Value {
        /// Which.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is one of this name.
    #[error("there is a tenant `{0}` already")]
    Exists(String),
    /// There is none.
    #[error("there is no {what} `{name}`")]
    Missing {
        /// Tenant or key.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// It has sandboxes or snapshots.
    #[error(
        "the tenant `{name}` has {sandboxes} sandboxes and {snapshots} snapshots; stop and delete them first, or delete it with \
         --force"
    )]
    InUse {
        /// The tenant.
        name: String,
        /// Its sandboxes.
        sandboxes: u64,
        /// Its snapshots.
        snapshots: u64,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Timeout { .. })
    }
}
