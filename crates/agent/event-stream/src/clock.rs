//! The time as events carry it (event-stream 1).

use jiff::Zoned;

/// Now, in local time without a zone, with microseconds: `2025-07-18T17:01:36.799608`.
pub(crate) fn now() -> String {
    format(&Zoned::now())
}

fn format(time: &Zoned) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_local_and_has_microseconds() {
        for (text, expected) in [
            ("2025-07-18T17:01:36.799608123+05:30[+05:30]", "2025-07-18T17:01:36.799608"),
            ("2025-01-02T03:04:05-08:00[-08:00]", "2025-01-02T03:04:05.000000"),
        ] {
            let time: Zoned = text.parse().unwrap();
            assert_eq!(format(&time), expected);
        }
    }
}
