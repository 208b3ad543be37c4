//! The durable log in a directory of this machine.
//!
//! A batch of events is appended to a journal with one sync, and is durable then. After that each event becomes a file
//! of its own where the reference looks for it; these files take their place whole, so that no reader sees half of
//! one, but are not synced with it. When a file of the journal is full, the other one takes over, and in the background
//! the events of the full one are synced; then it is emptied. What a crash of the machine did to the event files is
//! repaired from the journal when the history is opened again.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::{Entry, journal::JournalFile, record};
use crate::{
    error::{HistoryError, LogError},
    history::{FullPage, PAGE_SIZE, PageBuilder, is_event, page_start},
    store::{create_directories, sync_directory},
};

/// Names of the files of the journal. The first is also the lock.
const JOURNALS: [&str; 2] = ["events.journal", "events.journal.1"];
/// Name of a file that is being written. It is not in the directory of the events, where a name with a number in it
/// would count as an event.
const TEMPORARY: &str = "events.journal.tmp";

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

/// What may be where a file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing.
    Free,
    /// Something that is not needed any more.
    Any,
}

/// The durable log of one conversation. There is one at a time, in all processes.
#[derive(Debug)]
pub(crate) struct LocalLog {
    directories: Directories,
    journals: [JournalFile; 2],
    /// Which file of the journal is written.
    active: usize,
    /// Syncs the events of the other file.
    checkpoint: Checkpoint,
    page: PageBuilder,
    limits: JournalLimits,
}

#[derive(Clone, Debug)]
struct Directories {
    conversation: PathBuf,
    events: PathBuf,
    pages: PathBuf,
}

impl LocalLog {
    /// Opens the log of a conversation in its directory, and repairs what a crash has left. Gives the next number.
    pub(crate) fn open(conversation: PathBuf, limits: JournalLimits) -> Result<(Self, i64), HistoryError> {
        let events = conversation.join("events");
        let pages = conversation.join("event_cache");
        for directory in [&events, &pages] {
            create_directories(directory).map_err(failed("create", directory))?;
        }
        let first = JournalFile::open_locked(conversation.join(JOURNALS[0]))?;
        let second = JournalFile::open(conversation.join(JOURNALS[1]))?;
        sync_directory(&conversation).map_err(failed("sync", &conversation))?;
        let directories = Directories { conversation, events, pages };
        let mut log = Self {
            directories,
            journals: [first, second],
            active: 0,
            checkpoint: Checkpoint(None),
            page: PageBuilder::default(),
            limits,
        };
        log.repair()?;
        let next = log.directories.next_id()?;
        log.resume_page(next);
        Ok((log, next))
    }

