//! What macOS and the other systems of BSD's family tell about processes: `waitid` without taking the process away, and
//! signals that do not reach what has ended already.

use std::io;

use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, test_kill_process_group, waitid},
};
use tokio::process::Child;

use super::unix::id;

pub(super) fn runs(leader: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    id(leader).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
}

/// These systems send no signal to a process that has ended and was not waited for, such as the leader.
pub(super) fn others_run(leader: &Child) -> bool {
    id(leader).is_some_and(|group| test_kill_process_group(group).is_ok())
}

#[derive(Debug)]
pub(super) struct End(Pid);

impl End {
    pub(super) fn of(leader: &Child) -> io::Result<Self> {
        id(leader).map(Self).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A thread waits: it ends with the program, which its owner ends at the latest.
    pub(super) async fn reached(&self, _leader: &mut Child) -> io::Result<()> {
        let pid = self.0;
        let wait = move || loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error)),
            }
        };
        tokio::task::spawn_blocking(wait).await.map_err(io::Error::other)?
    }
}
