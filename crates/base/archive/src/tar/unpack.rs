//! Unpacking a tar stream.

use std::{
    io::{BufRead, BufReader, Read},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid},
    io::Errno,
};
use tar::EntryType;

use super::{
    header::{Entry, damaged},
    padding,
};
use crate::{
    PIECE,
    confine::{BadName, Destination, components, kind, refusal, shown},
    error::ArchiveError,
    limits::{Account, ArchiveLimits, Summary},
    place::{Keep, NewFile, make_room},
};

/// Most bytes behind the mark of the end, where writers fill up their last record.
const REST: u64 = 16 * 1024 * 1024;

/// Bits of a mode by which a program runs with the rights of its owner or group, and the sticky bit.
const SPECIAL: u32 = 0o7000;
/// Bits by which others than the owner write.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Whose files a stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Files of the caller's own system, or for it: owners and the whole mode are kept.
    Trusted,
    /// Files of another system, which may be hostile: they belong to this process's user, whatever the stream says,
    /// and none is set-user-ID, set-group-ID or sticky, so that a program of a sandbox never runs with rights of this
    /// machine that were not given to it. A directory that was there is not opened to more users.
    Foreign,
}

/// Unpacks a tar stream into a directory that exists, and reads the stream to its end.
///
/// Modes, times, links and hard links are kept, and owners if this process may give files away and the stream is
/// trusted ([`Origin`]). Links may point anywhere, but nothing is written through one that leads out of the
/// destination. Files and links are replaced; directories stay and take over mode and time.
///
/// # Errors
///
/// The stream is damaged or has no mark of its end; an entry has an absolute name, a `..`, or would leave the
/// destination; it is a device, FIFO or sparse file; something is in the way; a bound is reached ([`ArchiveLimits`]); or the
/// storage fails. The entry at which it stopped leaves nothing behind; a file that it would have replaced is as it was.
pub fn unpack(
    input: impl Read,
    destination: &Path,
    origin: Origin,
    limits: &ArchiveLimits,
) -> Result<Summary, ArchiveError> {
    // Who does not want it any more ends the input.
    let never = AtomicBool::new(false);
    let mut unpacking = Unpacking {
        input: BufReader::with_capacity(PIECE, input),
        destination: Destination::open(destination)?,
        account: Account::new(limits, &never),
        directories: Vec::new(),
        origin,
        gives_away: origin == Origin::Trusted && rustix::process::geteuid().is_root(),
    };
    match unpacking.all() {
        Ok(()) => Ok(unpacking.account.done),
        Err(error) => Err(error.stopped(unpacking.account.done)),
    }
}

struct Unpacking<'a, R> {
    input: BufReader<R>,
    destination: Destination,
    account: Account<'a>,
    /// Directories whose mode and time are set at the end, because unpacking needs the one and changes the other.
    directories: Vec<Attributes>,
    origin: Origin,
    gives_away: bool,
}

/// What a directory gets at the end.
#[derive(Debug)]
struct Attributes {
    path: Vec<u8>,
    /// It was there before.
    existed: bool,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, u32),
}

