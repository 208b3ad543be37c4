//! Modes with bits that give rights, such as set-user-ID, in a container whose files have several owners.
//!
//! No file gets such a bit, since others of the machine might run it. Packages of systems have such files all the same, and what
//! installs them stops where it is refused to change a mode. So the kernel stops each call that would set such a bit and asks here,
//! where the mode is set without it, and the call succeeds. What belongs to the program that has asked is opened here, and what has
//! been opened is changed: what the program changes meanwhile does not count.
//!
//! It is done for root of the container alone, who has all rights that this process has: nobody gets more by asking.

#![expect(unsafe_code, reason = "no safe library reads the memory of another process")]

use std::{
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    thread,
};

use libc::{c_int, c_long, seccomp_notif};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};

use super::{
    calls::FCHMODAT2,
    connections::{answer, own, receive, still_there, taken},
};

/// Bytes of the longest path, with its end.
const PATH: usize = 4096;
/// Bytes of a page of the smallest kind.
const PAGE: u64 = 4096;
/// Stack of the thread.
const STACK: usize = 64 * 1024;
/// What stays of a mode.
const KEPT: u32 = 0o1777;

/// What a call changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Open(u64),
    /// A path from a directory that is open, or from the current one, by its address.
    Named {
        directory: u64,
        path: u64,
        flags: c_int,
    },
}

