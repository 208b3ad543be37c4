//! Waits for the end of a child of this process, whoever started it.

use std::io;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::child;

/// Ends when this child of the process has ended, and then takes its status, so that no dead process stays. Must be called
/// within a tokio runtime, and before anybody else waits for the child.
pub fn reaper(pid: u32) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let ended = child::ended(pid)?;
    Ok(async move {
        ended.await;
        // Somebody else's handler for ended children may be faster. It is waited for by nobody else, so the id is still its own.
        let _reaped = waitid(WaitId::Pid(raw), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    })
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Duration};

    use super::*;

    #[expect(clippy::zombie_processes, reason = "the reaper waits for it")]
    #[tokio::test]
    async fn an_ended_child_is_seen_and_leaves_nothing() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let ended = reaper(child.id()).unwrap();
        child.kill().unwrap();
        tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
        assert_eq!(crate::process::stat(child.id()), None);
    }
}
