//! Packing a file or a tree into a tar stream.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{self, Write},
    path::{Path, PathBuf},
};

use gloveport_platform as platform;
use tar::EntryType;

use super::{BLOCK, header::Entry, padding};
use crate::{PIECE, buffer::read_some, error::ArchiveError, limits::Summary};

/// Most files with several names whose first name is kept in memory; further ones are packed as files of their own.
const LINKS: usize = 100_000;

/// Writes a tar stream of a path.
///
/// A directory becomes `./` and everything in it with names relative to it, sorted; anything else becomes one entry
/// with its own name. Modes, owners, times, links, hard links and empty directories are kept; FIFOs, devices and
/// sockets are left out. A link at the end of `path` is followed.
///
/// # Errors
///
/// Something can not be read or became shorter, or `out` fails. What was written then lacks the mark of the end.
pub fn pack(path: &Path, out: impl Write) -> Result<Summary, ArchiveError> {
    let mut packing = Packing {
        out,
        pending: Vec::with_capacity(2 * PIECE),
        piece: vec![0; PIECE],
        seen: HashMap::new(),
        done: Summary::default(),
    };
    let metadata = fs::metadata(path).map_err(|source| ArchiveError::Read { path: path.to_owned(), source })?;
    if metadata.is_dir() {
        packing.entry(path, Entry::of(b"./".to_vec(), EntryType::Directory, &metadata), &metadata)?;
        packing.tree(path)?;
    } else {
        let name =
            path.file_name().map(|name| platform::archived_name(Path::new(name)).into_owned()).unwrap_or_default();
        packing.one(path, name, &metadata)?;
    }
    packing.pending.resize(packing.pending.len() + 2 * BLOCK, 0);
    packing.send()?;
    packing.out.flush().map_err(ArchiveError::Output)?;
    Ok(packing.done)
}

struct Packing<W> {
    out: W,
    pending: Vec<u8>,
    piece: Vec<u8>,
    /// Names of files that have more than one, by device and number.
    seen: HashMap<(u64, u64), Vec<u8>>,
    done: Summary,
}

impl<W: Write> Packing<W> {
    /// Everything below a directory.
    fn tree(&mut self, root: &Path) -> Result<(), ArchiveError> {
        // Names that are still to be looked at, relative to the root; the next one is the last.
        let mut names = below(root, Path::new(""))?;
        while let Some(name) = names.pop() {
            let path = root.join(&name);
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                // Removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(ArchiveError::Read { path, source }),
            };
            if metadata.is_dir() {
                match below(root, &name) {
                    Err(ArchiveError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
                    below => names.append(&mut below?),
                }
            }
            self.one(&path, platform::archived_name(&name).into_owned(), &metadata)?;
        }
        Ok(())
    }

    fn one(&mut self, path: &Path, mut name: Vec<u8>, metadata: &Metadata) -> Result<(), ArchiveError> {
        let kind = metadata.file_type();
        if kind.is_dir() {
            name.push(b'/');
            return self.entry(path, Entry::of(name, EntryType::Directory, metadata), metadata);
        }
        let mut entry = if kind.is_file() {
            Entry::of(name, EntryType::Regular, metadata)
        } else if kind.is_symlink() {
            let target = fs::read_link(path).map_err(|source| ArchiveError::Read { path: path.to_owned(), source })?;
            let link = platform::archived_name(&target).into_owned();
            Entry { link, ..Entry::of(name, EntryType::Symlink, metadata) }
        } else {
            return Ok(());
        };
        if let Some(number) = platform::identity(metadata).filter(|_| platform::has_other_names(metadata)) {
            if let Some(first) = self.seen.get(&number) {
                entry = Entry { link: first.clone(), kind: EntryType::Link, size: 0, ..entry };
            } else if self.seen.len() < LINKS {
                self.seen.insert(number, entry.name.clone());
            }
        }
        self.entry(path, entry, metadata)
    }

    fn entry(&mut self, path: &Path, entry: Entry, metadata: &Metadata) -> Result<(), ArchiveError> {
        let regular = entry.kind == EntryType::Regular;
        // Opened first, so that the header tells the size of the file that is read.
        let (entry, file) = if regular {
            let (file, metadata) = match open(path, metadata) {
                // Removed meanwhile.
                Err(ArchiveError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
                opened => opened?,
            };
            (Entry { size: metadata.len(), ..entry }, Some(file))
        } else {
            (entry, None)
        };
        entry.write(&mut self.pending);
        self.make_room(0)?;
        if let Some(file) = file {
            self.contents(path, file, entry.size)?;
            self.done.bytes += entry.size;
        }
        self.done.files += u64::from(entry.kind != EntryType::Directory);
        Ok(())
    }

    /// Writes exactly `size` bytes of a file, and what is lacking to a full block.
    fn contents(&mut self, path: &Path, mut file: File, size: u64) -> Result<(), ArchiveError> {
        let mut left = size;
        while left > 0 {
            let length = read_some(&mut file, &mut self.piece, left)
                .map_err(|source| ArchiveError::Read { path: path.to_owned(), source })?;
            if length == 0 {
                return Err(ArchiveError::Shrank { path: path.to_owned(), planned: size, found: size - left });
            }
            left -= length as u64;
            if length >= PIECE / 2 {
                self.send()?;
                self.out.write_all(&self.piece[..length]).map_err(ArchiveError::Output)?;
            } else {
                self.pending.extend_from_slice(&self.piece[..length]);
                self.make_room(PIECE / 2)?;
            }
        }
        self.pending.resize(self.pending.len() + padding(size), 0);
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), ArchiveError> {
        if self.pending.len() + bytes > PIECE { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), ArchiveError> {
        self.out.write_all(&self.pending).map_err(ArchiveError::Output)?;
        self.pending.clear();
        Ok(())
    }
}

/// What is in a directory, relative to the root, the first name last.
fn below(root: &Path, directory: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let path = root.join(directory);
    let list = || -> io::Result<Vec<OsString>> { fs::read_dir(&path)?.map(|entry| Ok(entry?.file_name())).collect() };
    let mut names = list().map_err(|source| ArchiveError::Read { path: path.clone(), source })?;
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// Opens a regular file, and never waits for what has taken its place.
fn open(path: &Path, expected: &Metadata) -> Result<(File, Metadata), ArchiveError> {
    let open = || {
        let file = platform::open_at_once(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || platform::identity(&metadata) != platform::identity(expected) {
            return Err(io::Error::other("another file has taken its place"));
        }
        Ok((file, metadata))
    };
    open().map_err(|source| ArchiveError::Read { path: path.to_owned(), source })
}
