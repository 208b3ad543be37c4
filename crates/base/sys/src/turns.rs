//! Few at once, and few that wait, for work on threads that may wait.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// How many may work at once, and how many wait for that.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    room: usize,
}

/// The right to work, given back when this is dropped.
#[derive(Debug)]
pub struct Turn(Arc<Turns>);

/// Why there is no such right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTurn {
    /// Too many wait.
    Crowded,
    /// Those who work did not end in time.
    Late,
}

impl Turns {
    /// Room for `free` that work and `room` that wait.
    pub const fn new(free: usize, room: usize) -> Self {
        Self { state: Mutex::new(State { free, room }), freed: Condvar::new() }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// Too many wait already, or nobody ended before the deadline.
    pub fn take(self: &Arc<Self>, deadline: Instant) -> Result<Turn, NoTurn> {
        let mut state = self.lock();
        if state.free == 0 {
            state.room = state.room.checked_sub(1).ok_or(NoTurn::Crowded)?;
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = self.freed.wait_timeout_while(state, left, |state| state.free == 0);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.room += 1;
        }
        state.free = state.free.checked_sub(1).ok_or(NoTurn::Late)?;
        Ok(Turn(Arc::clone(self)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    #[test]
    fn a_turn_comes_when_another_ends_and_not_after_the_deadline() {
        let turns = Arc::new(Turns::new(2, 1));
        let later = || Instant::now() + Duration::from_mins(1);
        let (first, _second) = (turns.take(later()).unwrap(), turns.take(later()).unwrap());
        assert_eq!(turns.take(Instant::now()).unwrap_err(), NoTurn::Late);
        assert_eq!(turns.lock().room, 1);
        let waiting = thread::spawn({
            let turns = Arc::clone(&turns);
            move || turns.take(later()).is_ok()
        });
        while turns.lock().room == 1 {
            thread::yield_now();
        }
        assert_eq!(turns.take(later()).unwrap_err(), NoTurn::Crowded);
        drop(first);
        assert!(waiting.join().unwrap());
    }
}
