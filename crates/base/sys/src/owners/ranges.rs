//! Lines of `/etc/subuid` and `/etc/subgid`: whose, the first number, and how many there are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most ranges that are used. The kernel of a namespace takes 340 lines, those before 4.15 five.
const MOST: usize = 64;
/// The number that nobody has.
const NOBODY: u64 = u32::MAX as u64;

/// Numbers that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    /// The first one.
    pub first: u32,
    /// How many there are.
    pub count: u32,
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.count)
    }
}

impl Range {
    /// What of it is behind the end of another one that begins before, or before the begin of one that begins later.
    fn without(self, other: Self) -> [Option<Self>; 2] {
        let (first, end) = (u64::from(self.first), u64::from(self.first) + u64::from(self.count));
        let (other_first, other_end) = (u64::from(other.first), u64::from(other.first) + u64::from(other.count));
        [Self::between(first, end.min(other_first)), Self::between(first.max(other_end), end)]
    }

    fn between(first: u64, end: u64) -> Option<Self> {
        let count = end.checked_sub(first).filter(|count| *count > 0)?;
        Some(Self { first: u32::try_from(first).ok()?, count: u32::try_from(count).ok()? })
    }

    fn has(self, number: u32) -> bool {
        number.checked_sub(self.first).is_some_and(|after| after < self.count)
    }
}

/// What a file gives a user, by its name or by its number, in the order of the lines and each number once. A line that is none
/// is passed over, and so is a range with root's number, with `own`, which is the user's or that of its group, or with one that
/// nobody can have.
pub(super) fn given(text: &str, name: Option<&str>, user: u32, own: u32) -> Vec<Range> {
    let mut found: Vec<Range> = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut fields = line.split(':');
        let (Some(whose), Some(first), Some(count), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if whose.is_empty() || !(Some(whose) == name || number(whose) == Some(u64::from(user))) {
            continue;
        }
        let (Some(first), Some(count)) = (number(first), number(count)) else { continue };
        let Some(range) =
            first.checked_add(count).filter(|end| *end <= NOBODY).and_then(|end| Range::between(first, end))
        else {
            continue;
        };
        if range.has(0) || range.has(own) || range.has(user) {
            continue;
        }
        let mut parts = vec![range];
        for known in &found {
            parts = parts.into_iter().flat_map(|part| part.without(*known)).flatten().collect();
        }
        found.extend(parts);
        if found.len() >= MOST {
            found.truncate(MOST);
            break;
        }
    }
    found
}

/// A number as these files have it: digits alone.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The first `count` numbers of them; `None` if there are fewer.
pub(super) fn first(given: &[Range], count: u32) -> Option<Vec<Range>> {
    let (mut taken, mut left) = (Vec::new(), count);
    for range in given {
        let range = Range { count: range.count.min(left), ..*range };
        left -= range.count;
        taken.push(range);
        if left == 0 {
            return Some(taken);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(given: &[(u32, u32)]) -> Vec<Range> {
        given.iter().map(|(first, count)| Range { first: *first, count: *count }).collect()
    }

    #[test]
    fn ranges_of_a_user_are_found_by_name_and_by_number_and_each_number_once() {
        let table: [(&str, &[(u32, u32)]); 19] = [
            ("ann:100000:65536\n", &[(100_000, 65_536)]),
            ("1000:100000:65536\n", &[(100_000, 65_536)]),
            ("bob:100000:65536\n1001:1:5\nann:300000:10\n", &[(300_000, 10)]),
            ("ann:100000:10\nann:200000:10\n1000:300000:10\n", &[(100_000, 10), (200_000, 10), (300_000, 10)]),
            // Overlapping in every way.
            ("ann:100000:10\nann:100005:10\n", &[(100_000, 10), (100_010, 5)]),
            ("ann:100005:10\nann:100000:10\n", &[(100_005, 10), (100_000, 5)]),
            ("ann:100005:2\nann:100000:10\n", &[(100_005, 2), (100_000, 5), (100_007, 3)]),
            ("ann:100000:10\nann:100002:3\nann:100000:10\n", &[(100_000, 10)]),
            // Of root, of the user, of its group.
            ("ann:0:65536\n", &[]),
            ("ann:999:2\n", &[]),
            ("ann:1:1000\nann:2000:10\n", &[(2_000, 10)]),
            ("ann:50:51\n", &[]),
            // Numbers that there are not.
            ("ann:100000:0\nann:4294967295:1\nann:4294967290:6\n", &[]),
            ("ann:4294967290:5\n", &[(4_294_967_290, 5)]),
            ("ann:18446744073709551615:18446744073709551615\nann:99999999999999999999:1\n", &[]),
            ("ann:-5:10\nann:+5:10\nann: 5:10\nann:5:10:\nann:5\nann\n:5:10\nann:0x100:10\n", &[]),
            ("# ann:100000:10\n\n   \nann:100000:10", &[(100_000, 10)]),
            ("annette:100000:10\nAnn:100000:10\n01000:100000:10\n", &[(100_000, 10)]),
            ("\u{fffd}\u{fffd}:1:2\n\0\0\0\n", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(given(text, Some("ann"), 1000, 100), ranges(expected), "{text:?}");
        }
        assert_eq!(given("ann:1:5\n:7:8\n", None, 1000, 100), []);
    }

    #[test]
    fn absurdly_many_ranges_are_bounded() {
        let lines: Vec<String> = (0..100_000).map(|number| format!("ann:{}:1", 100_000 + 2 * number)).collect();
        assert_eq!(given(&lines.join("\n"), Some("ann"), 1000, 1000).len(), MOST);
    }

    #[test]
    fn as_many_are_taken_as_are_needed_or_none() {
        let given = ranges(&[(100, 10), (200, 10)]);
        assert_eq!(first(&given, 5), Some(ranges(&[(100, 5)])));
        assert_eq!(first(&given, 10), Some(ranges(&[(100, 10)])));
        assert_eq!(first(&given, 11), Some(ranges(&[(100, 10), (200, 1)])));
        assert_eq!(first(&given, 20), Some(given.clone()));
        assert_eq!(first(&given, 21), None);
        assert_eq!(first(&[], 1), None);
    }
}
