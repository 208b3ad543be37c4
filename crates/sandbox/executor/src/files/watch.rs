//! Watching files: what is made, changed and removed below a path.

use std::{
    collections::{HashMap, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use gloveport_protocol::files::{FileChange, FileEvent};
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use tokio::io::unix::AsyncFd;

use super::{FileError, paths::shown};

/// Most directories that one watch follows.
pub const MOST_DIRECTORIES: usize = 65_536;
/// Events that wait to be taken; more are an overflow.
const MOST_WAITING: usize = 65_536;

/// What happens at or below a path, in order.
#[derive(Debug)]
pub struct Watch {
    inotify: AsyncFd<OwnedFd>,
    /// The directory of each watch descriptor.
    directories: HashMap<i32, PathBuf>,
    recursive: bool,
    /// The name that counts, where a single file is watched.
    only: Option<OsString>,
    waiting: VecDeque<FileEvent>,
    over: bool,
}

impl Watch {
    /// Watches a directory, with all below it if `recursive`, or a single file. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// Nothing is at `path`, or there are more directories than can be watched.
    pub fn start(path: &Path, recursive: bool) -> Result<Self, FileError> {
        let metadata = fs::metadata(path).map_err(FileError::os(path))?;
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| FileError::Os { path: path.to_owned(), source: error.into() })?;
        let inotify = gloveport_sys::pty::watch(descriptor)
            .map_err(|error| FileError::Os { path: path.to_owned(), source: error })?;
        let mut watch = Self {
            inotify,
            directories: HashMap::new(),
            recursive: recursive && metadata.is_dir(),
            only: None,
            waiting: VecDeque::new(),
            over: false,
        };
        if metadata.is_dir() {
            watch.add(path, false)?;
        } else {
            // A file that is replaced is another one, so its directory is watched.
            watch.only = path.file_name().map(OsStr::to_owned);
            watch.add(path.parent().unwrap_or(Path::new("/")), false)?;
        }
        Ok(watch)
    }

    /// The next event; `None` when what was watched is gone.
    ///
    /// # Errors
    ///
    /// The events can not be read.
    pub async fn next(&mut self) -> io::Result<Option<FileEvent>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            if self.over {
                return Ok(None);
            }
            let mut ready = self.inotify.readable().await?;
            ready.clear_ready();
            drop(ready);
            self.read()?;
        }
    }

    /// Takes what the kernel has.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut raw = Vec::new();
        {
            let mut reader = inotify::Reader::new(self.inotify.get_ref(), &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                        raw.push((event.wd(), event.events(), name));
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                if raw.len() >= MOST_WAITING {
                    break;
                }
            }
        }
        for (descriptor, flags, name) in raw {
            self.translate(descriptor, flags, name.as_deref());
        }
        Ok(())
    }

    fn translate(&mut self, descriptor: i32, flags: ReadFlags, name: Option<&OsStr>) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.push(FileChange::Overflow, Path::new(""), false);
        }
        let Some(directory) = self.directories.get(&descriptor).cloned() else { return };
        if flags.contains(ReadFlags::IGNORED) {
            self.directories.remove(&descriptor);
            self.over = self.directories.is_empty();
            return;
        }
        let is_directory = flags.contains(ReadFlags::ISDIR);
        let Some(name) = name else {
            // About the directory itself: its parent tells, where it is watched too.
            if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF) && self.directories.len() == 1 {
                self.push(FileChange::Removed, &directory, true);
                self.over = true;
            }
            return;
        };
        if self.only.as_ref().is_some_and(|only| only != name) {
            return;
        }
        let path = directory.join(name);
        if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            self.push(FileChange::Created, &path, is_directory);
            if is_directory && self.recursive {
                // What was made in it before it was watched is told, too. It may be gone again.
                let _gone = self.add(&path, true);
            }
        } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            self.push(FileChange::Removed, &path, is_directory);
            if is_directory {
                self.forget(&path);
            }
        } else if flags.contains(ReadFlags::CLOSE_WRITE) {
            self.push(FileChange::Modified, &path, is_directory);
        } else if flags.contains(ReadFlags::ATTRIB) {
            self.push(FileChange::Attributes, &path, is_directory);
        }
    }

    fn push(&mut self, change: FileChange, path: &Path, is_directory: bool) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.clear();
            self.waiting.push_back(FileEvent {
                change: FileChange::Overflow,
                path: String::new(),
                is_directory: false,
            });
        }
        self.waiting.push_back(FileEvent { change, path: shown(path).0, is_directory });
    }

    /// Watches a directory and, if asked for, all below it. With `tell`, what is found there counts as new.
    fn add(&mut self, path: &Path, tell: bool) -> Result<(), FileError> {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let mut open = vec![path.to_owned()];
        while let Some(directory) = open.pop() {
            if self.directories.len() >= MOST_DIRECTORIES {
                return Err(FileError::Invalid(format!(
                    "{} has more than {MOST_DIRECTORIES} directories; watch a part of it",
                    path.display()
                )));
            }
            // A link below the root is not followed, so the walk ends.
            let below = if directory == path { flags } else { flags | WatchFlags::DONT_FOLLOW };
            let descriptor = match inotify::add_watch(self.inotify.get_ref(), &directory, below) {
                Ok(descriptor) => descriptor,
                Err(_) if directory != path => continue,
                Err(error) => return Err(FileError::Os { path: directory, source: error.into() }),
            };
            self.directories.insert(descriptor, directory.clone());
            if !self.recursive {
                break;
            }
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if tell {
                    self.push(FileChange::Created, &entry.path(), is_directory);
                }
                if is_directory {
                    open.push(entry.path());
                }
            }
        }
        Ok(())
    }

    /// Ends the watches of a directory that was moved away.
    fn forget(&mut self, path: &Path) {
        let gone: Vec<i32> =
            self.directories.iter().filter(|(_, known)| known.starts_with(path)).map(|(wd, _)| *wd).collect();
        for descriptor in gone {
            // A directory that was removed has lost its watch already.
            let _gone = inotify::remove_watch(self.inotify.get_ref(), descriptor);
        }
    }
}
