//! Entries of a layer as files, directories and links of a tree.

use std::{fs::File, io::Write as _, os::unix::fs::FileExt as _};

use rustix::{
    fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid},
    io::Errno,
};

use super::{
    error::LayerError,
    extended::Time,
    header::{Entry, Kind},
    names::{self, About},
    remove::{self, What},
    stream::Stream,
    tree::{self, Directory, MakeError, Tree},
};
use crate::owners::Files;

/// Highest number of a user or group.
const HIGHEST_OWNER: u64 = 65_535;
/// Longest target of a symbolic link.
const LONGEST_TARGET: usize = 4095;
/// Most bytes of the paths of directories whose times are set at the end.
const PATHS: usize = 256 * 1024 * 1024;

/// What was done so far, and how much more may be.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) entries: u64,
    pub(super) most_entries: u64,
    /// Bytes of files, as long as they would be without holes.
    pub(super) bytes: u64,
    pub(super) most_bytes: u64,
    pub(super) left_out: u64,
}

impl Account {
    fn entry(&mut self) -> Result<(), LayerError> {
        self.entries += 1;
        bound(self.entries, self.most_entries, "entries")
    }

    fn bytes(&mut self, bytes: u64) -> Result<(), LayerError> {
        self.bytes = self.bytes.saturating_add(bytes);
        bound(self.bytes, self.most_bytes, "bytes")
    }
}

fn bound(count: u64, limit: u64, unit: &'static str) -> Result<(), LayerError> {
    if count <= limit {
        return Ok(());
    }
    let what = "the image, when it is unpacked,".to_owned();
    Err(LayerError::Image(crate::ImageError::Bound { what, limit, unit }))
}

/// When files are given to their owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    /// When they are made.
    Now,
    /// When all are there, by somebody else.
    Later,
    Never,
}

/// Puts entries into a tree.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) tree: Tree,
    pub(super) account: Account,
    /// When files are given to whom the image says.
    gives: Gives,
    /// Directories whose times are set at the end, since what is made in them changes these.
    times: Vec<(Vec<u8>, Time)>,
    paths: usize,
}

impl Entries {
    pub(super) fn new(tree: Tree, account: Account, gives: Gives) -> Self {
        Self { tree, account, gives, times: Vec::new(), paths: 0 }
    }

    /// Takes an entry and its contents.
    pub(super) fn take(&mut self, entry: &Entry, input: &mut Stream) -> Result<(), LayerError> {
        self.account.entry()?;
        match names::about(&entry.name)? {
            About::Root if entry.kind == Kind::Directory => self.root(entry)?,
            About::Root => return Err(LayerError::damaged("the tree itself would be no directory")),
            About::Nothing => {}
            About::Gone(parents, name) => {
                if let Some(directory) = self.tree.find(&parents)? {
                    remove::entry(&mut self.tree, &directory, name, What::Earlier)?;
                }
            }
            About::AllGone(parents) => {
                if let Some(directory) = self.tree.find(&parents)? {
                    remove::contents(&mut self.tree, &directory)?;
                }
            }
            About::Entry(parents, name) => return self.place(entry, &parents, name, input),
        }
        input.pass(padded(entry.size), |_| Ok(()))
    }

    fn place(&mut self, entry: &Entry, parents: &[&[u8]], name: &[u8], input: &mut Stream) -> Result<(), LayerError> {
        let account = &mut self.account;
        let directory = self.tree.find_or_make(parents, &mut || account.entry())?;
        match entry.kind {
            Kind::File => self.file(entry, &directory, name, input)?,
            Kind::Directory => self.directory(entry, &directory, name)?,
            Kind::SymbolicLink => self.symbolic_link(entry, &directory, name)?,
            Kind::HardLink => self.hard_link(entry, &directory, name)?,
            Kind::Fifo => self.fifo(entry, &directory, name)?,
            Kind::Device => {
                remove::entry(&mut self.tree, &directory, name, What::All)?;
                self.account.left_out += 1;
            }
        }
        self.tree.note(&directory, name);
        Ok(())
    }

