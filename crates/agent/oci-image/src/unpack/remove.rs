//! What is removed from a tree: what later entries replace, and what layers say is gone.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{AtFlags, Dir},
    io::Errno,
};

use super::{
    error::LayerError,
    tree::{self, Directory, Tree},
};

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Everything.
    All,
    /// What earlier layers brought; what this one has made stays, with the directories that it is in.
    Earlier,
}

/// Removes an entry of a directory, with all that is below; nothing if there is none. Links are removed, not followed.
pub(super) fn entry(tree: &mut Tree, directory: &Directory, name: &[u8], what: What) -> Result<(), LayerError> {
    tree.forget();
    one(tree, &directory.file, directory.number, name, what)
}

/// Removes what earlier layers brought into a directory.
pub(super) fn contents(tree: &mut Tree, directory: &Directory) -> Result<(), LayerError> {
    tree.forget();
    let listed = rustix::fs::openat(&directory.file, ".", tree::LISTED, rustix::fs::Mode::empty())
        .map_err(|error| LayerError::system("open a directory", error))?;
    below(tree, &listed, directory.number, What::Earlier)
}

fn below(tree: &mut Tree, directory: &OwnedFd, number: u64, what: What) -> Result<(), LayerError> {
    let failed = |error: Errno| LayerError::system("list a directory", error);
    let mut names = Vec::new();
    for found in Dir::read_from(directory).map_err(failed)? {
        let found = found.map_err(failed)?;
        let name = found.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    names.iter().try_for_each(|name| one(tree, directory, number, name, what))
}

// As deep as a tree can be, which is bounded.
fn one(tree: &mut Tree, directory: &OwnedFd, number: u64, name: &[u8], what: What) -> Result<(), LayerError> {
    let failed = |error: Errno| LayerError::system("remove what is in its place", error);
    let stays = what == What::Earlier && tree.has_made(number, name);
    let found = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() {
        if stays {
            return Ok(());
        }
        rustix::fs::unlinkat(directory, name, AtFlags::empty()).map_err(failed)?;
        if found.st_nlink == 1 {
            tree.give_no_more(found.st_ino);
        }
        return Ok(());
    }
    let inner = tree::open(directory, name)?;
    below(tree, &inner, tree::number(&inner)?, what)?;
    if stays {
        return Ok(());
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        // Something in it stays.
        Err(Errno::NOTEMPTY | Errno::EXIST) if what == What::Earlier => return Ok(()),
        other => other.map_err(failed)?,
    }
    tree.give_no_more(found.st_ino);
    Ok(())
}
