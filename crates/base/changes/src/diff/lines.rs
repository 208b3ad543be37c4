//! Lines of two texts as numbers: equal lines have equal numbers.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::OnceLock,
};

/// The lines between LF.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut lines = Vec::with_capacity(text.len() / 32 + 1);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        lines.push(&text[start..end]);
        start = end + 1;
    }
    lines.push(&text[start..]);
    lines
}

/// The lines of two texts by number.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) old: Vec<u32>,
    pub(super) new: Vec<u32>,
    /// Numbers are less than this.
    pub(super) count: usize,
}

/// Numbers the lines of two texts.
pub(super) fn number(old: &[&str], new: &[&str]) -> Numbered {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let mut table = Table::new(old.len() + new.len() - head - tail);
    let new_numbers: Vec<u32> = new.iter().map(|line| table.number(line)).collect();
    // What is the same at both ends needs no second look.
    let mut old_numbers = Vec::with_capacity(old.len());
    old_numbers.extend_from_slice(&new_numbers[..head]);
    old_numbers.extend(old[head..old.len() - tail].iter().map(|line| table.number(line)));
    old_numbers.extend_from_slice(&new_numbers[new.len() - tail..]);
    Numbered { old: old_numbers, new: new_numbers, count: table.lines.len() }
}

/// A hash table that gives each line a number. Its hash begins with a secret, so that nobody can prepare lines that
/// collide.
struct Table<'a> {
    /// Number of a line plus one; zero for a free place. Twice as many places as lines, at least.
    places: Vec<u32>,
    lines: Vec<(u64, &'a str)>,
}

impl<'a> Table<'a> {
    fn new(lines: usize) -> Self {
        Self { places: vec![0; (lines * 2).next_power_of_two().max(2)], lines: Vec::with_capacity(lines) }
    }

    fn number(&mut self, line: &'a str) -> u32 {
        let hash = hash(line.as_bytes());
        let mask = self.places.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "the low bits choose the place")]
        let mut place = hash as usize & mask;
        loop {
            match self.places[place] {
                0 => {
                    self.lines.push((hash, line));
                    let number = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
                    self.places[place] = number;
                    return number - 1;
                }
                number => {
                    let known = self.lines[number as usize - 1];
                    if known == (hash, line) {
                        return number - 1;
                    }
                }
            }
            place = (place + 1) & mask;
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    static SECRETS: OnceLock<[u64; 2]> = OnceLock::new();
    let [first, second] = SECRETS.get_or_init(|| {
        let state = RandomState::new();
        // An odd factor loses no bits.
        [state.hash_one(0), state.hash_one(1) | 1]
    });
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = first ^ bytes.len() as u64;
    for word in words {
        hash = mixed(hash ^ u64::from_le_bytes(*word), *second);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mixed(mixed(hash ^ u64::from_le_bytes(last), *second), *second)
}

/// Both halves of the product.
#[expect(clippy::cast_possible_truncation, reason = "the two halves are taken apart")]
fn mixed(value: u64, factor: u64) -> u64 {
    let product = u128::from(value) * u128::from(factor);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_have_equal_numbers_and_others_have_not() {
        let old: Vec<String> = (0..500).map(|line| format!("line {}", line % 97)).collect();
        let new: Vec<String> = (3..700).map(|line| format!("line {}", line % 101)).collect();
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let numbered = number(&old, &new);
        for (lines, numbers) in [(&old, &numbered.old), (&new, &numbered.new)] {
            assert_eq!(lines.len(), numbers.len());
            for (line, number) in lines.iter().zip(numbers) {
                for (other, other_number) in new.iter().zip(&numbered.new) {
                    assert_eq!(line == other, number == other_number, "{line} {other}");
                }
            }
        }
        assert_eq!(numbered.count, 101);
    }

    #[test]
    fn a_text_has_a_line_more_than_it_has_newlines() {
        assert_eq!(split(""), [""]);
        assert_eq!(split("a\n\nb\n"), ["a", "", "b", ""]);
    }
}
