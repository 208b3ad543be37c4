//! What Linux tells about processes.

use std::{io, os::fd::OwnedFd};

use gloveport_sys::{process, pty};
use rustix::process::{PidfdFlags, pidfd_open};
use tokio::{io::unix::AsyncFd, process::Child};

use super::unix::id;

pub(super) fn runs(leader: &Child) -> bool {
    leader.id().and_then(process::stat).is_some_and(|stat| stat.state != 'Z')
}

pub(super) fn others_run(leader: &Child) -> bool {
    let group = leader.id().map(process::in_group).unwrap_or_default();
    group.into_iter().any(|pid| process::stat(pid).is_some_and(|stat| stat.state != 'Z'))
}

/// Can be read when the program has ended.
#[derive(Debug)]
pub(super) struct End(AsyncFd<OwnedFd>);

impl End {
    pub(super) fn of(leader: &Child) -> io::Result<Self> {
        let pid = id(leader).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        pty::watch(pidfd_open(pid, PidfdFlags::empty())?).map(Self)
    }

    pub(super) async fn reached(&self, _leader: &mut Child) -> io::Result<()> {
        let _stays_ready = self.0.readable().await?;
        Ok(())
    }
}
