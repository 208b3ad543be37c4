//! Which lines are edited.

use std::ops::Range;

/// Most lines that are said to be edited at once; one more is let through (runtime-interface 15).
pub(super) const MAX_LINES: usize = 300;

/// A valid range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lines {
    /// Behind the last line.
    Append,
    /// These lines, counted from 0.
    Replace(Range<usize>),
}

/// Checks a range of lines counted from 1, both ends included: a `start` of -1 means behind the last line, an `end` of
/// -1 the last line.
pub(super) fn lines(start: i64, end: i64, total: usize) -> Result<Lines, String> {
    let wrong =
        |hint: &str| Err(format!("Invalid range for editing: start={start}, end={end}, total lines={total}. {hint}"));
    let line = |number: i64| usize::try_from(number).ok().filter(|number| (1..=total).contains(number));
    let (first, last) = (line(start), line(end));
    if start != -1 && first.is_none() {
        return wrong(&format!("`start` must be from 1 to {total}, or -1 to append lines at the end of the file."));
    }
    if end != -1 && last.is_none() {
        return wrong(&format!("`end` must be from 1 to {total}, or -1 for the last line of the file."));
    }
    let Some(first) = first else { return Ok(Lines::Append) };
    let last = last.unwrap_or(total);
    if first > last {
        return wrong("`start` must not be behind `end`.");
    }
    Ok(Lines::Replace(first - 1..last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_from_one_and_include_both_ends() {
        for (start, end, expected) in [
            (1, -1, Lines::Replace(0..10)),
            (1, 1, Lines::Replace(0..1)),
            (3, 10, Lines::Replace(2..10)),
            (10, -1, Lines::Replace(9..10)),
            (-1, -1, Lines::Append),
            (-1, 5, Lines::Append),
        ] {
            assert_eq!(lines(start, end, 10), Ok(expected), "{start} {end}");
        }
    }

    #[test]
    fn other_ranges_are_refused() {
        let from = "`start` must be from 1 to 10, or -1 to append lines at the end of the file.";
        let to = "`end` must be from 1 to 10, or -1 for the last line of the file.";
        for (start, end, hint) in [
            (0, 1, from),
            (-2, -1, from),
            (11, -1, from),
            (i64::MAX, i64::MIN, from),
            (1, 0, to),
            (1, 11, to),
            (-1, 11, to),
            (1, -2, to),
            (5, 4, "`start` must not be behind `end`."),
        ] {
            let expected = format!("Invalid range for editing: start={start}, end={end}, total lines=10. {hint}");
            assert_eq!(lines(start, end, 10), Err(expected));
        }
    }
}
