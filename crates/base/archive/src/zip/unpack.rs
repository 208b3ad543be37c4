//! Unpacking a zip file.

use std::{fs::File, path::Path, sync::atomic::AtomicBool};

use flate2::{Decompress, FlushDecompress, Status};

use super::{
    directory::{Directory, Record, Window},
    records::{ENCRYPTED, LOCAL},
};
use crate::{
    PIECE,
    beneath::{Destination, NewFile},
    error::ArchiveError,
    limits::{Account, ArchiveLimits, Summary},
    names::{Keep, components, shown},
};

/// Bytes of the directory that are read at once: more than one record has.
const DIRECTORY_PIECE: usize = 256 * 1024;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Unpacks a zip file into a directory that exists.
///
/// Entries whose names are absolute, have a `..`, a NUL or nothing are left out. Modes, links and times in the archive
/// mean nothing: everything becomes a regular file with the mode that the umask gives, and one that replaces another
/// takes over its mode and owner.
///
/// # Errors
///
/// The archive is no zip or damaged, an entry would leave the destination, something is in the way, a bound is reached
/// ([`ArchiveLimits`]), or the storage fails. The entry at which it stopped leaves nothing behind; a file that it would have
/// replaced is as it was.
pub fn unpack(file: &File, destination: &Path, limits: &ArchiveLimits) -> Result<Summary, ArchiveError> {
    unpack_until(file, destination, limits, &AtomicBool::new(false))
}

/// The same, until `stop` becomes true: then it ends with [`ArchiveError::Cancelled`] before the next piece.
///
/// # Errors
///
/// Those of [`unpack`].
pub fn unpack_until(
    file: &File,
    destination: &Path,
    limits: &ArchiveLimits,
    stop: &AtomicBool,
) -> Result<Summary, ArchiveError> {
    let directory = Directory::find(file)?;
    let mut unpacking = Unpacking {
        file,
        destination: Destination::open(destination)?,
        account: Account::new(limits, stop),
        window: Window::new(PIECE),
        inflated: Vec::new(),
        inflater: Decompress::new(false),
        read: 0,
    };
    match unpacking.all(&directory) {
        Ok(()) => Ok(unpacking.account.done),
        Err(error) => Err(error.stopped(unpacking.account.done)),
    }
}

struct Unpacking<'a> {
    file: &'a File,
    destination: Destination,
    account: Account<'a>,
    window: Window,
    inflated: Vec<u8>,
    inflater: Decompress,
    /// Bytes of compressed contents that were read.
    read: u64,
}

