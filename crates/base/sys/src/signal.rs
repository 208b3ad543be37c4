//! Signals to processes.

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal to one process; that it is gone already is no error.
pub(crate) fn signal(pid: u32, number: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _gone_or_not_ours = kill_process(pid, number);
    }
}
