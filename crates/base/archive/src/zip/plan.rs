//! Which files go into a zip, taken before the first byte is sent, and the zip itself.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use gloveport_platform as platform;

use super::records::{End, Entry, LOCAL, dos_time};
use crate::{PIECE, buffer::read_some, error::ArchiveError, limits::Summary};

/// Most files of one zip; their names are in memory.
const MOST: usize = 2_000_000;

/// The regular files below a directory, with the sizes that they have now.
///
/// Links to files count as files; links to directories, FIFOs, devices, sockets and links without a target are left
/// out. Files are in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    root: PathBuf,
    /// What stands before the names that are relative to the root.
    prefix: Vec<u8>,
    /// The names of all files, prefix included, one behind the other.
    names: Vec<u8>,
    files: Vec<Planned>,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct Planned {
    /// Where its name ends; it begins where that of the file before it ends.
    name_end: usize,
    size: u64,
    modified: u32,
}

impl Plan {
    /// Files below a directory with names relative to it (`action-execution-api` 2.8).
    ///
    /// # Errors
    ///
    /// A directory or a file can not be read, or there are too many files.
    pub fn of_contents(root: &Path) -> Result<Self, ArchiveError> {
        Self::new(root, Vec::new())
    }

    /// Files below a directory with names that begin with its own name (`action-execution-client` 5.1).
    ///
    /// # Errors
    ///
    /// A directory or a file can not be read, or there are too many files.
    pub fn of_directory(root: &Path) -> Result<Self, ArchiveError> {
        let read = |source| ArchiveError::Read { path: root.to_owned(), source };
        let name = match root.file_name() {
            Some(name) => Some(name.to_owned()),
            None => fs::canonicalize(root).map_err(read)?.file_name().map(OsStr::to_owned),
        };
        // The root of the file system has no name.
        let prefix = name.map(|name| [&*platform::archived_name(Path::new(&name)), b"/"].concat()).unwrap_or_default();
        Self::new(root, prefix)
    }

    /// No files at all.
    pub fn empty() -> Self {
        Self::default()
    }

