//! The durable log in a directory of this machine.
//!
//! A batch of events is appended to a journal with one sync, and is durable then. After that each event becomes a file
//! of its own where the reference looks for it; these files take their place whole, so that no reader sees half of
//! one, but are not synced with it. When a file of the journal is full, the other one takes over, and in the background
//! the events of the full one are synced; then it is emptied. What a crash of the machine did to the event files is
//! repaired from the journal when the history is opened again.

use std::{
    fs, io,
    path::Path,
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use gloveport_platform::sync_directory;

use super::{
    Entry,
    files::{EventFiles, Place, failed},
    journal::JournalFile,
    record,
};
use crate::{
    error::{HistoryError, LogError},
    history::{PageBuilder, is_event, page_start},
};

/// Names of the files of the journal. The first is also the lock.
const JOURNALS: [&str; 2] = ["events.journal", "events.journal.1"];
/// When a file of the journal is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalLimits {
    /// Bytes.
    pub(crate) length: u64,
    /// Events.
    pub(crate) count: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self { length: 4 << 20, count: 1_024 }
    }
}

/// Why an event was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// Its number is taken; this one is free.
    Taken {
        /// The number.
        next: i64,
    },
    /// It cannot be stored.
    Failed(LogError),
}

/// The durable log of one conversation. There is one at a time, in all processes.
#[derive(Debug)]
pub(crate) struct LocalLog {
    files: EventFiles,
    journals: [JournalFile; 2],
    /// Which file of the journal is written.
    active: usize,
    /// Syncs the events of the other file.
    checkpoint: Checkpoint,
    page: PageBuilder,
    limits: JournalLimits,
}

impl LocalLog {
    /// Opens the log of a conversation in its directory, and repairs what a crash has left. Gives the next number.
    pub(crate) fn open(conversation: &Path, limits: JournalLimits) -> Result<(Self, i64), HistoryError> {
        let files = EventFiles::create(conversation)?;
        let first = JournalFile::open_locked(conversation.join(JOURNALS[0]))?;
        let second = JournalFile::open(conversation.join(JOURNALS[1]))?;
        sync_directory(conversation).map_err(failed("sync", conversation))?;
        let mut log = Self {
            files,
            journals: [first, second],
            active: 0,
            checkpoint: Checkpoint(None),
            page: PageBuilder::default(),
            limits,
        };
        log.files.remove_leftover();
        log.repair()?;
        let next = log.files.next_id()?;
        log.resume_page(next);
        Ok((log, next))
    }

    /// Makes events durable and visible, in order. Gives how many are, and why the next one is not.
    pub(crate) fn append(&mut self, entries: &[Entry]) -> (usize, Option<AppendError>) {
        let (count, error) = self.append_all(entries);
        let error = error.map(|error| match error.source.kind() {
            // The reference knows no lock. Its event stays, and ours gets a number behind it.
            io::ErrorKind::AlreadyExists => self.files.next_id().map_or_else(AppendError::Failed, |next| {
                tracing::warn!(path = %error.path.display(), "another program also adds events to this conversation");
                AppendError::Taken { next }
            }),
            _ => AppendError::Failed(error),
        });
        (count, error)
    }

    fn append_all(&mut self, entries: &[Entry]) -> (usize, Option<LogError>) {
        if let Err(error) = self.rotate() {
            return (0, Some(error));
        }
        let mut records = Vec::new();
        let journal = &mut self.journals[self.active];
        let (count, start) = (journal.ids().len(), journal.length());
        for entry in entries {
            if record::encode(entry.id, &entry.text, &mut records).is_err() {
                let source = io::Error::from(io::ErrorKind::FileTooLarge);
                let path = self.files.event(entry.id);
                return (0, Some(LogError { operation: "write", path, source }));
            }
        }
        if let Err(error) = journal.append(entries.iter().map(|entry| entry.id), &records) {
            return (0, Some(error));
        }
        let mut end = start;
        for (done, entry) in entries.iter().enumerate() {
            if let Err(error) = self.files.publish(&self.files.event(entry.id), &entry.text, Place::Free) {
                let journal = &mut self.journals[self.active];
                if let Err(error) = journal.take_back(count + done, end) {
                    tracing::error!("{error}; it is tried again before the next event is stored");
                }
                return (done, Some(error));
            }
            end += (record::HEADER + entry.text.len()) as u64;
            if let Some(page) = self.page.push(entry.id, &entry.text)
                && let Err(error) = self.files.publish_page(&page)
            {
                tracing::warn!("{error}; the events are there without the page");
            }
        }
        (entries.len(), None)
    }