    fn file(
        &mut self,
        entry: &Entry,
        directory: &Directory,
        name: &[u8],
        input: &mut Stream,
    ) -> Result<(), LayerError> {
        let mut made = tree::create(directory, name)?;
        if made.is_none() {
            remove::entry(&mut self.tree, directory, name, What::All)?;
            made = tree::create(directory, name)?;
        }
        let mut file = made.ok_or_else(taken)?;
        let failed = |error: std::io::Error| LayerError::system("write a file", error);
        match &entry.sparse {
            None => {
                self.account.bytes(entry.size)?;
                input.pass(entry.size, |bytes| file.write_all(bytes).map_err(failed))?;
            }
            Some((segments, whole)) => {
                self.account.bytes(*whole)?;
                file.set_len(*whole).map_err(failed)?;
                for segment in segments {
                    let mut at = segment.offset;
                    input.pass(segment.length, |bytes| {
                        file.write_all_at(bytes, at).map_err(failed)?;
                        at += bytes.len() as u64;
                        Ok(())
                    })?;
                }
            }
        }
        input.pass(padded(entry.size) - entry.size, |_| Ok(()))?;
        self.give(&file, entry, 0o777, 0o400)?;
        rustix::fs::futimens(&file, &times(entry.modified)).map_err(|error| LayerError::system("set a time", error))
    }

    fn directory(&mut self, entry: &Entry, parent: &Directory, name: &[u8]) -> Result<(), LayerError> {
        let made = match self.tree.make(parent, name) {
            Err(MakeError::Exists) if tree::kind(parent, name)?.is_some_and(rustix::fs::FileType::is_dir) => {
                Ok((tree::open(&parent.file, name)?, 0))
            }
            Err(MakeError::Exists) => {
                remove::entry(&mut self.tree, parent, name, What::All)?;
                self.tree.make(parent, name)
            }
            other => other,
        };
        let (file, _) = made.map_err(|error| match error {
            MakeError::Exists => taken(),
            MakeError::Other(error) => error,
        })?;
        self.give(&file.into(), entry, 0o1777, 0o700)?;
        self.later(entry)
    }

    fn root(&mut self, entry: &Entry) -> Result<(), LayerError> {
        if let Some(directory) = self.tree.find(&[])? {
            let file = tree::open(&directory.file, b".")?;
            self.give(&file.into(), entry, 0o1777, 0o700)?;
        }
        self.later(entry)
    }

    fn later(&mut self, entry: &Entry) -> Result<(), LayerError> {
        self.paths += entry.name.len();
        bound(self.paths as u64, PATHS as u64, "bytes in the paths of directories")?;
        self.times.push((entry.name.clone(), entry.modified));
        Ok(())
    }

    fn symbolic_link(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), LayerError> {
        let target = entry.link.as_slice();
        if target.is_empty() || target.contains(&0) || target.len() > LONGEST_TARGET {
            return Err(LayerError::damaged("the target of a link is empty, has a NUL or is longer than 4095 bytes"));
        }
        self.replacing(directory, name, "make a link", |directory| {
            rustix::fs::symlinkat(target, &directory.file, name)
        })?;
        self.give_name(entry, directory, name)?;
        rustix::fs::utimensat(&directory.file, name, &times(entry.modified), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| LayerError::system("set a time", error))
    }

    fn hard_link(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), LayerError> {
        let missing = || LayerError::damaged("it is a hard link to something that is not in the image");
        let mut parents = names::parts(&entry.link).map_err(|_| missing())?;
        let target = parents.pop().ok_or_else(missing)?;
        let target_directory = self.tree.find(&parents)?.ok_or_else(missing)?;
        match tree::kind(&target_directory, target)? {
            None => return Err(missing()),
            Some(kind) if kind.is_dir() => return Err(LayerError::damaged("it is a hard link to a directory")),
            Some(_) => {}
        }
        // A link to itself would be removed before it is made.
        if target_directory.number == directory.number && target == name {
            return Ok(());
        }
        self.replacing(directory, name, "make a hard link", |directory| {
            rustix::fs::linkat(&target_directory.file, target, &directory.file, name, AtFlags::empty())
        })
    }

