//! Groups of processes.

use std::io;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

pub(super) fn lead(command: &mut Command) {
    command.process_group(0);
}

pub(super) fn ask_to_end(leader: &Child) -> bool {
    id(leader).is_some_and(|group| kill_process_group(group, Signal::TERM).is_ok())
}

pub(super) fn kill(leader: &Child) -> io::Result<()> {
    id(leader).map_or(Ok(()), |group| Ok(kill_process_group(group, Signal::KILL)?))
}

/// The id of a process that was not waited for.
pub(super) fn id(child: &Child) -> Option<Pid> {
    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}
