//! The process of a server: whether it lives, and signals that cannot reach another one.

use std::{io, os::fd::OwnedFd, time::Duration};

use gloveport_sys::process;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

/// A process, told from every other one of this start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerProcess {
    /// Its id.
    pub(crate) pid: u32,
    /// When it started, in clock ticks after the machine did.
    pub(crate) start_ticks: u64,
}

impl ServerProcess {
    /// The process that has this id now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        process::stat(pid).map(|stat| Self { pid, start_ticks: stat.start_ticks })
    }

    /// Whether it lives; a dead one that nobody has waited for does not.
    pub(crate) fn is_alive(self) -> bool {
        process::stat(self.pid).is_some_and(|stat| stat.start_ticks == self.start_ticks && stat.state != 'Z')
    }

    /// A handle of this very process; `None` if it is gone.
    fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The handle is of whoever has the id now. If that is the process that was meant, it cannot change any more.
        Ok(self.is_alive().then_some(handle))
    }

    /// Signals it, and waits until it has ended or the time is over. Whether it has ended.
    pub(crate) fn end(self, signal: Signal, limit: Duration) -> io::Result<bool> {
        let Some(handle) = self.open()? else { return Ok(true) };
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        let limit = Timespec::try_from(limit).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        loop {
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)) {
                Ok(count) => return Ok(count > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_with_the_id_of_another_one_is_never_signalled() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let meant = ServerProcess::of(child.id()).unwrap();
        let earlier = ServerProcess { start_ticks: meant.start_ticks - 1, ..meant };
        assert!(!earlier.is_alive());
        assert!(earlier.end(Signal::KILL, Duration::ZERO).unwrap());
        assert!(meant.is_alive());
        assert!(meant.end(Signal::KILL, Duration::from_secs(10)).unwrap());
        assert!(!meant.is_alive());
        child.wait().unwrap();
    }
}