    fn fifo(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), LayerError> {
        let mode = Mode::from_raw_mode(entry.mode & 0o777 | 0o400);
        self.replacing(directory, name, "make a FIFO", |directory| rustix::fs::mkfifoat(&directory.file, name, mode))?;
        self.give_name(entry, directory, name)?;
        // What was just made is no link.
        rustix::fs::chmodat(&directory.file, name, mode, AtFlags::empty())
            .map_err(|error| LayerError::system("set a mode", error))
    }

    /// Makes something, and if something else has its name, again without that.
    fn replacing(
        &mut self,
        directory: &Directory,
        name: &[u8],
        what: &str,
        make: impl Fn(&Directory) -> rustix::io::Result<()>,
    ) -> Result<(), LayerError> {
        let result = match make(directory) {
            Err(Errno::EXIST) => {
                remove::entry(&mut self.tree, directory, name, What::All)?;
                make(directory)
            }
            other => other,
        };
        result.map_err(|error| match error {
            // What it would be a link to went with what was in its place.
            Errno::NOENT => LayerError::damaged("it is a link to something that it replaces"),
            error => LayerError::system(what, error),
        })
    }

    /// Gives something its owner and its mode, of which only some bits count and others are always set.
    fn give(&mut self, file: &File, entry: &Entry, counts: u32, always: u32) -> Result<(), LayerError> {
        let (user, group) = owner(entry)?;
        match self.gives {
            Gives::Now => rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
                .map_err(|error| LayerError::system("give a file away", error))?,
            Gives::Later => self.tree.give_later(tree::number(file)?, user, group),
            Gives::Never => {}
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(entry.mode & counts | always))
            .map_err(|error| LayerError::system("set a mode", error))
    }

    /// Gives something its owner that was just made and cannot be opened, such as a link.
    fn give_name(&mut self, entry: &Entry, directory: &Directory, name: &[u8]) -> Result<(), LayerError> {
        let (user, group) = owner(entry)?;
        match self.gives {
            Gives::Now => {
                let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
                rustix::fs::chownat(&directory.file, name, user, group, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|error| LayerError::system("give it away", error))?;
            }
            Gives::Later => {
                let found = rustix::fs::statat(&directory.file, name, AtFlags::SYMLINK_NOFOLLOW);
                let found = found.map_err(|error| LayerError::system("look at it", error))?;
                self.tree.give_later(found.st_ino, user, group);
            }
            Gives::Never => {}
        }
        Ok(())
    }

    /// Sets the times of directories, and says what was done, and to whom files are still to be given.
    pub(super) fn finish(mut self) -> Result<(Account, Files), LayerError> {
        for (path, time) in std::mem::take(&mut self.times) {
            let mut parts = names::parts(&path)?;
            let name = parts.pop().unwrap_or(b".");
            // A later layer may have put something else there.
            let Ok(Some(directory)) = self.tree.find(&parts) else { continue };
            if name != b"." && !tree::kind(&directory, name)?.is_some_and(rustix::fs::FileType::is_dir) {
                continue;
            }
            rustix::fs::utimensat(&directory.file, name, &times(time), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| LayerError::system("set a time", error))?;
        }
        Ok((self.account, self.tree.given()))
    }
}

/// Whom it belongs to: user and group.
fn owner(entry: &Entry) -> Result<(u32, u32), LayerError> {
    let (user, group) = (entry.user, entry.group);
    if user > HIGHEST_OWNER || group > HIGHEST_OWNER {
        let reason = format!("it belongs to {user}:{group}, and numbers above {HIGHEST_OWNER} are not supported");
        return Err(LayerError::damaged(&reason));
    }
    let number = |number| u32::try_from(number).unwrap_or_default();
    Ok((number(user), number(group)))
}

fn taken() -> LayerError {
    LayerError::damaged("something else takes its place again and again")
}

/// With what fills it up to whole blocks.
fn padded(size: u64) -> u64 {
    size.checked_next_multiple_of(super::header::BLOCK as u64).unwrap_or(size)
}

fn times(time: Time) -> Timestamps {
    let time = Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() };
    Timestamps { last_access: time, last_modification: time }
}