/// What a call asks for: what is changed, and its mode. `None` for other calls.
fn asked(call: c_long, arguments: [u64; 6]) -> Option<(What, u32)> {
    let [first, second, third, fourth, ..] = arguments;
    // The kernel takes the low half.
    let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default();
    let current = u64::from(libc::AT_FDCWD.cast_unsigned());
    match call {
        libc::SYS_fchmod => Some((What::Open(first), low(second))),
        libc::SYS_fchmodat => Some((What::Named { directory: first, path: second, flags: 0 }, low(third))),
        FCHMODAT2 => {
            let flags = low(fourth).cast_signed();
            Some((What::Named { directory: first, path: second, flags }, low(third)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Some((What::Named { directory: current, path: first, flags: 0 }, low(second))),
        _ => None,
    }
}

/// Starts the thread that changes modes, until the last program that is asked for has ended.
pub(crate) fn start(notices: OwnedFd) -> io::Result<()> {
    thread::Builder::new().name("modes".to_owned()).stack_size(STACK).spawn(move || serve(&notices))?;
    Ok(())
}

fn serve(notices: &OwnedFd) {
    loop {
        let mut polled = [PollFd::new(notices, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if polled[0].revents().contains(PollFlags::HUP) {
            return;
        }
        // What has been taken back meanwhile is nobody's any more.
        let Ok(notice) = receive(notices) else { continue };
        answer(notices, notice.id, &change(notices, &notice));
    }
}

/// Changes a mode as a program has asked, but for the bits that give rights.
fn change(notices: &OwnedFd, notice: &seccomp_notif) -> io::Result<()> {
    let thread = i32::try_from(notice.pid).map_err(io::Error::other)?;
    let (what, mode) = asked(c_long::from(notice.data.nr), notice.data.args).ok_or(Errno::PERM)?;
    let status = |of: &str| fs::read_to_string(format!("/proc/{of}/status"));
    if !is_as_mighty(&status(&thread.to_string())?, &status("self")?) {
        return Err(Errno::PERM.into());
    }
    let mode = Mode::from_raw_mode(mode & KEPT);
    match what {
        What::Open(descriptor) => {
            let file = taken(thread, descriptor)?;
            still_there(notices, notice.id)?;
            Ok(rustix::fs::fchmod(file, mode)?)
        }
        What::Named { directory, path, flags } => {
            let path = text(thread, path)?;
            let low = i32::try_from(directory.cast_signed() << 32 >> 32).map_err(|_| Errno::BADF)?;
            let from = match (path.first(), low) {
                (Some(b'/'), _) => None,
                (_, libc::AT_FDCWD) => {
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    Some(openat(CWD, format!("/proc/{thread}/cwd"), flags, Mode::empty())?)
                }
                _ => Some(taken(thread, directory)?),
            };
            still_there(notices, notice.id)?;
            let file = found(from.as_ref(), &path, flags)?;
            Ok(rustix::fs::chmodat(CWD, Path::new(&own(&file)), mode, rustix::fs::AtFlags::empty())?)
        }
    }
}

/// What a path leads to. Links of `/proc` would lead to what is open here.
fn found(from: Option<&OwnedFd>, path: &[u8], flags: c_int) -> io::Result<OwnedFd> {
    let mut open = OFlags::PATH | OFlags::CLOEXEC;
    match flags {
        0 => {}
        libc::AT_SYMLINK_NOFOLLOW => open |= OFlags::NOFOLLOW,
        _ => return Err(Errno::PERM.into()),
    }
    let from = from.map_or(CWD, |from| from.as_fd());
    let file = openat2(from, path, open, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Symlink {
        return Err(Errno::OPNOTSUPP.into());
    }
    Ok(file)
}

/// Whether a process is root in all of its numbers, and has all rights that another one has, by their status.
fn is_as_mighty(status: &str, other: &str) -> bool {
    let line = |status: &'_ str, name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned))
    };
    let rights = |status: &str| line(status, "CapEff:").and_then(|text| u64::from_str_radix(&text, 16).ok());
    let is_root = line(status, "Uid:").is_some_and(|numbers| {
        let mut numbers = numbers.split_ascii_whitespace().peekable();
        numbers.peek().is_some() && numbers.all(|number| number == "0")
    });
    is_root && matches!((rights(status), rights(other)), (Some(has), Some(needed)) if needed & !has == 0)
}

/// A text of a process that ends with a zero, which is not part of it.
fn text(thread: i32, mut place: u64) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    while found.len() < PATH {
        // What is behind the end may be nothing.
        let length = usize::try_from(PAGE - place % PAGE).map_err(|_| Errno::FAULT)?.min(PATH - found.len());
        let mut bytes = vec![0_u8; length];
        let remote = usize::try_from(place).map_err(|_| Errno::FAULT)? as *mut libc::c_void;
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: remote, iov_len: length };
        // SAFETY: the kernel writes as much as was asked for at most, into what lives here, and reads nothing of this process by the
        // other pointer.
        let count = unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let read = bytes.get(..count).filter(|read| !read.is_empty()).ok_or(Errno::FAULT)?;
        if let Some(end) = read.iter().position(|byte| *byte == 0) {
            found.extend_from_slice(&read[..end]);
            return if found.is_empty() { Err(Errno::NOENT.into()) } else { Ok(found) };
        }
        found.extend_from_slice(read);
        place = place.checked_add(count as u64).ok_or(Errno::FAULT)?;
    }
    Err(Errno::NAMETOOLONG.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn calls_that_set_modes_are_understood_and_others_are_refused() {
        let named = |directory, path, flags| What::Named { directory, path, flags };
        let current = u64::from(libc::AT_FDCWD.cast_unsigned());
        assert_eq!(asked(libc::SYS_fchmod, [3, 1 << 32 | 0o4755, 0, 0, 0, 0]), Some((What::Open(3), 0o4755)));
        assert_eq!(asked(libc::SYS_fchmodat, [4, 5, 0o2755, 9, 0, 0]), Some((named(4, 5, 0), 0o2755)));
        assert_eq!(asked(FCHMODAT2, [4, 5, 0o2755, 9, 0, 0]), Some((named(4, 5, 9), 0o2755)));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(asked(libc::SYS_chmod, [5, 0o6755, 0, 0, 0, 0]), Some((named(current, 5, 0), 0o6755)));
        for other in [libc::SYS_openat, libc::SYS_mkdirat, libc::SYS_mknodat] {
            assert_eq!(asked(other, [current; 6]), None);
        }
    }

    #[test]
    fn only_root_with_all_rights_is_served() {
        let status =
            |users: &str, rights: &str| format!("Name:\tx\nUid:\t{users}\nGid:\t0\t0\t0\t0\nCapEff:\t{rights}\n");
        let own = status("0\t0\t0\t0", "00000000000004fb");
        assert!(is_as_mighty(&own, &own));
        assert!(is_as_mighty(&status("0\t0\t0\t0", "00000000000005ff"), &own));
        for other in [
            status("0\t0\t0\t1", "00000000000004fb"),
            status("1000\t0\t0\t0", "00000000000004fb"),
            status("0\t0\t0\t0", "00000000000004f3"),
            status("0\t0\t0\t0", "0000000000000000"),
            status("", "00000000000004fb"),
            status("0\t0\t0\t0", "x"),
            String::new(),
        ] {
            assert!(!is_as_mighty(&other, &own), "{other}");
        }
    }

    #[test]
    fn paths_lead_to_no_file_that_is_open_here() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        symlink("file", place.path().join("link")).unwrap();
        let directory = openat(CWD, place.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let open = fs::File::open(&file).unwrap();
        for path in ["file", "link", "./../".to_owned().as_str()] {
            found(Some(&directory), path.as_bytes(), 0).unwrap();
        }
        found(None, file.to_str().unwrap().as_bytes(), libc::AT_SYMLINK_NOFOLLOW).unwrap();
        let error = found(Some(&directory), b"link", libc::AT_SYMLINK_NOFOLLOW).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
        for path in
            [own(&open.into()), "/proc/self/exe".to_owned(), "/proc/self/root/etc".to_owned(), "/dev/stdin".to_owned()]
        {
            let error = found(None, path.as_bytes(), 0).unwrap_err();
            assert!(matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOENT)), "{path}: {error}");
        }
        assert_eq!(found(None, b"/", libc::AT_EMPTY_PATH).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_text_is_read_to_its_end_and_no_further_than_a_path_is_long() {
        let own = i32::try_from(std::process::id()).unwrap();
        let at = |bytes: &[u8]| bytes.as_ptr() as u64;
        let long = vec![b'a'; 3 * PATH];
        assert_eq!(text(own, at(b"a/b\0c")).unwrap(), b"a/b");
        assert_eq!(text(own, at(&long)).unwrap_err().raw_os_error(), Some(libc::ENAMETOOLONG));
        assert_eq!(text(own, at(b"\0")).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(text(own, 8).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