impl<R: Read> Unpacking<'_, R> {
    fn all(&mut self) -> Result<(), ArchiveError> {
        while let Some(entry) = Entry::read(&mut self.input)? {
            self.entry(&entry)?;
        }
        self.rest()?;
        while let Some(attributes) = self.directories.pop() {
            self.finish_directory(&attributes)?;
        }
        Ok(())
    }

    /// Reads what stands behind the mark of the end.
    fn rest(&mut self) -> Result<(), ArchiveError> {
        let mut read = 0;
        loop {
            let length = self.input.fill_buf().map_err(ArchiveError::Input)?.len();
            if length == 0 {
                return Ok(());
            }
            read += length as u64;
            if read > REST {
                return Err(damaged("there is more behind its end"));
            }
            self.input.consume(length);
        }
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), ArchiveError> {
        let unsupported = |what| Err(ArchiveError::Unsupported { entry: shown(&entry.name), what });
        match entry.kind {
            EntryType::Regular | EntryType::Link | EntryType::Symlink | EntryType::Directory => {}
            EntryType::Char | EntryType::Block => return unsupported("a device"),
            EntryType::Fifo => return unsupported("a FIFO"),
            _ => return unsupported("of a kind that is not known"),
        }
        let components = match components(&entry.name) {
            Ok(components) => components,
            // The destination itself.
            Err(BadName::Empty) if entry.kind == EntryType::Directory && !entry.name.is_empty() => Vec::new(),
            Err(BadName::Absolute | BadName::Parent) => {
                return Err(ArchiveError::Escapes { entry: shown(&entry.name) });
            }
            Err(BadName::Nul | BadName::Empty) => return Err(damaged("an entry has a name that can not be used")),
        };
        if entry.kind == EntryType::Directory {
            let before = self.account.made();
            self.destination.directory(&components, &mut self.account)?;
            // One that is there already counts as well: its attributes are kept until the end.
            let existed = self.account.made() == before;
            if existed {
                self.account.make()?;
            }
            let (path, mode) = (components.join(&b'/'), entry.mode);
            self.directories.push(Attributes { path, existed, mode, owner: entry.owner, modified: entry.modified });
            return self.skip(entry.size);
        }
        let Some((name, parents)) = components.split_last() else {
            return Err(damaged("a file has no name"));
        };
        let directory = self.destination.directory(parents, &mut self.account)?;
        self.account.make()?;
        match entry.kind {
            EntryType::Symlink => self.symlink(entry, &directory, name)?,
            EntryType::Link => self.hard_link(entry, &directory, name)?,
            _ => self.file(entry, &directory, name)?,
        }
        self.account.complete();
        Ok(())
    }

    fn file(&mut self, entry: &Entry, directory: &Arc<OwnedFd>, name: &[u8]) -> Result<(), ArchiveError> {
        let mut new = NewFile::begin(directory, name, &entry.name, Keep::Nothing)?;
        let mut left = entry.size;
        while left > 0 {
            let bytes = self.input.fill_buf().map_err(ArchiveError::Input)?;
            let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if length == 0 {
                return Err(damaged("it ends too early"));
            }
            new.write(&bytes[..length], &mut self.account)?;
            self.input.consume(length);
            left -= length as u64;
        }
        self.skip_bytes(padding(entry.size) as u64)?;
        let (mode, owner, modified) = (entry.mode, entry.owner, entry.modified);
        self.give(new.file(), mode, owner, modified).map_err(|error| write_error(&entry.name, error))?;
        new.finish()
    }

    fn symlink(&mut self, entry: &Entry, directory: &OwnedFd, name: &[u8]) -> Result<(), ArchiveError> {
        let failed = |error| write_error(&entry.name, error);
        if entry.link.is_empty() || entry.link.contains(&0) {
            return Err(damaged("a link has a target that can not be used"));
        }
        make_room(directory, name, &entry.name)?;
        rustix::fs::symlinkat(entry.link.as_slice(), directory, name).map_err(failed)?;
        if self.gives_away {
            let (user, group) = (Uid::from_raw(entry.owner.0), Gid::from_raw(entry.owner.1));
            rustix::fs::chownat(directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        }
        rustix::fs::utimensat(directory, name, &times(entry.modified), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        self.skip(entry.size)
    }

    fn hard_link(&mut self, entry: &Entry, directory: &OwnedFd, name: &[u8]) -> Result<(), ArchiveError> {
        let failed = |error| write_error(&entry.name, error);
        let Ok(target) = components(&entry.link) else {
            return Err(ArchiveError::Escapes { entry: shown(&entry.name) });
        };
        let Some((target_name, parents)) = target.split_last() else {
            return Err(damaged("a link has a target that can not be used"));
        };
        let parent = if parents.is_empty() {
            self.destination.root()
        } else {
            let path = parents.join(&b'/');
            let opened = self.destination.open_beneath(&path, crate::confine::DIRECTORY);
            Arc::new(opened.map_err(|error| refusal(&entry.name, error))?)
        };
        // A link to itself, or a second one to the same file, is there already.
        if kind(&parent, target_name).is_ok() && !same(&parent, target_name, directory, name) {
            make_room(directory, name, &entry.name)?;
        }
        match rustix::fs::linkat(&*parent, *target_name, directory, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::EXIST) if same(&parent, target_name, directory, name) => {}
            Err(error) => return Err(failed(error)),
        }
        self.skip(entry.size)
    }

    fn finish_directory(&mut self, attributes: &Attributes) -> Result<(), ArchiveError> {
        let failed = |error| write_error(&attributes.path, error);
        let path = if attributes.path.is_empty() { b"." } else { attributes.path.as_slice() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = self.destination.open_beneath(path, flags).map_err(|error| refusal(&attributes.path, error))?;
        let mut mode = attributes.mode;
        if attributes.existed && self.origin == Origin::Foreign {
            let had = rustix::fs::fstat(&directory).map_err(failed)?.st_mode;
            mode &= !WRITTEN_BY_OTHERS | had;
        }
        self.give(&directory, mode, attributes.owner, attributes.modified).map_err(failed)
    }

    /// Gives owner, mode and time, in this order, because a change of the owner clears bits of the mode.
    fn give(&self, file: impl AsFd, mode: u32, owner: (u32, u32), modified: (i64, u32)) -> rustix::io::Result<()> {
        if self.gives_away {
            rustix::fs::fchown(&file, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)))?;
        }
        let dropped = if self.origin == Origin::Foreign { SPECIAL } else { 0 };
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & !dropped))?;
        rustix::fs::futimens(&file, &times(modified))
    }

    /// Reads over contents that an entry without contents has nevertheless.
    fn skip(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.skip_bytes(size.saturating_add(padding(size) as u64))
    }

    fn skip_bytes(&mut self, mut left: u64) -> Result<(), ArchiveError> {
        while left > 0 {
            let length = self.input.fill_buf().map_err(ArchiveError::Input)?.len();
            let length = length.min(usize::try_from(left).unwrap_or(usize::MAX));
            if length == 0 {
                return Err(damaged("it ends too early"));
            }
            self.input.consume(length);
            left -= length as u64;
        }
        Ok(())
    }
}

fn same(one: &OwnedFd, one_name: &[u8], other: &OwnedFd, other_name: &[u8]) -> bool {
    let number = |directory: &OwnedFd, name: &[u8]| {
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    let one = number(one, one_name);
    one.is_some() && one == number(other, other_name)
}

fn times(modified: (i64, u32)) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.0, tv_nsec: modified.1.into() },
    }
}

fn write_error(entry: &[u8], error: Errno) -> ArchiveError {
    ArchiveError::Write { entry: shown(entry), source: error.into() }
}
