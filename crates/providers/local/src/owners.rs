//! Owners of files in sandboxes of images, where an ordinary user has others beside itself.

use std::{
    io,
    path::{Path, PathBuf},
};

use gloveport_contract::local::directory::remove_tree;
use gloveport_oci_image as oci_image;
use gloveport_sys::owners::{
    Missing, Owners,
    work::{Work, have_done},
};

use crate::options::LocalOptions;

/// Who gives files of images to owners, and removes them: a program that is started for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hands {
    program: PathBuf,
    pub(crate) owners: Owners,
}

impl Hands {
    pub(crate) fn of(options: &LocalOptions) -> Result<Self, Missing> {
        let path = options.environment.get("PATH").map_or("", String::as_str);
        Ok(Self { program: options.program.clone(), owners: Owners::of_this_user(path)? })
    }

    fn have_done(&self, work: Work) -> io::Result<()> {
        have_done(&self.program, &self.owners, work)
    }
}

impl oci_image::Owners for Hands {
    fn numbers(&self) -> String {
        self.owners.numbers()
    }

    fn try_out(&self) -> io::Result<()> {
        self.have_done(Work::Nothing)
    }

    fn give(&self, tree: &Path, files: oci_image::Files) -> io::Result<()> {
        self.have_done(Work::Give { tree: tree.to_owned(), owners: files })
    }

    fn remove(&self, tree: &Path) -> io::Result<()> {
        self.have_done(Work::Remove { tree: tree.to_owned() })
    }
}

/// Whether images get the owners that they name, which is tried.
///
/// # Errors
///
/// They do not: what is missing, and what helps.
pub fn owners(options: &LocalOptions) -> Result<(), Missing> {
    let hands = Hands::of(options)?;
    oci_image::Owners::try_out(&hands).map_err(|error| Missing {
        reason: error.to_string(),
        remedy: "look whether this machine lets you make user namespaces".to_owned(),
    })
}

/// Removes a tree of a sandbox, in which files may belong to others.
pub(crate) fn remove(tree: &Path, options: &LocalOptions) -> io::Result<()> {
    let Err(error) = remove_tree(tree) else { return Ok(()) };
    match Hands::of(options) {
        Ok(hands) if error.kind() == io::ErrorKind::PermissionDenied => {
            hands.have_done(Work::Remove { tree: tree.to_owned() })
        }
        Ok(_) | Err(_) => Err(error),
    }
}
