//! Times as people write them.

use std::time::Duration;

/// Longest time that makes sense for a plugin.
const LONGEST: Duration = Duration::from_hours(7 * 24);
/// Units and their seconds. Those that end like others stand before them.
const UNITS: [(&str, f64); 5] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];

/// What a time may be.
pub(crate) const EXPECTED: &str = "a time: a number of seconds, or a text such as \"30s\", \"10m\" or \"500ms\"";

/// A text such as `30s`.
pub(crate) fn from_text(text: &str) -> Option<Duration> {
    let (unit, seconds) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number = text.strip_suffix(unit)?.trim_end();
    // Signs, exponents and words such as `inf` are no times.
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    from_seconds(number.parse::<f64>().ok().filter(|_| plain)? * seconds)
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
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("30s", Some(30.0)),
            ("500ms", Some(0.5)),
            ("1.5 m", Some(90.0)),
            ("2h", Some(7200.0)),
            ("7d", Some(604_800.0)),
            ("8d", None),
            ("0s", None),
            ("-1s", None),
            ("infs", None),
            ("1e3s", None),
            ("30", None),
            ("s", None),
            ("", None),
            ("10 minutes", None),
        ] {
            assert_eq!(from_text(text).map(|time| time.as_secs_f64()), seconds, "{text:?}");
        }
        assert_eq!(from_seconds(f64::NAN), None);
        assert_eq!(from_seconds(1e300), None);
    }
}
