//! Directories that are reached by a name once, and held by a descriptor from then on.
//!
//! Where other users may write, a name is an opinion: it leads elsewhere a moment after it was looked at. What a server does
//! with its own rights in such a place (make, give away, remove) it does to what it holds, never to a path.
//!
//! A link on the way is followed if this process's user or root made it. A link of another user leads no further than
//! that user gets alone: to a directory of the same user.

mod give;
mod remove;

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use crate::beneath::DIRECTORY;

pub use give::{Given, NewOwner, give};
pub use remove::{RemoveError, remove};

/// Links that are followed, as many as the kernel does.
const MOST_LINKS: usize = 40;
/// Tries to make and open a directory that somebody else removes again.
const TRIES: usize = 16;
/// How anything is opened that is only looked at.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What becomes of directories that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// They are an error (`ENOENT`).
    Refused,
    /// They are made, with these permission bits less the umask.
    Made(u32),
}

/// Opens a directory as a place for others (`O_PATH`).
///
/// # Errors
///
/// Those of the system, and `EACCES` with a text if a link of another user leads to what is not that user's.
pub fn directory(path: &Path, missing: Missing) -> io::Result<OwnedFd> {
    let path = std::path::absolute(path)?;
    let mut at = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
    let mut waiting = parts(path.as_os_str().as_bytes());
    // How many parts wait behind a link of another user, and who that is.
    let mut claims: Vec<(usize, u32, OsString)> = Vec::new();
    let mut links = 0;
    loop {
        while let Some((_, user, link)) = claims.pop_if(|(behind, ..)| *behind == waiting.len()) {
            if rustix::fs::fstat(&at)?.st_uid != user {
                return Err(foreign(&link, user));
            }
        }
        let Some(part) = waiting.pop() else { return Ok(at) };
        let (found, stat) = entered(&at, &part, missing)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => at = found,
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = rustix::fs::readlinkat(&found, "", Vec::new())?.into_bytes();
                if ![0, rustix::process::geteuid().as_raw()].contains(&stat.st_uid) {
                    claims.push((waiting.len(), stat.st_uid, OsString::from_vec(part)));
                }
                if target.starts_with(b"/") {
                    at = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
                }
                waiting.append(&mut parts(&target));
            }
            // What is to be made is there, as something else.
            _ if waiting.is_empty() && missing != Missing::Refused => return Err(Errno::EXIST.into()),
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
}

/// The parts of a path, the last one first.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).rev().map(<[u8]>::to_vec).collect()
}

/// An entry of a directory, itself and not what it leads to.
fn entered(at: &OwnedFd, part: &[u8], missing: Missing) -> io::Result<(OwnedFd, Stat)> {
    for _ in 0..TRIES {
        match (rustix::fs::openat(at, part, LOOK, Mode::empty()), missing) {
            (Ok(found), _) => {
                let stat = rustix::fs::fstat(&found)?;
                return Ok((found, stat));
            }
            (Err(Errno::NOENT), Missing::Made(mode)) => {
                match rustix::fs::mkdirat(at, part, Mode::from_bits_truncate(mode)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
    Err(Errno::NOENT.into())
}

fn foreign(link: &OsStr, user: u32) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the link {} belongs to the user {user} and leads to a directory that does not; name the directory itself",
            link.display()
        ),
    )
}

/// Whether a directory is the root of the file system, whatever path led to it.
///
/// # Errors
///
/// It cannot be looked at.
pub fn is_root(held: &impl AsFd) -> io::Result<bool> {
    Ok(Identity::at(held)? == Identity::of(&rustix::fs::stat("/")?))
}

/// A path that leads to what is held, for those who take a path only. It is good as long as the descriptor is open.
pub fn path_of(held: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_fd().as_raw_fd()))
}

/// The directory that has the last part of a path, and that part. `None` for a path that names no entry of a directory:
/// the root, and what ends with `.` or `..`.
///
/// # Errors
///
/// Those of [`directory`].
pub fn parent(path: &Path) -> io::Result<Option<(OwnedFd, OsString)>> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let bytes = bytes.get(..end).unwrap_or_default();
    let begin = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (before, name) = bytes.split_at(begin);
    if matches!(name, b"" | b"." | b"..") {
        return Ok(None);
    }
    let before = if before.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(before)) };
    Ok(Some((directory(before, Missing::Refused)?, OsStr::from_bytes(name).to_owned())))
}

/// What tells a file from every other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }

    fn at(held: &impl AsFd) -> io::Result<Self> {
        Ok(Self::of(&rustix::fs::fstat(held)?))
    }
}

/// Opens a directory again, to read its entries.
fn readable(held: &impl AsFd) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(held, ".", flags, Mode::empty())?)
}

/// What an entry of a directory is; `None` if it is not there.
fn look(held: &impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(held, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
