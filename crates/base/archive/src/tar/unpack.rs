//! Unpacking a tar stream.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    sync::atomic::AtomicBool,
};

use tar::EntryType;

use super::{
    header::{Entry, damaged},
    padding,
};
use crate::{
    PIECE,
    beneath::{self, Destination, Directory, NewFile},
    error::ArchiveError,
    limits::{Account, ArchiveLimits, Summary},
    names::{BadName, Given, Keep, components, shown},
};

/// Most bytes behind the mark of the end, where writers fill up their last record.
const REST: u64 = 16 * 1024 * 1024;

/// Bits of a mode by which a program runs with the rights of its owner or group, and the sticky bit.
const SPECIAL: u32 = 0o7000;

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
        gives_away: origin == Origin::Trusted && beneath::gives_away(),
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

    fn file(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), ArchiveError> {
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
        new.give(&self.given(entry.mode, entry.owner, entry.modified))?;
        new.finish()
    }

    fn symlink(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), ArchiveError> {
        if entry.link.is_empty() || entry.link.contains(&0) {
            return Err(damaged("a link has a target that can not be used"));
        }
        let given = self.given(entry.mode, entry.owner, entry.modified);
        beneath::symlink(directory, name, &entry.link, &entry.name, &given)?;
        self.skip(entry.size)
    }

    fn hard_link(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), ArchiveError> {
        let Ok(target) = components(&entry.link) else {
            return Err(ArchiveError::Escapes { entry: shown(&entry.name) });
        };
        self.destination.hard_link(&target, directory, name, &entry.name)?;
        self.skip(entry.size)
    }

    fn finish_directory(&mut self, attributes: &Attributes) -> Result<(), ArchiveError> {
        let given = self.given(attributes.mode, attributes.owner, attributes.modified);
        let closed = attributes.existed && self.origin == Origin::Foreign;
        self.destination.give(&attributes.path, &given, closed)
    }

    /// What something gets of what the stream says.
    fn given(&self, mode: u32, owner: (u32, u32), modified: (i64, u32)) -> Given {
        let dropped = if self.origin == Origin::Foreign { SPECIAL } else { 0 };
        Given { mode: mode & !dropped, owner: self.gives_away.then_some(owner), modified }
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
