//! The directory that everything stays beneath: the kernel resolves names, and follows links that stay inside. On Unix
//! without Linux no link is followed.

mod place;

use std::{io, os::fd::OwnedFd, path::Path, sync::Arc};

use gloveport_sys::beneath::{DIRECTORY, Links, Root};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

pub(crate) use self::place::{NewFile, gives_away, symlink};
use crate::{
    error::ArchiveError,
    limits::Account,
    names::{Given, shown},
};

/// A directory in which something is made.
pub(crate) type Directory = Arc<OwnedFd>;

/// A directory that everything stays beneath.
#[derive(Debug)]
pub(crate) struct Destination {
    beneath: Root,
    root: Arc<OwnedFd>,
    /// The directory of the last entry, because the next one is mostly beside it.
    last: Option<(Vec<u8>, Arc<OwnedFd>)>,
}

impl Destination {
    /// Opens an existing directory.
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let beneath = Root::open(path)
            .map_err(|error| ArchiveError::Destination { path: path.to_owned(), source: error.into() })?;
        Ok(Self::beneath(beneath))
    }

    fn beneath(beneath: Root) -> Self {
        Self { root: beneath.directory(), beneath, last: None }
    }

    fn root(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.root)
    }

    /// A directory beneath, with all its parents. What is missing is made.
    pub(crate) fn directory(
        &mut self,
        components: &[&[u8]],
        account: &mut Account<'_>,
    ) -> Result<Arc<OwnedFd>, ArchiveError> {
        if components.is_empty() {
            return Ok(self.root());
        }
        let path = components.join(&b'/');
        if let Some((last, directory)) = &self.last
            && *last == path
        {
            return Ok(Arc::clone(directory));
        }
        let directory = match self.open_beneath(&path, DIRECTORY) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => self.make(components, account)?,
            Err(error) => return Err(refusal(&path, error)),
        };
        let directory = Arc::new(directory);
        self.last = Some((path, Arc::clone(&directory)));
        Ok(directory)
    }

    /// Makes what is missing of a directory and its parents.
    fn make(&mut self, components: &[&[u8]], account: &mut Account<'_>) -> Result<OwnedFd, ArchiveError> {
        let mut parent: Option<OwnedFd> = None;
        for depth in 1..=components.len() {
            let path = components[..depth].join(&b'/');
            let found = match self.open_beneath(&path, DIRECTORY) {
                Err(Errno::NOENT) => {
                    account.make()?;
                    let parent = parent.as_ref().unwrap_or(&self.root);
                    match rustix::fs::mkdirat(parent, components[depth - 1], Mode::from_bits_truncate(0o777)) {
                        // A link that leads nowhere is there and can not be opened; that is told below.
                        Ok(()) | Err(Errno::EXIST) => self.open_beneath(&path, DIRECTORY),
                        Err(error) => Err(error),
                    }
                }
                other => other,
            };
            parent = Some(found.map_err(|error| refusal(&path, error))?);
        }
        parent.ok_or(ArchiveError::Escapes { entry: String::new() })
    }

    /// Makes a second name of a file beneath.
    pub(crate) fn hard_link(
        &self,
        target: &[&[u8]],
        directory: &OwnedFd,
        name: &[u8],
        entry: &[u8],
    ) -> Result<(), ArchiveError> {
        let Some((target_name, parents)) = target.split_last() else {
            return Err(ArchiveError::Escapes { entry: shown(entry) });
        };
        let parent = if parents.is_empty() {
            self.root()
        } else {
            let opened = self.open_beneath(&parents.join(&b'/'), DIRECTORY);
            Arc::new(opened.map_err(|error| refusal(entry, error))?)
        };
        place::hard_link(&parent, target_name, directory, name, entry)
    }

    /// Gives a directory beneath what it gets when everything is in it. One that is to stay `closed` gets no right of
    /// others to write that it does not have.
    pub(crate) fn give(&self, path: &[u8], given: &Given, closed: bool) -> Result<(), ArchiveError> {
        let shown = path;
        let path = if path.is_empty() { b"." } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = self.open_beneath(path, flags).map_err(|error| refusal(shown, error))?;
        place::give_directory(&directory, given, closed).map_err(|error| place::failed(shown, error))
    }

    /// Opens something that exists beneath.
    fn open_beneath(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        self.beneath.open_beneath(path, flags, Links::Followed)
    }
}

/// What an error of resolving a directory means.
fn refusal(path: &[u8], error: Errno) -> ArchiveError {
    let entry = shown(path);
    match error {
        Errno::XDEV | Errno::LOOP => ArchiveError::Escapes { entry },
        Errno::NOTDIR => ArchiveError::InTheWay { entry, kind: "file" },
        error => ArchiveError::Write { entry, source: io::Error::from(error) },
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, sync::atomic::AtomicBool};

    use super::*;
    use crate::{limits::ArchiveLimits, names::components};

    #[test]
    fn no_link_leads_out_with_and_without_the_kernel() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("real")).unwrap();
        symlink(outside.path(), inside.path().join("absolute")).unwrap();
        symlink("..", inside.path().join("up")).unwrap();
        symlink("missing", inside.path().join("dangling")).unwrap();
        symlink("real", inside.path().join("alias")).unwrap();
        symlink("loop", inside.path().join("loop")).unwrap();
        std::fs::write(inside.path().join("file"), "").unwrap();
        let (limits, never) = (ArchiveLimits::default(), AtomicBool::new(false));
        for by_kernel in [true, false] {
            let root = Root::open(inside.path()).unwrap();
            let mut destination = Destination::beneath(if by_kernel { root } else { root.step_by_step() });
            let mut open = |name: &'static str| {
                let components = components(name.as_bytes()).unwrap();
                match destination.directory(&components, &mut Account::new(&limits, &never)) {
                    Ok(_) => "opened".to_owned(),
                    Err(error) => error.to_string(),
                }
            };
            for name in ["absolute", "absolute/x", "up", "up/x", "loop/x"] {
                let text = open(name);
                assert!(text.ends_with("would be written outside of the destination"), "{name} {by_kernel} {text}");
            }
            assert_eq!(open("file/x"), "`file` cannot be written: a file is in the way".replace("file`", "file/x`"));
            assert_eq!(open("real/new/deep"), "opened");
            assert_eq!(open("alias/x") == "opened", by_kernel, "links are followed by the kernel only");
            assert_ne!(open("dangling/x"), "opened");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(!inside.path().join("missing").exists());
    }
}
