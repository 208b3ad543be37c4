//! The end of a guard that was killed, as the server sees it. What the guard owned falls to the server, which ends it: so
//! of the three who own a process all have to be killed at once before it lives on, and then its mark tells of it.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::Guard;
use crate::{child, mark::Mark, process, signal::signal};

/// Time for what a killed guard owned to be gone.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);

impl Guard {
    /// Ends when the guard was killed; all that it owned has been killed then, and nothing can be started any more. Of
    /// one that ends because this is dropped it tells nothing. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// The guard cannot be watched.
    pub fn lost(&self) -> std::io::Result<impl Future<Output = ()> + Send + use<>> {
        let ended = child::ended(self.pid)?;
        let (mark, guard) = (std::sync::Arc::clone(&self.mark), self.pid);
        Ok(async move {
            ended.await;
            // The rest is no matter of moments, and blocks.
            let ended = tokio::task::spawn_blocking(move || end_orphans(&mark, guard)).await;
            tracing::error!(
                ended = ended.unwrap_or_default(),
                "the process guard was killed; what it owned has been ended, and nothing can be started any more"
            );
        })
    }
}

/// Kills what a dead guard owned, and tells how many: what has its mark, and what fell to this process, which is in
/// sessions of its own.
pub(super) fn end_orphans(mark: &Mark, guard: u32) -> usize {
    let own = std::process::id();
    let session = process::stat(own).map(|stat| stat.session);
    let mut ended = 0;
    let deadline = Instant::now() + LIMIT;
    loop {
        ended += mark.end();
        let orphans: Vec<u32> = process::descendants(own)
            .into_iter()
            .filter(|pid| *pid != guard)
            .filter(|pid| process::stat(*pid).is_some_and(|stat| Some(stat.session) != session))
            .collect();
        if orphans.is_empty() || Instant::now() >= deadline {
            return ended;
        }
        for pid in orphans {
            signal(pid, Signal::KILL);
            ended += 1;
        }
        thread::sleep(PAUSE);
    }
}
