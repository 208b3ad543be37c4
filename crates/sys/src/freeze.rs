//! Stops all processes below a guard where they are, and lets them go on.
//!
//! Parents are stopped before their children, and go on after them: a shell that ran while its job is stopped would take
//! that for a C-z of the user.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{process, session::signal};

/// Pause between two looks at a process that was told to stop.
const PAUSE: Duration = Duration::from_micros(50);
/// Time for one process to stop. One that takes longer waits in the kernel, for a disk or for a child that has borrowed
/// its memory, and stops before it does anything else.
const STOP_LIMIT: Duration = Duration::from_millis(20);
/// Time for all.
const LIMIT: Duration = Duration::from_secs(10);

/// The processes could not be stopped: new ones came as fast as they were stopped. They all go on.
#[derive(Debug, thiserror::Error)]
#[error("the processes do not stop: after {} s there are still new ones, {stopped} are stopped", LIMIT.as_secs())]
pub struct FreezeError {
    /// How many were stopped.
    pub stopped: usize,
}

/// Processes that were stopped here, in that order. Those that somebody else had stopped before are not among them.
/// They go on when this is dropped.
#[derive(Debug, Default)]
pub struct Frozen {
    stopped: Vec<(u32, u64)>,
}

/// Stops all that the owners of a guard own, also what is started meanwhile. The guard and the owners themselves go on:
/// they end it all if the server dies.
pub fn freeze(guard: u32) -> Result<Frozen, FreezeError> {
    let began = Instant::now();
    let mut frozen = Frozen::default();
    loop {
        let before = frozen.stopped.len();
        for owner in process::children(guard) {
            for top in process::children(owner) {
                frozen.stop_tree(top);
            }
        }
        // What lost its parent meanwhile is below its owner now, and a request in flight may have started something.
        if frozen.stopped.len() == before {
            return Ok(frozen);
        }
        if began.elapsed() > LIMIT {
            return Err(FreezeError { stopped: frozen.stopped.len() });
        }
    }
}

impl Frozen {
    fn stop_tree(&mut self, root: u32) {
        let mut waiting = vec![root];
        while let Some(pid) = waiting.pop() {
            self.stop(pid);
            // It is stopped, so these are all.
            waiting.extend(process::children(pid));
        }
    }

    fn stop(&mut self, pid: u32) {
        let Some(stat) = process::stat(pid) else { return };
        if matches!(stat.state, 'T' | 't' | 'Z' | 'X') {
            return;
        }
        if !self.stopped.contains(&(pid, stat.start_ticks)) {
            self.stopped.push((pid, stat.start_ticks));
        }
        signal(pid, Signal::STOP);
        let began = Instant::now();
        while began.elapsed() < STOP_LIMIT {
            match process::stat(pid) {
                Some(now) if !matches!(now.state, 'T' | 't' | 'Z' | 'X') => thread::sleep(PAUSE),
                _ => return,
            }
        }
    }

    /// How many were stopped.
    pub fn count(&self) -> usize {
        self.stopped.len()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for (pid, start_ticks) in self.stopped.drain(..).rev() {
            // An id may be somebody else's by now.
            if process::stat(pid).is_some_and(|stat| stat.start_ticks == start_ticks) {
                signal(pid, Signal::CONT);
            }
        }
    }
}
