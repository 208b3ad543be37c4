//! Stops all processes below a guard where they are, and lets them go on.
//!
//! Parents are stopped before their children, and go on after them: a shell that ran while its job is stopped would take
//! that for a C-z of the user.

use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    process::{self, Stat},
    signal::signal,
};

/// Pause between two looks at a process that was told to stop.
const PAUSE: Duration = Duration::from_micros(50);
/// Time for a process that waits in the kernel, for a disk or for a child that has borrowed its memory. It stops before it
/// does anything else.
const KERNEL_LIMIT: Duration = Duration::from_millis(20);
/// How often in a row nothing that runs must be found.
const QUIET: usize = 4;
/// Time for all.
const LIMIT: Duration = Duration::from_secs(10);

/// The processes could not be stopped: one did not stop, or new ones came as fast as they were stopped. They all go on.
#[derive(Debug, thiserror::Error)]
#[error("some processes do not stop within {} s; the {stopped} that did go on", LIMIT.as_secs())]
pub struct FreezeError {
    /// How many were stopped.
    pub stopped: usize,
}

/// Processes that were stopped here, in that order. Those that somebody else had stopped before are not among them.
/// They go on when this is dropped.
#[derive(Debug, Default)]
pub struct Frozen {
    stopped: Vec<Known>,
}

/// A process: its id, and when it started.
type Known = (u32, u64);

fn known(stat: &Stat) -> Known {
    (stat.pid, stat.start_ticks)
}

/// Stops all that the owners of a guard own, also what is started meanwhile. The guard and the owners themselves go on:
/// they end it all if the server dies.
pub fn freeze(guard: u32) -> Result<Frozen, FreezeError> {
    let mut freezing = Freezing { frozen: Frozen::default(), dead: HashSet::new(), deadline: Instant::now() + LIMIT };
    let mut quiet = 0;
    while quiet < QUIET {
        let mut found = false;
        for owner in process::children(guard) {
            match freezing.stop_below(owner) {
                Ok(found_here) => found |= found_here,
                Err(TooLate) => return Err(FreezeError { stopped: freezing.frozen.stopped.len() }),
            }
        }
        // What loses its parent falls to its owner. Each look takes all that is there at one moment but for the rare case
        // that another child ends while the kernel lists them; then the next looks find it.
        quiet = if found { 0 } else { quiet + 1 };
    }
    Ok(freezing.frozen)
}

/// The time for all is over.
struct TooLate;

struct Freezing {
    frozen: Frozen,
    /// Dead processes that nobody has waited for, which have been seen before.
    dead: HashSet<Known>,
    deadline: Instant,
}

impl Freezing {
    /// Stops all descendants of a process, from the top. Whether there was one that ran, or may have left children.
    fn stop_below(&mut self, root: u32) -> Result<bool, TooLate> {
        let mut found = false;
        let mut waiting = process::children(root);
        while let Some(pid) = waiting.pop() {
            if Instant::now() > self.deadline {
                return Err(TooLate);
            }
            found |= self.stop(pid)?;
            // It is stopped, so these are all.
            waiting.extend(process::children(pid));
        }
        Ok(found)
    }

    /// Stops one process, and returns when it has stopped.
    fn stop(&mut self, pid: u32) -> Result<bool, TooLate> {
        // One that has ended since it was listed may have left a child to its owner.
        let Some(stat) = process::stat(pid) else { return Ok(true) };
        match stat.state {
            'T' | 't' => return Ok(false),
            'Z' | 'X' => return Ok(self.dead.insert(known(&stat))),
            'D' if self.frozen.stopped.contains(&known(&stat)) => return Ok(false),
            _ => {}
        }
        if !self.frozen.stopped.contains(&known(&stat)) {
            self.frozen.stopped.push(known(&stat));
        }
        signal(pid, Signal::STOP);
        let began = Instant::now();
        loop {
            match process::stat(pid).map(|now| now.state) {
                None | Some('T' | 't' | 'Z' | 'X') => return Ok(true),
                Some('D') if began.elapsed() > KERNEL_LIMIT => return Ok(true),
                // A parent that is not stopped would see its children stop.
                Some(_) if Instant::now() > self.deadline => return Err(TooLate),
                Some(_) => thread::sleep(PAUSE),
            }
        }
    }
}

impl Frozen {
    /// How many were stopped.
    pub fn count(&self) -> usize {
        self.stopped.len()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for one in self.stopped.drain(..).rev() {
            // An id may be somebody else's by now.
            if process::stat(one.0).is_some_and(|stat| known(&stat) == one) {
                signal(one.0, Signal::CONT);
            }
        }
    }
}
