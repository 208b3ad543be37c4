//! Numbers of seconds that come from outside, as time limits.
//!
//! Every JSON number is a valid `f64`: huge ones, negative ones, and infinity where one has too many digits. Whoever takes
//! one as a limit asks here, so that none of them is added to a time that it overflows.

use std::time::Duration;

/// Limits from this one on are the same as none: about thirty-one years.
pub const FOREVER: f64 = 1e9;

/// No limit can be this number: it is negative, or no number at all.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a time limit must be a number of seconds that is not negative, and is {0}")]
pub struct NoLimit(pub f64);

/// What a number of seconds means as a time limit; `None` is no limit, which [`FOREVER`] and more are.
///
/// # Errors
///
/// The number is negative or NaN.
pub fn limit(seconds: f64) -> Result<Option<Duration>, NoLimit> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(NoLimit(seconds));
    }
    // What is below the bound is a duration, however many digits it has.
    Ok((seconds < FOREVER).then(|| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}

/// Units of times, and their seconds. Those that end like others stand before them.
const UNITS: [(&str, f64); 5] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

/// The seconds of a time as people write it, with its units: `90s`, `1.5 h`, `300ms`, `1h30m`, `2d`.
///
/// Signs, exponents and words such as `inf` are no times.
pub fn written(text: &str) -> Option<f64> {
    let (mut rest, mut seconds) = (text, None);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, after) = rest.split_at_checked(digits)?;
        let (unit, after) =
            UNITS.iter().find_map(|(unit, seconds)| Some((seconds, after.trim_start().strip_prefix(unit)?)))?;
        seconds = Some(seconds.unwrap_or(0.0) + number.parse::<f64>().ok()? * unit);
        rest = after;
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [
            ("90s", Some(90.0)),
            ("500ms", Some(0.5)),
            ("1.5 m", Some(90.0)),
            ("1s500ms", Some(1.5)),
            ("1d1h1m1s", Some(90_061.0)),
            ("0s", Some(0.0)),
            ("90", None),
            ("1h30", None),
            ("s", None),
            ("", None),
            (".s", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("1e3s", None),
            ("infs", None),
            ("1w", None),
            ("10 minutes", None),
            ("1sé", None),
        ] {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_number_is_a_limit_that_can_be_added_to_a_time_or_is_refused() {
        let some = |seconds| Ok(Some(Duration::from_secs_f64(seconds)));
        for (number, expected) in [
            (0.0, some(0.0)),
            (-0.0, some(0.0)),
            (5e-324, some(0.0)),
            (1e-9, some(1e-9)),
            (1.5, some(1.5)),
            (999_999_999.0, some(999_999_999.0)),
            (FOREVER, Ok(None)),
            (1e19, Ok(None)),
            (1e308, Ok(None)),
            (f64::INFINITY, Ok(None)),
            (-1e-300, Err(NoLimit(-1e-300))),
            (-1e19, Err(NoLimit(-1e19))),
            (f64::NEG_INFINITY, Err(NoLimit(f64::NEG_INFINITY))),
        ] {
            assert_eq!(limit(number), expected, "{number}");
            if let Ok(Some(limit)) = expected {
                assert!(std::time::Instant::now().checked_add(limit).is_some(), "{number}");
            }
        }
        assert!(limit(f64::NAN).is_err());
    }
}
