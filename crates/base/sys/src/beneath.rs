//! Paths beneath a directory, resolved by the kernel, so that no name and no link leads out of it.
//!
//! `openat2` with `RESOLVE_BENEATH` refuses whatever would leave the directory, without a moment between the check and
//! the use. Where it is missing (an old kernel, a filter that does not know it, a Unix that is not Linux), directories
//! are opened one by one, and no link is followed at all.

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
    sync::Arc,
};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
    io::Errno,
};

/// Tries before the kernel's "try again" (something was renamed meanwhile) counts as an error.
#[cfg(target_os = "linux")]
pub(crate) const TRIES: usize = 16;

/// How directories are opened that are only a place for others.
#[cfg(target_os = "linux")]
pub const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How directories are opened that are only a place for others.
#[cfg(not(target_os = "linux"))]
pub const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What becomes of links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Those that stay beneath the directory are followed, where the kernel can do that.
    Followed,
    /// None is followed.
    Refused,
}

/// A directory that everything stays beneath.
#[derive(Debug)]
pub struct Root {
    directory: Arc<OwnedFd>,
    /// Whether the kernel resolves paths beneath a directory.
    #[cfg(target_os = "linux")]
    by_kernel: AtomicBool,
}

impl Root {
    /// Opens an existing directory.
    ///
    /// # Errors
    ///
    /// It does not exist, is no directory, or may not be entered.
    pub fn open(path: &Path) -> rustix::io::Result<Self> {
        let directory = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?;
        Ok(Self {
            directory: Arc::new(directory),
            #[cfg(target_os = "linux")]
            by_kernel: AtomicBool::new(true),
        })
    }

    /// The same as on a system without `openat2`.
    #[must_use]
    pub fn step_by_step(self) -> Self {
        #[cfg(target_os = "linux")]
        self.by_kernel.store(false, Relaxed);
        self
    }

    /// The directory itself.
    pub fn directory(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.directory)
    }

    /// Opens something that exists beneath. `path` is relative; an empty one is the directory itself.
    ///
    /// # Errors
    ///
    /// The path leads out (`EXDEV`), a link is not followed or there are too many (`ELOOP`), or what the system says.
    pub fn open_beneath(&self, path: &[u8], flags: OFlags, links: Links) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        let flags = flags | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        return self.resolve(path, flags, links);
        // It follows none.
        #[cfg(not(target_os = "linux"))]
        {
            let (Links::Followed | Links::Refused) = links;
            self.walk(path, flags)
        }
    }

    #[cfg(target_os = "linux")]
    fn resolve(&self, path: &[u8], flags: OFlags, links: Links) -> rustix::io::Result<OwnedFd> {
        let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if links == Links::Refused {
            how |= ResolveFlags::NO_SYMLINKS;
        }
        for _ in 0..TRIES {
            if !self.by_kernel.load(Relaxed) {
                return self.walk(path, flags);
            }
            match rustix::fs::openat2(&*self.directory, path, flags, Mode::empty(), how) {
                Err(Errno::NOSYS | Errno::PERM) => self.by_kernel.store(false, Relaxed),
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    fn walk(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if path.starts_with(b"/") {
            return Err(Errno::XDEV);
        }
        let mut components =
            path.split(|byte| *byte == b'/').filter(|component| !matches!(*component, b"" | b".")).peekable();
        let mut directory: Option<OwnedFd> = None;
        while let Some(component) = components.next() {
            if component == b".." {
                return Err(Errno::XDEV);
            }
            let flags = if components.peek().is_some() { DIRECTORY } else { flags };
            let parent = directory.as_ref().unwrap_or(&self.directory);
            let found = match rustix::fs::openat(parent, component, flags | OFlags::NOFOLLOW, Mode::empty()) {
                // What is not followed is a link, not a directory.
                Err(Errno::NOTDIR) if kind(parent, component) == Ok(FileType::Symlink) => return Err(Errno::LOOP),
                other => other?,
            };
            // With this flag a link itself can be opened.
            #[cfg(target_os = "linux")]
            if flags.contains(OFlags::PATH) && !flags.contains(OFlags::DIRECTORY) && is_link(&found)? {
                return Err(Errno::LOOP);
            }
            directory = Some(found);
        }
        match directory {
            Some(found) => Ok(found),
            None => rustix::fs::openat(&*self.directory, ".", flags, Mode::empty()),
        }
    }
}

#[cfg(target_os = "linux")]
fn is_link(file: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode) == FileType::Symlink)
}

/// What an entry of a directory is; links are not followed.
///
/// # Errors
///
/// There is no such entry, or the directory may not be entered.
pub fn kind(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<FileType> {
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

/// The name of a kind, for messages.
pub fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "link",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Unknown => "special file",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_with_and_without_the_kernel() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("real")).unwrap();
        std::fs::write(inside.path().join("real/file"), "").unwrap();
        symlink(outside.path(), inside.path().join("absolute")).unwrap();
        symlink("..", inside.path().join("up")).unwrap();
        symlink("real", inside.path().join("alias")).unwrap();
        symlink("/proc/self/root", inside.path().join("magic")).unwrap();
        let kernel = Root::open(inside.path()).unwrap();
        let steps = Root::open(inside.path()).unwrap().step_by_step();
        for (path, kernel_error, step_error) in [
            ("real/file", None, None),
            ("", None, None),
            ("real/../real/file", None, Some(Errno::XDEV)),
            ("..", Some(Errno::XDEV), Some(Errno::XDEV)),
            ("real/../..", Some(Errno::XDEV), Some(Errno::XDEV)),
            ("/etc", Some(Errno::XDEV), Some(Errno::XDEV)),
            ("absolute", Some(Errno::XDEV), Some(Errno::LOOP)),
            ("up/x", Some(Errno::XDEV), Some(Errno::LOOP)),
            ("magic/etc", Some(Errno::XDEV), Some(Errno::LOOP)),
            ("alias/file", None, Some(Errno::LOOP)),
            ("missing", Some(Errno::NOENT), Some(Errno::NOENT)),
        ] {
            let open = |root: &Root, links| root.open_beneath(path.as_bytes(), OFlags::PATH, links).err();
            assert_eq!(open(&kernel, Links::Followed), kernel_error, "{path}");
            assert_eq!(open(&steps, Links::Followed), step_error, "{path}");
            let refuses = matches!(path, "absolute" | "up/x" | "magic/etc" | "alias/file");
            assert_eq!(open(&kernel, Links::Refused) == Some(Errno::LOOP), refuses, "{path}");
        }
    }
}
