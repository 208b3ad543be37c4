//! Parts of files, as callers name them by numbers of lines (runtime-interface 17).

/// The lines from `start` to before `end`, counted from 0; an `end` of -1 is the end of the list.
///
/// Numbers outside the list count as its ends. With an `end`, the part has at least one line if the list has any, and
/// begins at the last but one line at the latest.
pub fn read_lines<T>(lines: &[T], start: i64, end: i64) -> &[T] {
    let total = lines.len();
    let start = clamped(start, total);
    if end == -1 {
        return &lines[start..];
    }
    let begin = start.min(total.saturating_sub(2));
    let end = clamped(end, total).max(begin + 1).min(total);
    &lines[begin.min(end)..end]
}

/// The original lines with new ones in place of those from `start` to before `end`, counted from 0; an `end` of -1 is the
/// end of the list.
///
/// The new lines get a line feed, the original ones have theirs. Instead of nothing in front of the new lines or behind
/// them there is one empty text, as in the reference; joined, it makes no difference. Negative numbers other than an
/// `end` of -1 count from the end of the list, as Python's slices do.
pub fn insert_lines(new: &[&str], original: &[&str], start: i64, end: i64) -> Vec<String> {
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let mut lines = if start == 0 { vec![String::new()] } else { owned(&original[..sliced(start, original.len())]) };
    lines.extend(new.iter().map(|line| format!("{line}\n")));
    if end == -1 {
        lines.push(String::new());
    } else {
        lines.extend(owned(&original[sliced(end, original.len())..]));
    }
    lines
}

/// A number within a list.
fn clamped(number: i64, total: usize) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX).min(total)
}

/// The place that a number of a Python slice means.
fn sliced(number: i64, total: usize) -> usize {
    if number >= 0 {
        return clamped(number, total);
    }
    total.saturating_sub(usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_lines_is_read() {
        let lines = ["a", "b", "c", "d"];
        for (start, end, expected) in [
            (0, -1, &["a", "b", "c", "d"][..]),
            (2, -1, &["c", "d"]),
            (-5, -1, &["a", "b", "c", "d"]),
            (9, -1, &[]),
            (1, 3, &["b", "c"]),
            (0, 4, &["a", "b", "c", "d"]),
            (0, 99, &["a", "b", "c", "d"]),
            (0, 0, &["a"]),
            (1, 1, &["b"]),
            (2, 1, &["c"]),
            (3, 4, &["c", "d"]),
            (9, 9, &["c", "d"]),
            (9, 2, &["c"]),
            (1, -7, &["b"]),
        ] {
            assert_eq!(read_lines(&lines, start, end), expected, "{start} {end}");
        }
        assert_eq!(read_lines(&["a"], 1, 1), ["a"]);
        assert_eq!(read_lines(&["a"], 1, -1), [""; 0]);
        assert_eq!(read_lines(&[""; 0], 3, 5), [""; 0]);
    }

    #[test]
    fn lines_are_inserted_in_place_of_others() {
        let original = ["a\n", "b\n", "c\n"];
        for (start, end, expected) in [
            (0, -1, &["", "x\n", "y\n", ""][..]),
            (1, -1, &["a\n", "x\n", "y\n", ""]),
            (0, 1, &["", "x\n", "y\n", "b\n", "c\n"]),
            (1, 1, &["a\n", "x\n", "y\n", "b\n", "c\n"]),
            (1, 2, &["a\n", "x\n", "y\n", "c\n"]),
            (9, 9, &["a\n", "b\n", "c\n", "x\n", "y\n"]),
            (2, 0, &["a\n", "b\n", "x\n", "y\n", "a\n", "b\n", "c\n"]),
            (-1, -2, &["a\n", "b\n", "x\n", "y\n", "b\n", "c\n"]),
            (-9, -1, &["x\n", "y\n", ""]),
        ] {
            assert_eq!(insert_lines(&["x", "y"], &original, start, end), expected, "{start} {end}");
        }
        assert_eq!(insert_lines(&[], &[], 0, -1), ["", ""]);
    }
}
