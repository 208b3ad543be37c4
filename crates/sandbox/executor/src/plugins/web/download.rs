//! Files that the browser fetched, as the wire tells them (spec/browser.md 9.1).

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Seek as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_browser::Browser;
use gloveport_browsergym::content;
use gloveport_protocol::{DownloadObservation, ExecuteError};
use gloveport_sys::{
    held::{self, Missing},
    os_error,
    reach::Entries,
    replace::{NewFile, Replacement},
};
use rustix::fs::{Mode, OFlags};

/// Time for a file to be complete.
const TIME: Duration = Duration::from_secs(5);
/// Bytes that tell what a file is.
const HEAD: u64 = 8192;
/// Downloads that are told apart.
const MOST: usize = 100_000;

/// The downloads of a sandbox.
#[derive(Debug, Clone)]
pub(super) struct Downloads {
    directory: PathBuf,
    target: PathBuf,
    owner: Option<(u32, u32)>,
    known: Arc<Mutex<HashSet<OsString>>>,
}

impl Downloads {
    /// Files that come into `directory` are copied to `target`, where they belong to `owner`.
    pub(super) fn new(directory: PathBuf, target: PathBuf, owner: Option<(u32, u32)>) -> Self {
        Self { directory, target, owner, known: Arc::default() }
    }

    /// A download that nobody was told of, copied to where the agent finds it.
    pub(super) async fn newest(
        &self,
        browser: &Browser,
        actions: &str,
    ) -> Result<Option<DownloadObservation>, ExecuteError> {
        // A file gets its name when it is whole.
        browser.downloads_ended(TIME).await;
        let downloads = self.clone();
        let found = tokio::task::spawn_blocking(move || downloads.unknown()).await;
        let found = found.map_err(|error| ExecuteError::Failed(error.to_string()))??;
        let Some(name) = found else { return Ok(None) };
        let downloads = self.clone();
        let copied = tokio::task::spawn_blocking(move || downloads.copy(&name)).await;
        let path = copied.unwrap_or_else(|error| Err(io::Error::other(error)));
        let path = path.map_err(|error| ExecuteError::Failed(os_error::described(&error, &self.target)))?;
        let path = path.to_string_lossy().into_owned();
        Ok(Some(DownloadObservation::new(content::download(actions, &path), path)))
    }

    /// The first entry of the directory that was not there before, which is known from now on.
    fn unknown(&self) -> Result<Option<OsString>, ExecuteError> {
        // What is held is only a place; to be read it is opened.
        let read = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = held::directory(&self.directory, Missing::Refused)
            .and_then(|held| Ok(rustix::fs::openat(held, ".", read, Mode::empty())?))
            .and_then(Entries::of);
        let entries = match opened {
            Ok(entries) => entries,
            // Nothing was downloaded yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ExecuteError::Failed(os_error::described(&error, &self.directory))),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            return Ok(None);
        }
        let new = entries.filter_map(Result::ok).map(|entry| entry.name).find(|name| {
            // A file that is being fetched has this end until it is whole.
            !known.contains(name) && Path::new(name).extension().is_none_or(|end| end != "crdownload")
        });
        if let Some(name) = &new {
            known.insert(name.clone());
        }
        Ok(new)
    }

    fn copy(&self, name: &OsString) -> io::Result<PathBuf> {
        let directory = held::directory(&self.directory, Missing::Refused)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut source = File::from(rustix::fs::openat(&directory, name, flags, Mode::empty())?);
        if !source.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut head = Vec::new();
        (&mut source).take(HEAD).read_to_end(&mut head)?;
        source.rewind()?;
        let end = infer::get(&head).map(|kind| format!(".{}", kind.extension())).unwrap_or_default();
        let number = self.known.lock().unwrap_or_else(PoisonError::into_inner).len();
        let file = format!("file_{number}{end}");
        let path = self.target.join(&file);
        let place = held::directory(&self.target, Missing::Made(0o755))?;
        let new = NewFile { mode: Some(0o644), owner: self.owner };
        let mut copy = Replacement::begin_over(place, file.into(), path.clone(), new)?;
        io::copy(&mut source, copy.file())?;
        copy.commit()?;
        Ok(path)
    }
}
