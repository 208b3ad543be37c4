//! A directory that files are used beneath, and the paths that lead there.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use crate::{
    beneath::{DIRECTORY, Links, Root, TRIES},
    replace::{NewFile, Replacement},
};

/// Links that are followed for one path; as many as the kernel follows.
const LINKS: usize = 40;

/// Bytes of a path, with its end, that the kernel does not take any more.
const LONGEST: usize = 4_096;

/// A directory that files are used beneath.
#[derive(Debug)]
pub struct Bounds {
    root: Root,
    /// Its path without links.
    path: PathBuf,
}

/// The directory that something is in, and its name there, which is no link, or was none a moment ago.
#[derive(Debug)]
pub struct Parent {
    /// The directory; a place for others only.
    pub directory: OwnedFd,
    /// The name.
    pub name: OsString,
    /// The whole path without links.
    pub path: PathBuf,
}

/// What can not be made on the way to a directory.
#[derive(Debug)]
pub struct Obstacle {
    /// What is in the way, or can not be made.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl Bounds {
    /// Takes an existing directory. What happens to its name from now on does not matter.
    ///
    /// # Errors
    ///
    /// It does not exist, is no directory, or may not be entered.
    pub fn new(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        Ok(Self { root: Root::open(&path)?, path })
    }

    /// The same as on a system without `openat2`.
    #[must_use]
    pub fn step_by_step(self) -> Self {
        Self { root: self.root.step_by_step(), ..self }
    }

    /// The directory's path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a path that has no links and no `..` is the directory or beneath it.
    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.path)
    }

    /// Where a path leads: without links and without `..`. What is missing on the way is taken as it is. Relative ones
    /// begin at the directory. The result may be out of bounds, and may be wrong as soon as it is given.
    ///
    /// # Errors
    ///
    /// There are too many links (`ELOOP`), the path is too long (`ENAMETOOLONG`), or it has a NUL (`EINVAL`).
    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        if path.as_os_str().as_bytes().contains(&0) {
            return Err(Errno::INVAL.into());
        }
        // The directory's own path has no links.
        let (mut real, rest) = match path.strip_prefix(&self.path) {
            Ok(rest) => (self.path.clone(), rest),
            Err(_) if path.is_absolute() => (PathBuf::from("/"), path),
            Err(_) => (self.path.clone(), path),
        };
        let mut names: Vec<OsString> = reversed(rest);
        let mut links = 0;
        while let Some(name) = names.pop() {
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(&name);
            if real.as_os_str().len() >= LONGEST {
                return Err(Errno::NAMETOOLONG.into());
            }
            let Ok(target) = rustix::fs::readlinkat(CWD, &real, Vec::new()) else { continue };
            links += 1;
            if links > LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            real.pop();
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            names.extend(reversed(&target));
        }
        Ok(real)
    }

    /// Opens something that exists. No link is followed by the kernel, so the flags must not ask for more than that.
    ///
    /// # Errors
    ///
    /// The path is out of bounds (`EXDEV`), or what the system says.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        for _ in 0..TRIES {
            let real = self.resolve(path)?;
            match self.root.open_beneath(self.relative(&real)?, flags, Links::Refused) {
                // A link came into the way.
                Err(Errno::LOOP) => {}
                other => return Ok(other?),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// The directory that a file is in or belongs in, and its name there.
    ///
    /// # Errors
    ///
    /// The path is the directory of the bounds itself (`EISDIR`), is out of bounds (`EXDEV`), or its directory does not
    /// exist.
    pub fn parent(&self, path: &Path) -> io::Result<Parent> {
        for _ in 0..TRIES {
            let real = self.resolve(path)?;
            let relative = Path::new(OsStr::from_bytes(self.relative(&real)?));
            let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
                return Err(Errno::ISDIR.into());
            };
            match self.root.open_beneath(parent.as_os_str().as_bytes(), DIRECTORY, Links::Refused) {
                Err(Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
                Ok(directory) => return Ok(Parent { directory, name: name.to_owned(), path: real }),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Begins to write a file whole. A file that has other names gets a new one under this name, and the others keep the
    /// old: they may be out of bounds.
    ///
    /// # Errors
    ///
    /// Those of [`Replacement::begin`], and `EXDEV` out of bounds.
    pub fn replace(&self, path: &Path, new: NewFile) -> io::Result<Replacement> {
        for _ in 0..TRIES {
            let Parent { directory, name, path: real } = self.parent(path)?;
            match Replacement::begin_in(directory, name, real, new) {
                Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {}
                other => return other,
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Makes a directory with all that is missing on the way, and opens it as a place for others.
    ///
    /// # Errors
    ///
    /// Something is in the way, can not be made, or is out of bounds (`EXDEV`).
    pub fn make_directories(&self, path: &Path) -> Result<OwnedFd, Obstacle> {
        let failed = |path: &Path, error: Errno| Obstacle { path: path.to_owned(), source: error.into() };
        'tries: for _ in 0..TRIES {
            let real = self.resolve(path).map_err(|source| Obstacle { path: path.to_owned(), source })?;
            let relative = self.relative(&real).map_err(|source| Obstacle { path: real.clone(), source })?;
            let mut directory =
                self.root.open_beneath(b"", DIRECTORY, Links::Refused).map_err(|error| failed(&self.path, error))?;
            let mut at = self.path.clone();
            let mut names = Path::new(OsStr::from_bytes(relative)).iter().peekable();
            while let Some(name) = names.next() {
                at.push(name);
                match rustix::fs::mkdirat(&directory, name, Mode::from_bits_truncate(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(failed(&at, error)),
                }
                directory = match rustix::fs::openat(&directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                    Ok(found) => found,
                    // A link came into the way, or the directory is gone again.
                    Err(Errno::LOOP | Errno::NOENT) => continue 'tries,
                    Err(Errno::NOTDIR) if self.resolve(&at).is_ok_and(|now| now != at) => continue 'tries,
                    // As the system says of a file where a directory is to be made, or is to have one.
                    Err(Errno::NOTDIR) => {
                        return Err(match names.next() {
                            Some(next) => failed(&at.join(next), Errno::NOTDIR),
                            None => failed(&at, Errno::EXIST),
                        });
                    }
                    Err(error) => return Err(failed(&at, error)),
                };
            }
            return Ok(directory);
        }
        Err(failed(path, Errno::LOOP))
    }

    /// A path without links as one from the directory on.
    fn relative<'a>(&self, real: &'a Path) -> io::Result<&'a [u8]> {
        match real.strip_prefix(&self.path) {
            Ok(relative) => Ok(relative.as_os_str().as_bytes()),
            Err(_) => Err(Errno::XDEV.into()),
        }
    }
}

/// The names of a path, the first one last.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<_> = names.collect();
    names.reverse();
    names
}
