//! Who owns the files of an image, where the user of this process is not all of them.

use std::{fmt, fs, io, path::Path};

/// Files by their numbers in their file system, each with the user and the group that it is given to.
pub type Files = Vec<(u64, u32, u32)>;

/// Gives files to others, and removes those of others.
pub trait Owners: fmt::Debug + Send + Sync {
    /// What tells the numbers of these owners from those of others. Images that were given to some are of no use to others.
    fn numbers(&self) -> String;

    /// Finds out whether it can be done.
    ///
    /// # Errors
    ///
    /// It cannot; why, and what helps.
    fn try_out(&self) -> io::Result<()>;

    /// Gives files of a tree to owners.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn give(&self, tree: &Path, files: Files) -> io::Result<()>;

    /// Removes a tree.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn remove(&self, tree: &Path) -> io::Result<()>;
}

/// Removes a tree in which files may belong to others.
pub(crate) fn remove(tree: &Path, owners: Option<&dyn Owners>) -> io::Result<()> {
    match (fs::remove_dir_all(tree), owners) {
        (Err(error), Some(owners)) if error.kind() == io::ErrorKind::PermissionDenied => owners.remove(tree),
        (removed, _) => removed,
    }
}