    /// Makes events durable and visible, in order. Gives how many are, and why the next one is not.
    pub(crate) fn append(&mut self, entries: &[Entry]) -> (usize, Option<AppendError>) {
        let (count, error) = self.append_all(entries);
        let error = error.map(|error| match error.source.kind() {
            // The reference knows no lock. Its event stays, and ours gets a number behind it.
            io::ErrorKind::AlreadyExists => self.directories.next_id().map_or_else(AppendError::Failed, |next| {
                tracing::warn!(path = %error.path.display(), "another program adds events to this conversation, too");
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
                let path = self.directories.event(entry.id);
                return (0, Some(LogError { operation: "write", path, source }));
            }
        }
        if let Err(error) = journal.append(entries.iter().map(|entry| entry.id), &records) {
            return (0, Some(error));
        }
        let mut end = start;
        for (done, entry) in entries.iter().enumerate() {
            if let Err(error) = self.directories.publish(&self.directories.event(entry.id), &entry.text, Place::Free) {
                let journal = &mut self.journals[self.active];
                if let Err(error) = journal.take_back(count + done, end) {
                    tracing::error!("{error}; it is tried again before the next event is stored");
                }
                return (done, Some(error));
            }
            end += (record::HEADER + entry.text.len()) as u64;
            if let Some(page) = self.page.push(entry.id, &entry.text)
                && let Err(error) = self.directories.publish_page(&page)
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
        self.directories.sync(&ids)?;
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
        let directories = self.directories.clone();
        let ids = self.journals[1 - self.active].ids().to_vec();
        let work = thread::Builder::new().name("event-log-sync".to_owned());
        match work.spawn(move || directories.sync(&ids)) {
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
            self.directories.sync(other.ids())?;
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
            restored += usize::from(self.directories.restore(record.id, &record.text)?);
        }
        if restored > 0 {
            let directory = self.directories.conversation.display();
            tracing::warn!(%directory, restored, "events that a crash had cut off were restored from the journal");
        }
        Ok(self.directories.check_pages(records.iter().map(|record| record.id))?)
    }

    /// Takes up the page that the next event belongs to. Without all of its events there will be no page.
    fn resume_page(&mut self, next: i64) {
        for id in page_start(next)..next {
            match fs::read(self.directories.event(id)) {
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

impl Directories {
    fn event(&self, id: i64) -> PathBuf {
        self.events.join(format!("{id}.json"))
    }

    fn page(&self, start: i64) -> PathBuf {
        self.pages.join(format!("{start}-{}.json", start + PAGE_SIZE))
    }

    /// One more than the highest number of an event.
    fn next_id(&self) -> Result<i64, LogError> {
        let mut next = 0;
        for entry in fs::read_dir(&self.events).map_err(failed("list", &self.events))? {
            let name = entry.map_err(failed("list", &self.events))?.file_name();
            let stem = name.to_str().and_then(|name| name.split('.').next());
            if let Some(id) = stem.and_then(|stem| stem.parse::<i64>().ok()).filter(|id| *id >= 0) {
                next = next.max(id.saturating_add(1));
            } else {
                tracing::warn!(?name, "a file among the events is left out: its name is no number");
            }
        }
        Ok(next)
    }

    /// Puts a file into its place whole, but does not sync it.
    fn publish(&self, place: &Path, content: &[u8], what: Place) -> Result<(), LogError> {
        let temporary = self.conversation.join(TEMPORARY);
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(content)?;
            match what {
                Place::Free => rename_new(&temporary, place),
                Place::Any => fs::rename(&temporary, place),
            }
        };
        write().map_err(|source| {
            // A full disk gets its room back.
            let _ = fs::remove_file(&temporary);
            LogError { operation: "write", path: place.to_owned(), source }
        })
    }

    fn publish_page(&self, page: &FullPage) -> Result<(), LogError> {
        self.publish(&self.page(page.start), &page.content, Place::Any)
    }

    /// Writes an event again if its file is missing, empty or torn; says whether it was.
    ///
    /// A file that is a whole event and another one than the journal's was written by somebody else after a crash, the
    /// reference for one; readers have seen it, so it stays.
    fn restore(&self, id: i64, text: &[u8]) -> Result<bool, LogError> {
        let place = self.event(id);
        match fs::read(&place) {
            Ok(content) if content == text => return Ok(false),
            Ok(content) if is_event(&content, id) => {
                tracing::warn!(path = %place.display(), "another program has stored an event of this number; it stays");
                return Ok(false);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &place)(error)),
        }
        self.publish(&place, text, Place::Any)?;
        Ok(true)
    }

    /// Removes pages that do not hold the events of the journal: a crash can have torn them.
    fn check_pages(&self, ids: impl Iterator<Item = i64>) -> Result<(), LogError> {
        let mut checked = None;
        for id in ids {
            let start = page_start(id);
            if checked.replace(start) == Some(start) {
                continue;
            }
            let place = self.page(start);
            match fs::read(&place) {
                Ok(content) if self.is_page(&content, start) => {}
                Ok(_) => fs::remove_file(&place).map_err(failed("remove", &place))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed("read", &place)(error)),
            }
        }
        Ok(())
    }

    /// Whether a page is what its events say.
    fn is_page(&self, content: &[u8], start: i64) -> bool {
        let mut builder = PageBuilder::default();
        let page = (start..start + PAGE_SIZE).find_map(|id| {
            let text = fs::read(self.event(id)).unwrap_or_default();
            builder.push(id, &Bytes::from(text))
        });
        page.is_some_and(|page| page.content == content)
    }

    /// Makes events, their pages and their names durable.
    fn sync(&self, ids: &[i64]) -> Result<(), LogError> {
        if ids.is_empty() {
            return Ok(());
        }
        for directory in [&self.events, &self.pages] {
            if !sync_file_system(directory).map_err(failed("sync", directory))? {
                return self.sync_each(ids);
            }
        }
        Ok(())
    }

    /// The same, one file after the other.
    fn sync_each(&self, ids: &[i64]) -> Result<(), LogError> {
        for id in ids {
            sync_file(&self.event(*id))?;
            if page_start(id + 1) == id + 1 {
                sync_file(&self.page(page_start(*id)))?;
            }
        }
        for directory in [&self.events, &self.pages] {
            sync_directory(directory).map_err(failed("sync", directory))?;
        }
        Ok(())
    }
}

/// File systems of which it is known that a sync of the whole is one of every file: ext4, XFS, Btrfs, F2FS, tmpfs and
/// overlays.
const SYNCED_WHOLE: [i64; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630];

/// Syncs the file system of a directory at once, where that can be relied on; says whether it did.
///
/// A thousand files one by one are a thousand commits of the file system, which take seconds on a busy machine; this is
/// one.
fn sync_file_system(directory: &Path) -> io::Result<bool> {
    let file = File::open(directory)?;
    let kind = rustix::fs::fstatfs(&file)?.f_type;
    if !SYNCED_WHOLE.contains(&kind) {
        return Ok(false);
    }
    rustix::fs::syncfs(&file)?;
    Ok(true)
}

/// Renames a file unless something has the new name.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not know the flag.
        Err(Errno::INVAL | Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        other => Ok(other?),
    }
}

/// Makes a file durable; a missing one is: a page may not have been written, an event was removed by somebody else.
fn sync_file(path: &Path) -> Result<(), LogError> {
    match File::open(path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed("sync", path)),
    }
}

fn failed(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    move |source| LogError { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