impl Unpacking<'_> {
    fn all(&mut self, directory: &Directory) -> Result<(), ArchiveError> {
        if directory.entries > self.account.limits.files {
            return Err(ArchiveError::TooManyFiles { limit: self.account.limits.files });
        }
        let mut window = Window::new(DIRECTORY_PIECE);
        check_places(self.file, directory, &mut window)?;
        let mut at = directory.start;
        while let Some(record) = directory.record(&mut window, self.file, at)? {
            self.entry(&record)?;
            at = record.next();
        }
        Ok(())
    }

    fn entry(&mut self, record: &Record) -> Result<(), ArchiveError> {
        let components = match components(&record.name) {
            Ok(components) => components,
            Err(problem) => {
                self.account.skip(&record.name, problem.text());
                return Ok(());
            }
        };
        if record.name.ends_with(b"/") {
            self.destination.directory(&components, &mut self.account)?;
            return Ok(());
        }
        if record.flags & ENCRYPTED != 0 {
            return Err(ArchiveError::Unsupported { entry: shown(&record.name), what: "encrypted" });
        }
        let Some((name, parents)) = components.split_last() else { return Ok(()) };
        let directory = self.destination.directory(parents, &mut self.account)?;
        self.account.make()?;
        let mut new = NewFile::begin(&directory, name, &record.name, Keep::Attributes)?;
        let (crc, size) = match record.method {
            STORED => self.stored(record, &mut new)?,
            DEFLATED => self.deflated(record, &mut new)?,
            _ => {
                return Err(ArchiveError::Unsupported {
                    entry: shown(&record.name),
                    what: "compressed in a way that is not known",
                });
            }
        };
        if size != record.size || crc != record.crc {
            return Err(ArchiveError::Damaged(format!(
                "the contents of `{}` are not what they were",
                shown(&record.name)
            )));
        }
        new.finish()?;
        self.account.complete();
        Ok(())
    }

    /// Copies contents, and returns their checksum and length.
    fn stored(&mut self, record: &Record, new: &mut NewFile) -> Result<(u32, u64), ArchiveError> {
        let mut at = record.contents(&mut self.window, self.file)?;
        let mut crc = crc32fast::Hasher::new();
        let mut left = record.stored;
        while left > 0 {
            let bytes = self.window.at(self.file, at, 1).map_err(ArchiveError::Input)?;
            let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if length == 0 {
                return Err(cut_off(record));
            }
            crc.update(&bytes[..length]);
            new.write(&bytes[..length], &mut self.account)?;
            at += length as u64;
            left -= length as u64;
            self.read += length as u64;
        }
        Ok((crc.finalize(), record.stored))
    }

    /// Decompresses contents, and returns their checksum and length.
    fn deflated(&mut self, record: &Record, new: &mut NewFile) -> Result<(u32, u64), ArchiveError> {
        self.inflated.resize(PIECE, 0);
        self.inflater.reset(false);
        let mut at = record.contents(&mut self.window, self.file)?;
        let mut crc = crc32fast::Hasher::new();
        let mut left = record.stored;
        loop {
            let bytes = self.window.at(self.file, at, 1).map_err(ArchiveError::Input)?;
            let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let (in_before, out_before) = (self.inflater.total_in(), self.inflater.total_out());
            let status = self.inflater.decompress(&bytes[..length], &mut self.inflated, FlushDecompress::None);
            let status = status.map_err(|_| cut_off(record))?;
            let used = self.inflater.total_in() - in_before;
            let made = usize::try_from(self.inflater.total_out() - out_before).unwrap_or(0);
            crc.update(&self.inflated[..made]);
            new.write(&self.inflated[..made], &mut self.account)?;
            at += used;
            left -= used;
            self.read += used;
            self.check_ratio(record)?;
            match status {
                Status::StreamEnd => return Ok((crc.finalize(), self.inflater.total_out())),
                Status::Ok | Status::BufError if used == 0 && made == 0 => return Err(cut_off(record)),
                Status::Ok | Status::BufError => {}
            }
        }
    }

    fn check_ratio(&self, record: &Record) -> Result<(), ArchiveError> {
        let limits = self.account.limits;
        let written = self.account.written();
        if written > limits.unsuspicious && written / limits.ratio.max(1) > self.read {
            return Err(ArchiveError::Bomb { entry: shown(&record.name), ratio: limits.ratio });
        }
        Ok(())
    }
}

fn cut_off(record: &Record) -> ArchiveError {
    ArchiveError::Damaged(format!("the contents of `{}` can not be read", shown(&record.name)))
}

/// Every entry has its own place in the archive; entries that share theirs are how small archives become huge.
fn check_places(file: &File, directory: &Directory, window: &mut Window) -> Result<(), ArchiveError> {
    let mut places = Vec::new();
    let mut at = directory.start;
    while let Some(record) = directory.record(window, file, at)? {
        // Its local record has at least the fixed part.
        places.push((record.offset, record.offset.saturating_add(LOCAL as u64).saturating_add(record.stored)));
        at = record.next();
        if places.len() as u64 > directory.entries {
            return Err(ArchiveError::Damaged("its directory has more entries than it says".into()));
        }
    }
    if (places.len() as u64) < directory.entries {
        return Err(ArchiveError::Damaged("its directory has fewer entries than it says".into()));
    }
    places.sort_unstable();
    let overlap = places.windows(2).any(|pair| pair[0].1 > pair[1].0);
    if overlap || places.last().is_some_and(|last| last.1 > directory.start) {
        return Err(ArchiveError::Damaged("its entries overlap".into()));
    }
    Ok(())
}