    fn new(root: &Path, prefix: Vec<u8>) -> Result<Self, ArchiveError> {
        let mut plan = Self { root: root.to_owned(), prefix, ..Self::default() };
        // Directories that are still to be looked at, relative to the root; the next one is the last.
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            let mut below = plan.add_directory(&directory)?;
            below.reverse();
            directories.append(&mut below);
        }
        Ok(plan)
    }

    /// Adds the files of one directory, and returns the directories in it.
    fn add_directory(&mut self, relative: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
        let path = self.root.join(relative);
        let read = |source| ArchiveError::Read { path: path.clone(), source };
        let mut entries = Vec::new();
        let list = match fs::read_dir(&path) {
            // Removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && relative != Path::new("") => return Ok(Vec::new()),
            list => list.map_err(read)?,
        };
        for entry in list {
            let entry = entry.map_err(read)?;
            entries.push((entry.file_name(), entry.file_type().map_err(read)?));
        }
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut below = Vec::new();
        for (name, kind) in entries {
            let relative = relative.join(&name);
            if kind.is_dir() {
                below.push(relative);
            } else if kind.is_file() || kind.is_symlink() {
                self.add_file(&relative)?;
            }
        }
        Ok(below)
    }

    fn add_file(&mut self, relative: &Path) -> Result<(), ArchiveError> {
        let path = self.root.join(relative);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Ok(()),
            // A link without a target, links in a circle, or a file that was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if platform::is_circle(&error) => return Ok(()),
            Err(source) => return Err(ArchiveError::Read { path, source }),
        };
        // Told before anything is sent.
        if let Err(source) = platform::may_read(&path) {
            return Err(ArchiveError::Read { path, source });
        }
        if self.files.len() >= MOST {
            return Err(ArchiveError::TooManyToPack { path: self.root.clone(), limit: MOST });
        }
        let name = platform::archived_name(relative);
        if self.prefix.len() + name.len() > usize::from(u16::MAX) - LOCAL {
            return Err(ArchiveError::LongName { path });
        }
        self.names.extend_from_slice(&self.prefix);
        self.names.extend_from_slice(&name);
        let (size, modified) = (metadata.len(), dos_time(platform::modified(&metadata).0));
        self.files.push(Planned { name_end: self.names.len(), size, modified });
        self.bytes += size;
        Ok(())
    }

    /// Number of files.
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// Bytes of their contents.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Exact length of the zip in bytes.
    pub fn length(&self) -> u64 {
        let (mut offset, mut directory) = (0, 0);
        for (_, entry) in self.entries() {
            directory += entry.central_length(offset);
            offset += entry.local_length() + entry.size + entry.descriptor_length();
        }
        offset + directory + End { entries: self.files(), length: directory, offset }.encoded_length()
    }

    /// The range of each name in `names`, and the entry.
    fn entries(&self) -> impl Iterator<Item = (Range<usize>, Entry<'_>)> {
        let mut start = 0;
        self.files.iter().map(move |file| {
            let range = start..file.name_end;
            start = file.name_end;
            let name = self.names.get(range.clone()).unwrap_or_default();
            (range, Entry { name, size: file.size, modified: file.modified })
        })
    }

    /// Writes the zip. Nothing has to be seekable.
    ///
    /// Each file has the size that was planned: of one that grew, only the beginning is taken.
    ///
    /// # Errors
    ///
    /// A file became shorter or can not be read, or `out` fails. What was written then has no end, so it is no zip.
    pub fn write_to(&self, out: impl Write) -> Result<Summary, ArchiveError> {
        let mut packer = Packer { out, pending: Vec::with_capacity(PIECE), piece: vec![0; PIECE] };
        let mut checksums = Vec::with_capacity(self.files.len());
        for (_, entry) in self.entries() {
            entry.write_local(&mut packer.pending);
            let relative = entry.name.get(self.prefix.len()..).unwrap_or_default();
            let crc = packer.contents(&self.root.join(platform::path_of_name(relative)), entry.size)?;
            entry.write_descriptor(crc, &mut packer.pending);
            checksums.push(crc);
        }
        let (mut offset, mut length) = (0, 0);
        for ((_, entry), crc) in self.entries().zip(checksums) {
            packer.make_room(usize::from(u16::MAX))?;
            entry.write_central(crc, offset, &mut packer.pending);
            length += entry.central_length(offset);
            offset += entry.local_length() + entry.size + entry.descriptor_length();
        }
        End { entries: self.files(), length, offset }.write(&mut packer.pending);
        packer.send()?;
        packer.out.flush().map_err(ArchiveError::Output)?;
        Ok(Summary { files: self.files(), bytes: self.bytes, skipped: 0 })
    }
}

/// Collects small pieces, so that the output sees large ones.
struct Packer<W> {
    out: W,
    pending: Vec<u8>,
    piece: Vec<u8>,
}

impl<W: Write> Packer<W> {
    fn send(&mut self) -> Result<(), ArchiveError> {
        self.out.write_all(&self.pending).map_err(ArchiveError::Output)?;
        self.pending.clear();
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), ArchiveError> {
        if self.pending.len() + bytes > PIECE { self.send() } else { Ok(()) }
    }

    /// Writes exactly `size` bytes of a file, and returns their checksum.
    fn contents(&mut self, path: &Path, size: u64) -> Result<u32, ArchiveError> {
        let read = |source| ArchiveError::Read { path: path.to_owned(), source };
        let mut crc = crc32fast::Hasher::new();
        let mut file = open(path).map_err(read)?;
        let mut left = size;
        while left > 0 {
            let length = read_some(&mut file, &mut self.piece, left).map_err(read)?;
            if length == 0 {
                return Err(ArchiveError::Shrank { path: path.to_owned(), planned: size, found: size - left });
            }
            crc.update(&self.piece[..length]);
            left -= length as u64;
            self.make_room(length)?;
            if length >= PIECE / 2 {
                self.send()?;
                self.out.write_all(&self.piece[..length]).map_err(ArchiveError::Output)?;
            } else {
                self.pending.extend_from_slice(&self.piece[..length]);
            }
        }
        // Room for the descriptor, and the next record.
        self.make_room(usize::from(u16::MAX))?;
        Ok(crc.finalize())
    }
}

/// Opens a file that was a regular one when the plan was made. Never waits, whatever it is now.
fn open(path: &Path) -> io::Result<File> {
    let file = platform::open_at_once(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file any more")) }
}
