//! One file of the journal.

use std::{
    fs::{File, TryLockError},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use gloveport_platform as platform;

use super::record::{self, Record};
use crate::error::{HistoryError, LogError};

/// How often a lock is tried on a file that the one before removes.
const LOCK_ATTEMPTS: usize = 64;

/// Room is taken in pieces of this size.
const PIECE: u64 = 256 << 10;

/// A file of records, of which only whole batches count.
///
/// Room is taken before it is needed, and kept when the file is emptied: a sync that finds the room taken does not have
/// to wait until the file system has written down what everybody else has changed.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    file: File,
    /// Where the next record goes. What stands behind is no part of the journal, and zeros if it can be.
    length: u64,
    /// Where the room that was taken ends.
    reserved: u64,
    /// Whether there may be something behind, which must go before the next record is written.
    has_tail: bool,
    /// The events in it.
    ids: Vec<i64>,
}

impl JournalFile {
    const fn new(path: PathBuf, file: File) -> Self {
        Self { path, file, length: 0, reserved: 0, has_tail: false, ids: Vec::new() }
    }

    /// Opens a journal, or creates it.
    pub(crate) fn open(path: PathBuf) -> Result<Self, LogError> {
        let file = open(&path).map_err(|source| LogError { operation: "open", path: path.clone(), source })?;
        Ok(Self::new(path, file))
    }

    /// Opens a journal and locks it; the lock ends with the process at the latest.
    ///
    /// The lock is on the file, and who closes a history removes the file; so it is made sure that the locked file is
    /// the one that has the name.
    pub(crate) fn open_locked(path: PathBuf) -> Result<Self, HistoryError> {
        let failed = |operation, source| LogError { operation, path: path.clone(), source };
        for _ in 0..LOCK_ATTEMPTS {
            let file = open(&path).map_err(|source| failed("open", source))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
                    return Err(HistoryError::Locked { directory });
                }
                Err(TryLockError::Error(source)) => return Err(failed("lock", source).into()),
            }
            match platform::is_at(&file, &path) {
                Ok(true) => return Ok(Self::new(path, file)),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(failed("look at", source).into()),
            }
        }
        let source = io::Error::other("it is removed again and again");
        Err(failed("lock", source).into())
    }

    /// The records that are there. What is behind the last whole one is cut off with the next append.
    pub(crate) fn records(&mut self) -> Result<Vec<Record>, LogError> {
        let mut content = Vec::new();
        (&self.file).read_to_end(&mut content).map_err(|source| self.failed("read", source))?;
        let mut rest = Bytes::from(content);
        let size = rest.len();
        let records: Vec<_> = std::iter::from_fn(|| record::decode(&mut rest)).collect();
        self.length = (size - rest.len()) as u64;
        self.reserved = size as u64;
        self.has_tail = rest.iter().any(|byte| *byte != 0);
        self.ids = records.iter().map(|record| record.id).collect();
        Ok(records)
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Appends whole records and makes them durable. If that fails, the journal is as it was.
    pub(crate) fn append(&mut self, ids: impl IntoIterator<Item = i64>, records: &[u8]) -> Result<(), LogError> {
        if self.has_tail {
            self.cut()?;
        }
        self.reserve(self.length + records.len() as u64);
        self.has_tail = true;
        let written = platform::write_all_at(&self.file, records, self.length).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            let error = self.failed("write", source);
            // If this fails, too, it is done before the next append.
            let _ = self.cut();
            return Err(error);
        }
        self.has_tail = false;
        self.length += records.len() as u64;
        self.ids.extend(ids);
        Ok(())
    }

    /// Takes back the newest records: the first `count` stay, which end at `length`.
    pub(crate) fn take_back(&mut self, count: usize, length: u64) -> Result<(), LogError> {
        self.ids.truncate(count);
        self.length = length;
        self.has_tail = true;
        self.cut()
    }

    /// Forgets all records. That needs no sync: records that come back after a crash say what the files say.
    pub(crate) fn clear(&mut self) -> Result<(), LogError> {
        self.ids.clear();
        self.length = 0;
        self.has_tail = true;
        self.empty().map_err(|source| self.failed("cut", source))?;
        self.has_tail = false;
        Ok(())
    }

    /// Removes the file. The lock goes with it.
    pub(crate) fn remove(self) -> Result<(), LogError> {
        std::fs::remove_file(&self.path).map_err(|source| self.failed("remove", source))
    }

    fn cut(&mut self) -> Result<(), LogError> {
        self.empty().and_then(|()| self.file.sync_data()).map_err(|source| self.failed("cut", source))?;
        self.has_tail = false;
        Ok(())
    }

    /// Takes room up to here. Where that cannot be done, writing takes the room, or says why it cannot.
    fn reserve(&mut self, end: u64) {
        let target = end.next_multiple_of(PIECE);
        if end > self.reserved && platform::reserve(&self.file, self.reserved, target - self.reserved).is_ok() {
            self.reserved = target;
        }
    }

    /// Makes zeros of what stands behind the records, or cuts it off where that cannot be done.
    fn empty(&mut self) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        if size > self.length && platform::zero(&self.file, self.length, size - self.length).is_err() {
            self.file.set_len(self.length)?;
            self.reserved = self.length;
        }
        Ok(())
    }

    fn failed(&self, operation: &'static str, source: io::Error) -> LogError {
        LogError { operation, path: self.path.clone(), source }
    }
}

fn open(path: &Path) -> io::Result<File> {
    platform::private_file().read(true).write(true).create(true).truncate(false).open(path)
}
