//! Lines that a sandbox can cause, of which there are not more than a log can bear.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Lines in one [`WINDOW`]; what is inside can cause them as often as it likes.
const MOST_LINES: u32 = 20;
/// Time in which lines are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Says which lines are written.
#[derive(Debug)]
pub(crate) struct Lines(Mutex<Window>);

#[derive(Debug)]
struct Window {
    begun: Instant,
    lines: u32,
    unsaid: u64,
}

impl Window {
    fn begin() -> Self {
        Self { begun: Instant::now(), lines: 0, unsaid: 0 }
    }
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Window::begin()))
    }

    /// Whether a line may be written now. What it gives is how many were not before it; they are told by the first
    /// line after them.
    pub(crate) fn next(&self) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unsaid = 0;
        if window.begun.elapsed() >= WINDOW {
            unsaid = window.unsaid;
            *window = Window::begin();
        }
        if window.lines < MOST_LINES {
            window.lines += 1;
            Some(unsaid)
        } else {
            window.unsaid += 1;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_a_window_is_counted() {
        let lines = Lines::new();
        assert_eq!((0..25).filter_map(|_| lines.next()).collect::<Vec<_>>(), vec![0; 20]);
        let Some(before) = Instant::now().checked_sub(WINDOW) else { return };
        lines.0.lock().unwrap().begun = before;
        assert_eq!((lines.next(), lines.next()), (Some(5), Some(0)));
    }
}
