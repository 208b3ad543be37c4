//! Users of a container who are counted together.
//!
//! The kernel bounds the processes of each user by itself, so whoever becomes others has as many bounds. It also bounds, for a
//! namespace of users, all that are in it, whoever they are, by what their maker had as a bound, and counts them as its maker's.
//! So the container goes on in one more namespace with the same users, whose maker has nothing else.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::{child, owners::Owners};

/// Time for the one that gives the users.
const LIMIT: Duration = Duration::from_secs(10);
/// The first port that everybody may take.
const FIRST_PORT: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// Lets everybody take ports of a network that nobody else is in: a right on it is lost in the namespace.
pub(super) fn open_all_ports() -> io::Result<()> {
    fs::write(FIRST_PORT, "0")
}

/// Goes on in one more namespace of users. This is the first process, and the only one.
pub(super) fn enter(owners: &Owners) -> io::Result<()> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread, so the copy is a whole process that may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(ours);
            let given = theirs.read_exact(&mut [0]).and_then(|()| give(owners));
            // SAFETY: ends the copy without running the exit handlers of the original.
            unsafe { libc::_exit(i32::from(given.is_err())) }
        }
        copy => {
            drop(theirs);
            // SAFETY: no descriptors are shared with another thread, since there is none.
            unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
            ours.write_all(&[0])?;
            let copy = u32::try_from(copy).map_err(io::Error::other)?;
            if !child::ends_within(copy, LIMIT) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "who gives the users does not end"));
            }
            let pid = rustix::process::Pid::from_raw(copy.cast_signed());
            let ended = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())?;
            match ended.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                _ => Err(io::Error::other("the users cannot be given to it")),
            }
        }
    }
}

/// All users of this namespace, under their own numbers, to the first process.
fn give(owners: &Owners) -> io::Result<()> {
    let [users, groups] = owners.same_maps();
    fs::write("/proc/1/uid_map", users)?;
    fs::write("/proc/1/gid_map", groups)
}
