//! Times as people write them.

use std::time::Duration;

use gloveport_protocol::seconds;

/// Longest time that makes sense for a plugin.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// What a time may be.
pub(crate) const EXPECTED: &str = "a time: a number of seconds, or a text such as \"30s\", \"10m\" or \"500ms\"";

/// A text such as `30s`.
pub(crate) fn from_text(text: &str) -> Option<Duration> {
    seconds::written(text).and_then(from_seconds)
}

/// A number of seconds; not zero, and not longer than a week.
pub(crate) fn from_seconds(seconds: f64) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    (!duration.is_zero() && duration <= LONGEST).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_is_at_most_a_week() {
        for (text, seconds) in [
            ("1.5 m", Some(90.0)),
            ("1h30m", Some(5_400.0)),
            ("7d", Some(604_800.0)),
            ("8d", None),
            ("0s", None),
            ("30", None),
        ] {
            assert_eq!(from_text(text).map(|time| time.as_secs_f64()), seconds, "{text:?}");
        }
        assert_eq!(from_seconds(f64::NAN), None);
        assert_eq!(from_seconds(1e300), None);
    }
}
