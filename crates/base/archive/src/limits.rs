//! Bounds of unpacking, and what has been done so far.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::ArchiveError;

/// What an archive may become. The bounds hold for what is really written, whatever the archive announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Bytes of all contents.
    pub bytes: u64,
    /// Files, links and directories, those included that are made on the way to a file.
    pub files: u64,
    /// How many times larger than the archive the contents may be, beyond `unsuspicious` bytes.
    pub ratio: u64,
    /// Bytes of contents up to which the ratio does not matter.
    pub unsuspicious: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self { bytes: 64 << 30, files: 1_000_000, ratio: 200, unsuspicious: 100_000_000 }
    }
}

/// What was packed or unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Files, links included.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Entries that were left out because their names can not be used.
    pub skipped: u64,
}

/// What has been unpacked so far, against its bounds.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) limits: &'a ArchiveLimits,
    /// Whether nobody wants it any more.
    stop: &'a AtomicBool,
    pub(crate) done: Summary,
    /// Bytes of the file that is being written.
    current: u64,
    /// Files, links and directories.
    made: u64,
}

impl<'a> Account<'a> {
    pub(crate) fn new(limits: &'a ArchiveLimits, stop: &'a AtomicBool) -> Self {
        Self { limits, stop, done: Summary::default(), current: 0, made: 0 }
    }

    /// One more file, link or directory is about to be made.
    pub(crate) fn make(&mut self) -> Result<(), ArchiveError> {
        self.check_stop()?;
        if self.made >= self.limits.files {
            return Err(ArchiveError::TooManyFiles { limit: self.limits.files });
        }
        self.made += 1;
        Ok(())
    }

    /// What was made so far.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// More bytes are about to be written.
    pub(crate) fn write(&mut self, bytes: usize) -> Result<(), ArchiveError> {
        self.check_stop()?;
        let current = self.current.saturating_add(bytes as u64);
        if self.done.bytes.saturating_add(current) > self.limits.bytes {
            return Err(ArchiveError::TooManyBytes { limit: self.limits.bytes });
        }
        self.current = current;
        Ok(())
    }

    fn check_stop(&self) -> Result<(), ArchiveError> {
        if self.stop.load(Relaxed) { Err(ArchiveError::Cancelled) } else { Ok(()) }
    }

    /// Bytes that were written, those of the file at work included.
    pub(crate) fn written(&self) -> u64 {
        self.done.bytes.saturating_add(self.current)
    }

    /// The file at work is complete.
    pub(crate) fn complete(&mut self) {
        self.done.files += 1;
        self.done.bytes = self.written();
        self.current = 0;
    }

    /// An entry is left out.
    pub(crate) fn skip(&mut self, name: &[u8], problem: &str) {
        const SHOWN: u64 = 10;
        if self.done.skipped < SHOWN {
            tracing::warn!(name = %String::from_utf8_lossy(name), problem, "an entry of an archive is left out");
        }
        self.done.skipped += 1;
    }
}
