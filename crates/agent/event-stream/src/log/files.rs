//! The files of events and pages, where the reference looks for them.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use gloveport_platform::{private_file, rename_new, sync_directory, sync_file_system};

use crate::{
    error::LogError,
    history::{FullPage, PAGE_SIZE, PageBuilder, is_event, number, page_start},
    store::create_directories,
};

/// Name of a file that is being written. It is not in the directory of the events, where a name with a number in it
/// would count as an event.
const TEMPORARY: &str = "events.journal.tmp";

/// What may be where a file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing.
    Free,
    /// Something that is not needed any more.
    Any,
}

/// The files of one conversation.
#[derive(Clone, Debug)]
pub(crate) struct EventFiles {
    pub(crate) conversation: PathBuf,
    events: PathBuf,
    pages: PathBuf,
}

impl EventFiles {
    /// The files of the conversation in this directory; creates what holds them.
    pub(crate) fn create(conversation: &Path) -> Result<Self, LogError> {
        let files = Self {
            events: conversation.join("events"),
            pages: conversation.join("event_cache"),
            conversation: conversation.to_owned(),
        };
        for directory in [&files.events, &files.pages] {
            create_directories(directory).map_err(failed("create", directory))?;
        }
        Ok(files)
    }

    /// Removes the file that was being written when a process was killed. Nobody may write any more.
    pub(crate) fn remove_leftover(&self) {
        // There is none, as a rule.
        let _ = fs::remove_file(self.conversation.join(TEMPORARY));
    }

    /// Where an event is.
    pub(crate) fn event(&self, id: i64) -> PathBuf {
        self.events.join(format!("{id}.json"))
    }

    /// Where a page is.
    fn page(&self, start: i64) -> PathBuf {
        self.pages.join(format!("{start}-{}.json", start + PAGE_SIZE))
    }

    /// One more than the highest number of an event.
    pub(crate) fn next_id(&self) -> Result<i64, LogError> {
        let last = number::highest_in(&self.events).map_err(failed("list", &self.events))?;
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    /// Puts a file into its place whole, but does not sync it.
    pub(crate) fn publish(&self, place: &Path, content: &[u8], what: Place) -> Result<(), LogError> {
        let temporary = self.conversation.join(TEMPORARY);
        let write = || {
            let mut file = private_file().write(true).create(true).truncate(true).open(&temporary)?;
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

    /// Puts a page into its place.
    pub(crate) fn publish_page(&self, page: &FullPage) -> Result<(), LogError> {
        self.publish(&self.page(page.start), &page.content, Place::Any)
    }

    /// Writes an event again if its file is missing, empty or torn; says whether it was.
    ///
    /// A file that is a whole event and another one than the journal's was written by somebody else after a crash, the
    /// reference for one; readers have seen it, so it stays.
    pub(crate) fn restore(&self, id: i64, text: &[u8]) -> Result<bool, LogError> {
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
    pub(crate) fn check_pages(&self, ids: impl Iterator<Item = i64>) -> Result<(), LogError> {
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
    pub(crate) fn is_page(&self, content: &[u8], start: i64) -> bool {
        let mut builder = PageBuilder::default();
        let page = (start..start + PAGE_SIZE).find_map(|id| {
            let text = fs::read(self.event(id)).unwrap_or_default();
            builder.push(id, &Bytes::from(text))
        });
        page.is_some_and(|page| page.content == content)
    }

    /// Makes events, their pages and their names durable.
    pub(crate) fn sync(&self, ids: &[i64]) -> Result<(), LogError> {
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
    pub(crate) fn sync_each(&self, ids: &[i64]) -> Result<(), LogError> {
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

/// Makes a file durable; a missing one is: a page may not have been written, an event was removed by somebody else.
fn sync_file(path: &Path) -> Result<(), LogError> {
    match File::open(path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed("sync", path)),
    }
}

/// What failed, on what.
pub(crate) fn failed(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> LogError {
    move |source| LogError { operation, path: path.to_owned(), source }
}
