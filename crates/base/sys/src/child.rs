//! The end of a child that somebody else reaps.
//!
//! Kernels have descriptors for it. One that stands in for the machine's own, as gVisor's does, may have none; then a thread,
//! or a look now and then, does what they do.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid},
};

use crate::pty;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Ends when this child of the process has ended; its status stays to be taken. Must be called within a tokio runtime.
///
/// # Errors
///
/// It is no process, or cannot be watched.
pub(crate) fn ended(pid: u32) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let (watched, told) = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => (Some(pty::watch(handle)?), None),
        Err(Errno::NOSYS) => {
            let (tell, told) = tokio::sync::oneshot::channel();
            let wait = move || {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
                // Nobody may wait any more.
                let _nobody = tell.send(());
            };
            thread::Builder::new().name("child-end".to_owned()).spawn(wait)?;
            (None, Some(told))
        }
        Err(error) => return Err(error.into()),
    };
    Ok(async move {
        let is_known = match (watched, told) {
            (Some(watched), _) => watched.readable().await.is_ok(),
            (None, Some(told)) => told.await.is_ok(),
            (None, None) => false,
        };
        if !is_known {
            std::future::pending::<()>().await;
        }
    })
}

/// Waits for it, and tells whether it came within this time. One of which nothing is known has ended.
pub(crate) fn ends_within(pid: u32, limit: Duration) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    let deadline = Instant::now() + limit;
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOSYS) => return is_seen_to_end(pid, deadline),
        Err(_) => return true,
    };
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], left.as_ref()) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// The same, by looking at it now and then.
fn is_seen_to_end(pid: Pid, deadline: Instant) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) | Err(Errno::INTR) if Instant::now() < deadline => thread::sleep(PAUSE),
            Ok(None) | Err(Errno::INTR) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_child_is_seen_and_its_status_stays() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let raw = Pid::from_raw(pid.cast_signed()).unwrap();
        let soon = Duration::from_millis(20);
        let told = ended(pid).unwrap();
        assert!(!ends_within(pid, soon) && !is_seen_to_end(raw, Instant::now() + soon));
        child.kill().unwrap();
        tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
        assert!(ends_within(pid, soon) && is_seen_to_end(raw, Instant::now() + soon));
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
        assert!(ends_within(pid, soon) && is_seen_to_end(raw, Instant::now() + soon));
    }
}
