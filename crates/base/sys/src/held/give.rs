//! A tree that gets another owner.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, Stat, Uid, chownat};

use super::{LOOK, look, readable};

/// Levels of a tree that are given: each holds a descriptor open.
const MOST_LEVELS: usize = 256;

/// Whose a tree becomes; `None` leaves that half as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewOwner {
    /// The user.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

impl NewOwner {
    fn has(self, stat: &Stat) -> bool {
        self.uid.is_none_or(|uid| uid == stat.st_uid) && self.gid.is_none_or(|gid| gid == stat.st_gid)
    }

    fn take(self, held: &impl AsFd) -> rustix::io::Result<()> {
        let (uid, gid) = (self.uid.map(Uid::from_raw), self.gid.map(Gid::from_raw));
        chownat(held, "", uid, gid, AtFlags::EMPTY_PATH)
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given {
    /// Entries that have another owner now.
    pub changed: usize,
    /// Files that keep their owner because they have other names: those may stand outside.
    pub with_other_names: usize,
    /// Programs that lost their set-user-ID or set-group-ID bit, because the kernel takes it from what changes hands.
    pub lost_bits: usize,
    /// Entries that the system does not let go, and directories that cannot be read.
    pub refused: usize,
    /// Directories whose contents are too deep.
    pub too_deep: usize,
}

/// Changes the owner of a directory and of all that is below. Links are given themselves, never what they lead to, and
/// what has the right owner is not touched. Whoever renames and links in the tree meanwhile gets nothing that was not
/// in it.
///
/// # Errors
///
/// The directory itself cannot be looked at.
pub fn give(root: &impl AsFd, owner: NewOwner) -> io::Result<Given> {
    let mut given = Given::default();
    let stat = rustix::fs::fstat(root)?;
    given.change(root, &stat, owner);
    let mut levels: Vec<Dir> = given.opened(root).into_iter().collect();
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.next() else {
            levels.pop();
            continue;
        };
        let Ok(entry) = entry else {
            given.refused += 1;
            levels.pop();
            continue;
        };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let Ok(directory) = level.fd() else {
            levels.pop();
            continue;
        };
        let Some(found) = given.entry(&directory, OsStr::from_bytes(name), owner) else { continue };
        if levels.len() >= MOST_LEVELS {
            given.too_deep += 1;
        } else {
            levels.extend(given.opened(&found));
        }
    }
    Ok(given)
}

impl Given {
    /// Gives one entry; a directory is handed back.
    fn entry(&mut self, directory: &impl AsFd, name: &OsStr, owner: NewOwner) -> Option<OwnedFd> {
        let seen = look(directory, name).ok()??;
        let is_directory = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if owner.has(&seen) && !is_directory(&seen) {
            return None;
        }
        // From here on it is what it is, whatever has the name.
        let found = rustix::fs::openat(directory, name, LOOK, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&found).ok()?;
        self.change(&found, &stat, owner);
        is_directory(&stat).then_some(found)
    }

    fn change(&mut self, held: &impl AsFd, stat: &Stat, owner: NewOwner) {
        if owner.has(stat) {
            return;
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Directory && stat.st_nlink > 1 {
            self.with_other_names += 1;
            return;
        }
        match owner.take(held) {
            Ok(()) => {
                self.changed += 1;
                self.lost_bits += usize::from(kind == FileType::RegularFile && stat.st_mode & 0o6000 != 0);
            }
            Err(_) => self.refused += 1,
        }
    }

    /// The entries of a directory that is held.
    fn opened(&mut self, held: &impl AsFd) -> Option<Dir> {
        let opened = readable(held).and_then(|directory| Ok(Dir::new(directory)?));
        self.refused += usize::from(opened.is_err());
        opened.ok()
    }
}
