//! The directory that everything stays beneath, on Windows: names are paths here, so each one is looked at before it is
//! used, and nothing that is a link is entered, followed, replaced or made.
//!
//! Between a look and the use somebody else could put a link there. Whoever may write into the destination while
//! something is unpacked can do what they want with it anyway.

use std::{
    fs::{self, File, FileTimes, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    error::ArchiveError,
    limits::Account,
    names::{Given, Keep, shown, temporary_name},
};

/// Names that mean devices, also with something behind a dot.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Those that have a number.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// A directory in which something is made.
pub(crate) type Directory = Arc<PathBuf>;

/// A directory that everything stays beneath.
#[derive(Debug)]
pub(crate) struct Destination {
    root: Directory,
}

impl Destination {
    /// Opens an existing directory.
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let failed = |source| ArchiveError::Destination { path: path.to_owned(), source };
        let root = fs::canonicalize(path).map_err(failed)?;
        if !fs::metadata(&root).map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { root: Arc::new(root) })
    }

    /// A directory beneath, with all its parents. What is missing is made.
    pub(crate) fn directory(
        &mut self,
        components: &[&[u8]],
        account: &mut Account<'_>,
    ) -> Result<Directory, ArchiveError> {
        let entry = components.join(&b'/');
        let mut path = PathBuf::clone(&self.root);
        for component in components {
            path.push(name_of(component, &entry)?);
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => return Err(ArchiveError::Escapes { entry: shown(&entry) }),
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(ArchiveError::InTheWay { entry: shown(&entry), kind: "file" }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    account.make()?;
                    fs::create_dir(&path).map_err(|error| failed(&entry, error))?;
                }
                Err(error) => return Err(failed(&entry, error)),
            }
        }
        Ok(Arc::new(path))
    }

    /// Makes a second name of a file beneath.
    pub(crate) fn hard_link(
        &self,
        target: &[&[u8]],
        directory: &Directory,
        name: &[u8],
        entry: &[u8],
    ) -> Result<(), ArchiveError> {
        let mut path = PathBuf::clone(&self.root);
        for component in target {
            path.push(name_of(component, entry)?);
            if path.symlink_metadata().map_err(|error| failed(entry, error))?.is_symlink() {
                return Err(ArchiveError::Escapes { entry: shown(entry) });
            }
        }
        let link = directory.join(name_of(name, entry)?);
        if path == link {
            return Ok(());
        }
        make_room(&link, entry)?;
        fs::hard_link(&path, &link).map_err(|error| failed(entry, error))
    }

    /// Directories get nothing: they have no modes here, and their times are those of what was made in them.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "on Unix they get something, which can fail")]
    pub(crate) fn give(&self, _path: &[u8], _given: &Given, _closed: bool) -> Result<(), ArchiveError> {
        Ok(())
    }
}

/// A file that is written. Dropping it removes what there is of it.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// Where it is in the end.
    path: PathBuf,
    /// Its name in the archive, for messages.
    entry: String,
    /// Where it is until then.
    temporary: PathBuf,
    /// `None` when it is in its place.
    file: Option<File>,
}

impl NewFile {
    /// Begins a file. A regular file that has its name is replaced at the end.
    pub(crate) fn begin(directory: &Directory, name: &[u8], entry: &[u8], _keep: Keep) -> Result<Self, ArchiveError> {
        let path = directory.join(name_of(name, entry)?);
        replaceable(&path, entry)?;
        let temporary = directory.join(temporary_name(entry)?);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = Some(file.map_err(|error| failed(entry, error))?);
        Ok(Self { path, entry: shown(entry), temporary, file })
    }

    /// Writes a piece of it, within the bounds.
    pub(crate) fn write(&mut self, bytes: &[u8], account: &mut Account<'_>) -> Result<(), ArchiveError> {
        account.write(bytes.len())?;
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes));
        written.map_err(|source| ArchiveError::Write { entry: self.entry.clone(), source })
    }

    /// Gives it its time; it has no mode and no owner here.
    pub(crate) fn give(&self, given: &Given) -> Result<(), ArchiveError> {
        let Some(time) = time(given.modified) else { return Ok(()) };
        let set = self.file.as_ref().map_or(Ok(()), |file| file.set_times(FileTimes::new().set_modified(time)));
        set.map_err(|source| ArchiveError::Write { entry: self.entry.clone(), source })
    }

    /// It is complete.
    pub(crate) fn finish(mut self) -> Result<(), ArchiveError> {
        let failed = |source| ArchiveError::Write { entry: self.entry.clone(), source };
        fs::rename(&self.temporary, &self.path).map_err(failed)?;
        self.file = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some()
            && let Err(error) = fs::remove_file(&self.temporary)
        {
            tracing::warn!(%error, path = %self.temporary.display(), "a file that is not complete can not be removed");
        }
    }
}

/// Files of this machine have no owners that a stream could name.
pub(crate) const fn gives_away() -> bool {
    false
}

/// Links are not made: Windows wants to know whether they lead to a directory, and lets few users make them.
pub(crate) fn symlink(
    _directory: &Directory,
    _name: &[u8],
    _target: &[u8],
    entry: &[u8],
    _given: &Given,
) -> Result<(), ArchiveError> {
    Err(ArchiveError::Unsupported { entry: shown(entry), what: "a symbolic link (on Windows)" })
}

/// A name as this system has it, if it means a file in its directory and nothing else.
fn name_of<'a>(component: &'a [u8], entry: &[u8]) -> Result<&'a str, ArchiveError> {
    let wrong = |what| ArchiveError::Unsupported { entry: shown(entry), what };
    let name = std::str::from_utf8(component).map_err(|_| wrong("of a name that is no Unicode"))?;
    let is_forbidden = |character: char| character < ' ' || r#"<>:"/\|?*"#.contains(character);
    if name.is_empty() || name.chars().any(is_forbidden) || name.ends_with(['.', ' ']) {
        return Err(wrong("of a name that Windows cannot have"));
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let is_numbered = NUMBERED.iter().any(|device| {
        let mut rest = stem.strip_prefix(device).unwrap_or_default().chars();
        matches!((rest.next(), rest.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    });
    if is_numbered || DEVICES.contains(&stem.as_str()) {
        return Err(wrong("of a name that means a device on Windows"));
    }
    Ok(name)
}

fn make_room(path: &Path, entry: &[u8]) -> Result<(), ArchiveError> {
    replaceable(path, entry)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(entry, error)),
        _ => Ok(()),
    }
}

fn replaceable(path: &Path, entry: &[u8]) -> Result<(), ArchiveError> {
    let kind = match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => "link",
        Ok(found) if found.is_dir() => "directory",
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(entry, error)),
    };
    Err(ArchiveError::InTheWay { entry: shown(entry), kind })
}

fn time((seconds, nanoseconds): (i64, u32)) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    whole?.checked_add(Duration::from_nanos(nanoseconds.into()))
}

fn failed(entry: &[u8], error: io::Error) -> ArchiveError {
    ArchiveError::Write { entry: shown(entry), source: error }
}
