//! The tree of an image, which no name and no link leads out of: the kernel resolves each path as if the tree were the
//! whole file system, and what is made has no link as its last name.

use std::{
    collections::{HashMap, HashSet, hash_map::RandomState},
    fs::File,
    hash::BuildHasher as _,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use super::error::LayerError;
use crate::owners::Files;

/// How directories are opened that are only a place for others.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How directories are opened whose contents or attributes are needed.
pub(super) const LISTED: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Tries before the kernel's "try again" (something was renamed meanwhile, anywhere) counts as an error.
const TRIES: usize = 64;
/// Most directories in each other.
const DEEPEST: u16 = 256;

/// A directory of the tree.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) file: OwnedFd,
    /// What tells it from others of the tree.
    pub(super) number: u64,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
    /// How deep each directory lies. Links can make a path shorter than the way to what it names.
    depths: HashMap<u64, u16>,
    /// The directory that was opened last, by its path.
    last: Option<(Vec<u8>, Arc<Directory>)>,
    /// Names that this layer made, each as a hash of its directory and itself.
    made: HashSet<u64>,
    /// Files that are to be given to others later, by their numbers.
    given: HashMap<u64, (u32, u32)>,
    hasher: RandomState,
}

impl Tree {
    /// Of an empty directory.
    pub(super) fn open(path: &Path) -> Result<Self, LayerError> {
        let opened = rustix::fs::openat(CWD, path, PLACE, Mode::empty());
        let root = opened.map_err(|error| LayerError::system("open the directory of the image", error))?;
        let number = number(&root)?;
        Ok(Self {
            root,
            depths: HashMap::from([(number, 0)]),
            last: None,
            made: HashSet::new(),
            given: HashMap::new(),
            hasher: RandomState::new(),
        })
    }

    /// Begins a layer: what is there belongs to earlier ones.
    pub(super) fn begin_layer(&mut self) {
        self.made.clear();
        self.last = None;
    }

    /// Notes that this layer made a name.
    pub(super) fn note(&mut self, directory: &Directory, name: &[u8]) {
        self.made.insert(self.hasher.hash_one((directory.number, name)));
    }

    /// Whether this layer made a name.
    pub(super) fn has_made(&self, directory: u64, name: &[u8]) -> bool {
        self.made.contains(&self.hasher.hash_one((directory, name)))
    }

    /// Notes to whom a file is given later. Root's, which all are at first, are not kept.
    pub(super) fn give_later(&mut self, number: u64, user: u32, group: u32) {
        // It may have the number of one that was removed.
        if (user, group) == (0, 0) {
            self.given.remove(&number);
        } else {
            self.given.insert(number, (user, group));
        }
    }

    /// Notes that a file is gone: its number is that of another one some time.
    pub(super) fn give_no_more(&mut self, number: u64) {
        self.given.remove(&number);
    }

    /// All files that are given, and to whom.
    pub(super) fn given(self) -> Files {
        self.given.into_iter().map(|(number, (user, group))| (number, user, group)).collect()
    }

    /// Forgets what names led to, because something was removed.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    fn resolve(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match rustix::fs::openat2(&self.root, path, PLACE, Mode::empty(), how) {
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// A directory that exists; `None` if it does not.
    pub(super) fn find(&mut self, components: &[&[u8]]) -> Result<Option<Arc<Directory>>, LayerError> {
        let path = components.join(&b'/');
        if let Some((_, directory)) = self.last.as_ref().filter(|(last, _)| *last == path) {
            return Ok(Some(Arc::clone(directory)));
        }
        let file = match self.resolve(&path) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOSYS) => {
                return Err(LayerError::damaged("the system does not know `openat2`; Linux 5.6 or newer is needed"));
            }
            Err(Errno::NOTDIR) => return Err(LayerError::damaged("something above it is no directory")),
            Err(Errno::LOOP) => return Err(LayerError::damaged("links above it lead in a circle")),
            Err(error) => return Err(LayerError::system("open the directory that it is in", error)),
        };
        let directory = Arc::new(Directory { number: number(&file)?, file });
        self.last = Some((path, Arc::clone(&directory)));
        Ok(Some(directory))
    }

    /// A directory, which is made if it does not exist; `counted` is called for each one that is.
    pub(super) fn find_or_make(
        &mut self,
        components: &[&[u8]],
        counted: &mut dyn FnMut() -> Result<(), LayerError>,
    ) -> Result<Arc<Directory>, LayerError> {
        if let Some(found) = self.find(components)? {
            return Ok(found);
        }
        let missing = || LayerError::damaged("the directory that it is in cannot be made");
        let mut parent = self.find(&[])?.ok_or_else(missing)?;
        for count in 1..=components.len() {
            let path = components.get(..count).unwrap_or_default();
            let mut directory = self.find(path)?;
            if directory.is_none()
                && let Some(name) = path.last()
            {
                counted()?;
                let (file, _) = self.make(&parent, name).map_err(|error| match error {
                    MakeError::Exists => LayerError::damaged("a link above it leads to nothing"),
                    MakeError::Other(error) => error,
                })?;
                let mode = Mode::from_raw_mode(0o755);
                rustix::fs::fchmod(&file, mode).map_err(|error| LayerError::system("set a mode", error))?;
                self.note(&parent, name);
                directory = self.find(path)?;
            }
            parent = directory.ok_or_else(missing)?;
        }
        Ok(parent)
    }

    /// Makes a directory, for its owner alone; returns it with its number.
    pub(super) fn make(&mut self, parent: &Directory, name: &[u8]) -> Result<(OwnedFd, u64), MakeError> {
        let depth = self.depths.get(&parent.number).copied().unwrap_or(DEEPEST).saturating_add(1);
        if depth > DEEPEST {
            let reason = format!("it lies more than {DEEPEST} directories deep");
            return Err(MakeError::Other(LayerError::damaged(&reason)));
        }
        match rustix::fs::mkdirat(&parent.file, name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(MakeError::Exists),
            Err(error) => return Err(MakeError::Other(LayerError::system("make a directory", error))),
        }
        let file = open(&parent.file, name).map_err(MakeError::Other)?;
        let number = number(&file).map_err(MakeError::Other)?;
        self.depths.insert(number, depth);
        self.given.remove(&number);
        Ok((file, number))
    }
}

/// Why a directory was not made.
pub(super) enum MakeError {
    /// Something has its name.
    Exists,
    Other(LayerError),
}

/// Opens a directory by its last name.
pub(super) fn open(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd, LayerError> {
    rustix::fs::openat(parent, name, LISTED, Mode::empty())
        .map_err(|error| LayerError::system("open a directory", error))
}

/// What an entry of a directory is; `None` if there is none. Links are not followed.
pub(super) fn kind(directory: &Directory, name: &[u8]) -> Result<Option<FileType>, LayerError> {
    match rustix::fs::statat(&directory.file, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(LayerError::system("look at what is in its place", error)),
    }
}

/// Makes a file that is not there yet; `None` if something has its name.
pub(super) fn create(directory: &Directory, name: &[u8]) -> Result<Option<File>, LayerError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&directory.file, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::EXIST) => Ok(None),
        Err(error) => Err(LayerError::system("make a file", error)),
    }
}

pub(super) fn number(file: impl AsFd) -> Result<u64, LayerError> {
    Ok(rustix::fs::fstat(file).map_err(|error| LayerError::system("look at a directory", error))?.st_ino)
}
