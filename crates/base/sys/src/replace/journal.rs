//! Which temporary files this process has, so that another can remove them if this one is killed.
//!
//! One file for each process in a directory that only this user can reach. Its owner holds a lock on it for life, so a
//! file without a lock belongs to a process that is gone. Each temporary file has a slot in it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{AtFlags, CWD, FlockOperation};

use crate::private::{self, PREFIX, random};

/// Bytes of a slot: the longest path, and a zero.
const SLOT: usize = 4_096;
/// What they end with.
const SUFFIX: &str = ".tmp";

static JOURNAL: Mutex<Option<Journal>> = Mutex::new(None);

#[derive(Debug)]
struct Journal {
    /// `None` where none can be kept; then a killed process leaves its temporary files.
    file: Option<File>,
    /// The process that made it: a forked one makes its own.
    pid: u32,
    taken: Vec<bool>,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    slot: usize,
    pid: u32,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut guard = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(journal) = guard.as_mut().filter(|journal| journal.pid == self.pid) else { return };
        if let Some(taken) = journal.taken.get_mut(self.slot) {
            *taken = false;
        }
        if let Some(file) = &journal.file
            && let Err(error) = file.write_all_at(&[0], (self.slot * SLOT) as u64)
        {
            tracing::warn!(%error, "the journal of temporary files can not be written");
        }
    }
}

/// A name that nothing else has.
pub(super) fn temporary_name() -> io::Result<String> {
    Ok(format!("{PREFIX}{:016x}{SUFFIX}", random()?))
}

/// Opens the journal. It is opened by whoever notes the first file; a thread that has not the rights of its process to
/// files ([`file_identity`](crate::file_identity)) can not do that, only write to an open one.
pub fn open_journal() {
    drop(opened(std::process::id()));
}

/// The journal of this process.
fn opened(pid: u32) -> MutexGuard<'static, Option<Journal>> {
    let mut guard = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.as_ref().is_none_or(|journal| journal.pid != pid) {
        *guard = Some(Journal { file: open(), pid, taken: Vec::new() });
    }
    guard
}

/// Notes a temporary file that is about to be made.
pub(super) fn note(temporary: &Path) -> io::Result<Entry> {
    let bytes = temporary.as_os_str().as_bytes();
    if bytes.len() >= SLOT {
        return Err(rustix::io::Errno::NAMETOOLONG.into());
    }
    let pid = std::process::id();
    let mut guard = opened(pid);
    let Some(journal) = guard.as_mut() else { return Err(io::Error::other("no journal")) };
    let slot = journal.taken.iter().position(|taken| !taken).unwrap_or(journal.taken.len());
    if let Some(file) = &journal.file {
        let mut line = bytes.to_vec();
        line.push(0);
        file.write_all_at(&line, (slot * SLOT) as u64)?;
    }
    if slot == journal.taken.len() {
        journal.taken.push(true);
    } else {
        journal.taken[slot] = true;
    }
    Ok(Entry { slot, pid })
}

fn open() -> Option<File> {
    match create() {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::warn!(%error, "no journal of temporary files: a killed process would leave them behind");
            None
        }
    }
}

/// A locked file of this process.
fn create() -> io::Result<File> {
    let directory = private::directory()?;
    // Whoever cleans up at the same moment may remove the file before it is locked.
    for _ in 0..10 {
        let path = directory.join(format!("{:016x}", random()?));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        if file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(io::Error::other("the file is removed each time it is made"))
}

/// Removes the temporary files that processes of this user left behind when they were killed, and tells how many.
///
/// # Errors
///
/// A directory of journals can not be read.
pub fn remove_leftovers() -> io::Result<usize> {
    let mut removed = 0;
    for directory in private::all() {
        removed += remove_leftovers_in(&directory)?;
    }
    Ok(removed)
}

fn remove_leftovers_in(directory: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let (mut slot, mut offset) = (vec![0; SLOT], 0);
        loop {
            let length = file.read_at(&mut slot, offset)?;
            if length == 0 {
                break;
            }
            let name: Vec<u8> = slot[..length].iter().copied().take_while(|byte| *byte != 0).collect();
            removed += usize::from(remove(&PathBuf::from(std::ffi::OsString::from_vec(name))));
            offset += SLOT as u64;
        }
        // Nobody waits for it, so whether it goes does not matter.
        let _ = fs::remove_file(&path);
    }
    Ok(removed)
}

/// Removes a file with the name of a temporary one.
fn remove(path: &Path) -> bool {
    let is_ours = path.is_absolute()
        && path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
    is_ours && rustix::fs::unlinkat(CWD, path, AtFlags::empty()).is_ok()
}
