//! What is done with files of other owners.
//!
//! ```text
//! who wants it         waits, for a bounded time; what it has started ends with it
//!   └─ a program       gives its copy the numbers
//!        └─ its copy   in a namespace of its own, root among these owners; does one thing, and ends
//! ```

use std::{
    collections::HashMap,
    fs,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid},
    io::Errno,
    process::{Signal, set_parent_process_death_signal},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use serde::{Deserialize, Serialize};

use super::Owners;
use crate::{child, signal::signal, wire};

/// The command of a program that does it.
pub const COMMAND: &str = "owners-work";
/// Time for all of it: a tree may have millions of files.
const LIMIT: Duration = Duration::from_mins(10);
/// Time for the program beside that.
const BESIDE: Duration = Duration::from_secs(30);
/// Most bytes of an order: two million files, each by three numbers.
const LONGEST: u64 = 128 * 1024 * 1024;
/// Most directories in each other.
const DEEPEST: usize = 1024;

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Nothing: whether it could be done.
    Nothing,
    /// Gives files in this directory, which has no other file systems in it, to owners, by the numbers that a namespace has.
    Give {
        /// The directory.
        tree: PathBuf,
        /// The number of a file, its user and its group.
        owners: Vec<(u64, u32, u32)>,
    },
    /// Removes this directory with all that is in it.
    Remove {
        /// The directory.
        tree: PathBuf,
    },
}

/// An order, as the program reads it.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    owners: Owners,
    work: Work,
}

/// What has become of it.
#[derive(Debug, Serialize, Deserialize)]
struct Done(Result<(), String>);

/// Begins the work.
#[derive(Debug, Serialize, Deserialize)]
struct Begin;

/// Has a program do it, which has the command [`COMMAND`], and waits for its end.
///
/// # Errors
///
/// It cannot be started, or the work failed; which says why.
pub fn have_done(program: &Path, owners: &Owners, work: Work) -> io::Result<()> {
    let order = serde_json::to_vec(&Order { owners: owners.clone(), work })?;
    let mut command = Command::new(program);
    command.arg(COMMAND).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let end = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between the fork and the program's start it makes one system call.
    unsafe { command.pre_exec(end) };
    let started = command.spawn();
    let mut child = started
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start {}: {error}", program.display())))?;
    // One that ends early does not read to the end, and says why.
    let _told = child.stdin.take().map(|mut input| input.write_all(&order));
    if !child::ends_within(child.id(), LIMIT + BESIDE) {
        child.kill()?;
    }
    let status = child.wait()?;
    let mut told = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(64 * 1024).read_to_end(&mut told)?;
    }
    match serde_json::from_slice(&told) {
        Ok(Done(done)) => done.map_err(io::Error::other),
        Err(_) => Err(io::Error::other(format!("who works with files of other owners ended with {status}"))),
    }
}

/// Is that program: reads the order, does it, and writes what has become of it. Call it while this is the only thread.
///
/// # Errors
///
/// Nobody reads it.
pub fn serve(input: impl io::Read, mut output: impl io::Write) -> io::Result<()> {
    let done = serde_json::from_reader::<_, Order>(io::BufReader::new(input.take(LONGEST)))
        .map_err(io::Error::other)
        .and_then(|order| inside(&order.owners, order.work));
    serde_json::to_writer(&mut output, &Done(done.map_err(|error| error.to_string())))?;
    output.flush()
}

/// Does it in a namespace.
fn inside(owners: &Owners, work: Work) -> io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    let flags = libc::c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // SAFETY: without memory that is shared this is a fork; this process has one thread, so the copy may do anything.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid < 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(error.kind(), format!("cannot make a user namespace: {error}")));
    }
    if pid == 0 {
        drop(ours);
        let done = begin(&theirs).and_then(|()| work.run());
        let _nobody_waits = wire::send(&theirs, &Done(done.map_err(|error| error.to_string())), &[]);
        // SAFETY: ends the copy without running the exit handlers of the original.
        unsafe { libc::_exit(0) }
    }
    drop(theirs);
    let pid = u32::try_from(pid).map_err(io::Error::other)?;
    let result = owners.give(pid).and_then(|()| {
        ours.set_read_timeout(Some(LIMIT))?;
        wire::send(&ours, &Begin, &[])?;
        wire::receive::<Done>(&ours)
    });
    drop(ours);
    signal(pid, Signal::KILL);
    let _gone = child::ends_within(pid, BESIDE);
    match result? {
        Some((Done(done), _)) => done.map_err(io::Error::other),
        None => Err(io::Error::other("the process that works with files of other owners has ended")),
    }
}

/// Waits for the numbers, and becomes root of the namespace.
fn begin(original: &UnixStream) -> io::Result<()> {
    // It may have ended before; then the socket has, too.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    wire::receive::<Begin>(original)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

impl Work {
    fn run(self) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Give { tree, owners } => {
                let owners = owners.into_iter().map(|(number, user, group)| (number, (user, group))).collect();
                let opened = rustix::fs::openat(CWD, &tree, DIRECTORY, Mode::empty());
                let opened = opened.map_err(|error| at(&tree, error))?;
                let itself = rustix::fs::fstat(&opened).map_err(|error| at(&tree, error))?;
                give_one(&opened, c".", itself.st_ino, &owners).map_err(|error| at(&tree, error))?;
                give(&opened, &owners, 0).map_err(|error| at(&tree, error))
            }
            Self::Remove { tree } => match fs::remove_dir_all(&tree) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", tree.display()))),
                Ok(()) => Ok(()),
            },
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn at(tree: &Path, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("{}: {error}", tree.display()))
}

/// Gives what is in a directory, however deep. Links are given, not followed.
fn give(directory: &OwnedFd, owners: &HashMap<u64, (u32, u32)>, depth: usize) -> rustix::io::Result<()> {
    if depth > DEEPEST {
        return Err(Errno::NAMETOOLONG);
    }
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            kind => kind,
        };
        give_one(directory, name, entry.ino(), owners)?;
        if kind == FileType::Directory {
            give(&rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())?, owners, depth + 1)?;
        }
    }
    Ok(())
}

fn give_one(
    directory: impl AsFd,
    name: &std::ffi::CStr,
    number: u64,
    owners: &HashMap<u64, (u32, u32)>,
) -> rustix::io::Result<()> {
    let Some((user, group)) = owners.get(&number) else { return Ok(()) };
    let (user, group) = (Some(Uid::from_raw(*user)), Some(Gid::from_raw(*group)));
    rustix::fs::chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_cannot_be_read_is_answered_and_nothing_is_done() {
        for order in ["", "{}", "{\"owners\": 1}", "[[[[[["] {
            let mut told = Vec::new();
            serve(order.as_bytes(), &mut told).unwrap();
            let Done(done) = serde_json::from_slice(&told).unwrap();
            done.unwrap_err();
        }
    }
}
