//! The memory limit of a sandbox.
//!
//! A single process cannot grow beyond the limit: its `RLIMIT_DATA` is the same. For all of them together the private
//! memory of the tree is summed up, more often the nearer it comes to the limit, and the largest process is ended when
//! the limit is reached.

use std::time::Duration;

use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

/// Pause between two looks far from the limit.
const CALM: Duration = Duration::from_millis(250);
/// Pause between two looks above half of the limit.
const NEAR: Duration = Duration::from_millis(20);

/// Keeps the descendants of `root` below `limit` bytes until `stop`.
pub(crate) async fn enforce(root: u32, limit: u64, stop: CancellationToken) {
    let mut pause = CALM;
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        let used = look(root, limit);
        pause = if used > limit / 2 { NEAR } else { CALM };
    }
}

/// Logs what the tree below `root` uses, for an hour at most (`action-execution-api` 4.2).
pub async fn monitor(root: u32, stop: CancellationToken) {
    const PAUSE: Duration = Duration::from_secs(1);
    for _second in 0..3600 {
        if stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
            return;
        }
        let bytes: u64 = process::descendants(root).into_iter().filter_map(process::proportional).sum();
        let seconds =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        tracing::info!("[Memory usage] MEM {} {seconds}", bytes / 1024 / 1024);
    }
}

/// One look; answers what is used.
fn look(root: u32, limit: u64) -> u64 {
    let processes: Vec<(u32, u64)> = process::descendants(root)
        .into_iter()
        .filter_map(|pid| process::resident(pid).map(|(_, private)| (pid, private)))
        .collect();
    let used = processes.iter().map(|(_, private)| private).sum();
    if used > limit
        && let Some((pid, private)) = processes.into_iter().max_by_key(|(_, private)| *private)
    {
        let name = process::stat(pid).map(|stat| stat.name).unwrap_or_default();
        tracing::warn!(pid, name, private, used, limit, "the memory limit is reached; the largest process is ended");
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // It may have ended by itself in the meantime.
            let _gone = kill_process(pid, Signal::KILL);
        }
    }
    used
}
