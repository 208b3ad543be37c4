//! How long the next start has to wait.

use std::time::Duration;

/// Pauses between starts.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);
/// Time of health after which earlier ends are forgotten.
const FORGIVEN: Duration = Duration::from_mins(1);

/// Pauses that double.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    last: Duration,
}

impl Pauses {
    /// The pause after a start that failed.
    pub(crate) fn next(&mut self) -> Duration {
        self.last = (self.last * 2).clamp(FIRST, LONGEST);
        self.last
    }

    /// The program was healthy for so long.
    pub(crate) fn was_healthy(&mut self, time: Duration) {
        if time >= FORGIVEN {
            self.forget();
        }
    }

    /// The next pause is the first one again.
    pub(crate) fn forget(&mut self) {
        self.last = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_a_minute_of_health_makes_them_short_again() {
        let mut pauses = Pauses::default();
        let mut millis = || pauses.next().as_millis();
        let first: Vec<u128> = (0..10).map(|_| millis()).collect();
        assert_eq!(first, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        pauses.was_healthy(Duration::from_secs(59));
        assert_eq!(pauses.next(), LONGEST);
        pauses.was_healthy(Duration::from_mins(1));
        assert_eq!(pauses.next(), FIRST);
    }
}