    /// Syncs what is not synced yet, and leaves no journal behind.
    pub(crate) fn close(mut self) -> Result<(), LogError> {
        self.finish_checkpoint()?;
        let ids = self.journals[self.active].ids().to_vec();
        self.files.sync(&ids)?;
        let [mut first, mut second] = self.journals;
        first.clear()?;
        second.clear()?;
        second.remove()?;
        // The lock is the last to go.
        first.remove()
    }

    /// Changes to the other file of the journal when one is full, and has the events of the full one synced.
    fn rotate(&mut self) -> Result<(), LogError> {
        let journal = &self.journals[self.active];
        if journal.length() < self.limits.length && journal.ids().len() < self.limits.count {
            return Ok(());
        }
        self.finish_checkpoint()?;
        self.active = 1 - self.active;
        self.start_checkpoint();
        Ok(())
    }

    /// Begins to sync the events of the file of the journal that is not written.
    fn start_checkpoint(&mut self) {
        let files = self.files.clone();
        let ids = self.journals[1 - self.active].ids().to_vec();
        let work = thread::Builder::new().name("event-log-sync".to_owned());
        match work.spawn(move || files.sync(&ids)) {
            Ok(thread) => self.checkpoint = Checkpoint(Some(thread)),
            // It is done when the file is needed again.
            Err(error) => tracing::warn!(%error, "events are not synced in the background"),
        }
    }

    /// Waits until the events of the other file are synced, and empties it. If that failed, or nobody began it since a
    /// crash, it is done here.
    fn finish_checkpoint(&mut self) -> Result<(), LogError> {
        let outcome = self.checkpoint.0.take().map(JoinHandle::join);
        let other = &mut self.journals[1 - self.active];
        if other.length() > 0 && !matches!(outcome, Some(Ok(Ok(())))) {
            self.files.sync(other.ids())?;
        }
        other.clear()
    }

    /// Brings the event files into the state that the journal says.
    fn repair(&mut self) -> Result<(), HistoryError> {
        let mut last = [None; 2];
        let mut records = Vec::new();
        for (journal, last) in self.journals.iter_mut().zip(&mut last) {
            let found = journal.records()?;
            *last = found.last().map(|record| record.id);
            records.extend(found);
        }
        // The file with the newer events goes on being written.
        self.active = usize::from(last[1] > last[0]);
        let mut restored = 0_usize;
        for record in &records {
            restored += usize::from(self.files.restore(record.id, &record.text)?);
        }
        if restored > 0 {
            let directory = self.files.conversation.display();
            tracing::warn!(%directory, restored, "events that a crash had cut off were restored from the journal");
        }
        Ok(self.files.check_pages(records.iter().map(|record| record.id))?)
    }

    /// Takes up the page that the next event belongs to. Without all of its events there will be no page.
    fn resume_page(&mut self, next: i64) {
        for id in page_start(next)..next {
            match fs::read(self.files.event(id)) {
                Ok(text) if is_event(&text, id) => drop(self.page.push(id, &Bytes::from(text))),
                _ => return,
            }
        }
    }
}

/// The thread that syncs events; it ends before this is gone.
#[derive(Debug)]
struct Checkpoint(Option<JoinHandle<Result<(), LogError>>>);

impl Drop for Checkpoint {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // What was not synced stays in the journal.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
