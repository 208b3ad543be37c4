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

#[cfg(test)]
mod tests {
    use super::*;

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
