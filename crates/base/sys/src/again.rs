//! A process that is started again: when it is killed, a copy of what it was before its work takes its place.

#![expect(unsafe_code, reason = "forks, which no safe library offers")]

use std::{
    io, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getppid, set_parent_process_death_signal, waitpid};

/// Time before the next copy. It doubles where copies end at once.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A copy that has lived for this long did not end at once.
const LONG_ENOUGH: Duration = Duration::from_mins(1);

/// Returns in a copy of this process, and in another one whenever a copy is killed or fails; gives how many there were before.
/// This process itself never returns, and ends as soon as a copy ends without an error. Its end is that of its copy, and what
/// both have open stays open until then. Call it while this is the only thread.
///
/// # Errors
///
/// There are more threads, or the system refuses the first copy.
pub fn start_again(name: &std::ffi::CStr) -> io::Result<u32> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(io::Error::other(format!("{threads} threads run, and a copy would have their locks")));
    }
    let own = rustix::process::getpid();
    let (mut before, mut pause) = (0, FIRST_PAUSE);
    loop {
        let began = Instant::now();
        // SAFETY: this process has one thread, so the copy is a whole process that may do anything.
        match unsafe { libc::fork() } {
            0 => {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // It may have ended before that.
                if getppid() != Some(own) {
                    // SAFETY: ends the copy without running the exit handlers of the original.
                    unsafe { libc::_exit(1) }
                }
                return Ok(before);
            }
            -1 if before == 0 => return Err(io::Error::last_os_error()),
            -1 => {}
            copy => {
                if before == 0 {
                    // SAFETY: a system call with a text that ends with a zero.
                    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
                }
                if ends_well(copy) {
                    // SAFETY: ends this process without running exit handlers, which are the copy's.
                    unsafe { libc::_exit(0) }
                }
            }
        }
        if began.elapsed() >= LONG_ENOUGH {
            pause = FIRST_PAUSE;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        before = before.saturating_add(1);
    }
}

/// Waits for the end of a copy; whether it said that all is well.
fn ends_well(copy: i32) -> bool {
    loop {
        match waitpid(Pid::from_raw(copy), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status() == Some(0),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_copied_who_has_other_threads() {
        // A test has one beside that of the program.
        let error = start_again(c"test").unwrap_err();
        assert!(error.to_string().contains("threads run"), "{error}");
    }
}
