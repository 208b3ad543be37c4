//! Adds records to a file, also where several processes do.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Mutex, PoisonError},
};

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::{
    event::Event,
    record::{self, Hash, LONGEST_LINE},
};

/// Most bytes of a log.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Why nothing is added to a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no regular file")]
    NoFile,
    /// Its last line is none of a log.
    #[error("its last line is no record of an audit log; give another file, or one that is not there")]
    NoRecord,
    /// It has no room.
    #[error("it is full: it would have more than {} MiB", MOST_BYTES >> 20)]
    Full,
}

/// A log that records are added to.
#[derive(Debug)]
pub struct Log {
    file: File,
    last: Mutex<Last>,
}

/// The end of the file as this process has left it.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    length: u64,
    number: u64,
    hash: Hash,
}

impl Log {
    /// Opens a log, or makes it, for this user alone.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or is no log.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        Self::over(Self::file(path)?)
    }

    /// Its file, for a process that cannot open it itself.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn file(path: &Path) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path)
    }

    /// A log by its file, which was opened for reading and appending.
    ///
    /// # Errors
    ///
    /// It is no log.
    pub fn over(file: File) -> Result<Self, LogError> {
        if !file.metadata()?.is_file() {
            return Err(LogError::NoFile);
        }
        let log = Self { file, last: Mutex::default() };
        log.with_lock(|_, _| Ok(()))?;
        Ok(log)
    }

    /// Adds a record. It has left this process when this returns.
    ///
    /// # Errors
    ///
    /// The file is full, or the system has no room; then it is as it was.
    pub fn add(&self, session: &str, event: &Event) -> Result<(), LogError> {
        self.with_lock(|mut file, last| {
            let (line, hash) = record::line(last.number + 1, session, event, last.hash).map_err(io::Error::other)?;
            let length = last.length + line.len() as u64;
            if length > MOST_BYTES || line.len() > LONGEST_LINE {
                return Err(LogError::Full);
            }
            if let Err(error) = file.write_all(line.as_bytes()) {
                file.set_len(last.length)?;
                return Err(error.into());
            }
            *last = Last { length, number: last.number + 1, hash };
            Ok(())
        })
    }

    /// Does something while nobody else adds, with the end of the file.
    fn with_lock(&self, work: impl FnOnce(&File, &mut Last) -> Result<(), LogError>) -> Result<(), LogError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        while let Err(error) = flock(&self.file, FlockOperation::LockExclusive) {
            if error != rustix::io::Errno::INTR {
                return Err(io::Error::from(error).into());
            }
        }
        let length = self.file.metadata()?.len();
        let found = if length == last.length { Ok(*last) } else { self.read_last(length) };
        let done = found.and_then(|found| {
            *last = found;
            work(&self.file, &mut last)
        });
        flock(&self.file, FlockOperation::Unlock).map_err(io::Error::from)?;
        done
    }

    /// The end of a file that somebody else has left.
    fn read_last(&self, length: u64) -> Result<Last, LogError> {
        const STEP: u64 = 64 * 1024;
        let mut size = STEP.min(length);
        while size > 0 {
            let mut tail = vec![0; usize::try_from(size).unwrap_or(LONGEST_LINE)];
            self.file.read_exact_at(&mut tail, length - size)?;
            let line = tail.strip_suffix(b"\n").ok_or(LogError::NoRecord)?;
            let start = line.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            if start.is_none() && size < length && tail.len() <= LONGEST_LINE {
                size = (size * 4).min(length);
                continue;
            }
            let line = line.get(start.unwrap_or(0)..).and_then(|line| std::str::from_utf8(line).ok());
            let (record, is_own) = line.and_then(record::parse).ok_or(LogError::NoRecord)?;
            if !is_own {
                return Err(LogError::NoRecord);
            }
            return Ok(Last { length, number: record.number, hash: record.hash });
        }
        Ok(Last::default())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;
    use crate::{Reader, Text};

    fn command(number: u64) -> Event {
        Event::Command { command: number, text: Text::new("ls \"ä\"\n,\"hash\":\"") }
    }

    #[test]
    fn several_writers_make_one_chain() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let log = Log::open(path).unwrap();
                    for number in 0..50 {
                        log.add(&format!("s{writer}"), &command(number)).unwrap();
                    }
                });
            }
        });
        let records: Vec<_> = Reader::open(&path).unwrap().map(Result::unwrap).collect();
        assert_eq!(records.len(), 200);
        for writer in 0..4 {
            let of_one = records.iter().filter(|record| record.session == format!("s{writer}"));
            let events: Vec<_> = of_one.map(|record| record.event.clone()).collect();
            assert_eq!(events, (0..50).map(command).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_no_log_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for content in ["x", "x\n", "{}\n", "\n", "{\"number\":1}\n"] {
            fs::write(&path, content).unwrap();
            assert!(matches!(Log::open(&path), Err(LogError::NoRecord)), "{content:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert!(matches!(Log::open(Path::new("/dev/null")), Err(LogError::NoFile)));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Log::open(&link), Err(LogError::Io(_))));
    }

    #[test]
    fn a_log_that_is_full_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = Log::open(&path).unwrap();
        log.add("s", &command(1)).unwrap();
        let content = fs::read(&path).unwrap();
        log.last.lock().unwrap().length = MOST_BYTES;
        File::options().write(true).open(&path).unwrap().set_len(MOST_BYTES).unwrap();
        assert!(matches!(log.add("s", &command(2)), Err(LogError::Full)));
        assert_eq!(fs::metadata(&path).unwrap().len(), MOST_BYTES);
        File::options().write(true).open(&path).unwrap().set_len(content.len() as u64).unwrap();
        log.add("s", &command(2)).unwrap();
        assert_eq!(Reader::open(&path).unwrap().map(Result::unwrap).count(), 2);
    }
}
