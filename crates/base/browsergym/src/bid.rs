//! The ids of elements (spec/browser.md 3.1, 3.2).

use std::fmt;

use crate::error::ActionError;

/// The id of the frame element that a document counts as number `counter`, from 0: `a` to `z`, `aA` to `zZ`, `aAA` and
/// on. It follows the id of the frame that the document is in.
pub fn frame_letters(counter: u64) -> String {
    const LETTERS: u64 = 26;
    let letter = |digit: u64, first: u8| char::from(first + u8::try_from(digit).unwrap_or_default());
    // The ids of one length, and how many there are of all shorter ones.
    let (mut length, mut count, mut shorter) = (1, u128::from(LETTERS), 0_u128);
    while u128::from(counter) >= shorter + count {
        shorter += count;
        count *= u128::from(LETTERS);
        length += 1;
    }
    let mut rest = u64::try_from(u128::from(counter) - shorter).unwrap_or_default();
    let mut letters = Vec::with_capacity(length);
    for place in (0..length).rev() {
        letters.push(letter(rest % LETTERS, if place == 0 { b'a' } else { b'A' }));
        rest /= LETTERS;
    }
    letters.iter().rev().collect()
}

/// The id of an element: the letters of the frames that it is in, from the outermost to the innermost, and a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bid(String);

impl Bid {
    /// Takes an id. What is none belongs to no element, which is found out on the way.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The ids of the frame elements on the way to the element, from the outermost to the innermost.
    ///
    /// What is left is the number of the element. Anything before it counts as a frame, as in the reference, also the id of
    /// a frame element itself.
    pub fn frames(&self) -> impl Iterator<Item = &str> {
        let number = self.0.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        // A text without a number at its end is no number from any place on.
        let letters = self.0.get(..number).unwrap_or_default();
        letters.char_indices().filter_map(|(at, character)| {
            let end = at + character.len_utf8();
            let goes_on = self.0.get(end..).is_some_and(|rest| rest.starts_with(char::is_uppercase));
            if goes_on { None } else { self.0.get(..end) }
        })
    }

    /// The whole id, which is the value of the element's `bid` attribute.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What to answer if there is no such element, or no such frame on the way to it.
    pub fn not_found(&self) -> ActionError {
        not_found(&self.0)
    }
}

impl fmt::Display for Bid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn not_found(text: &str) -> ActionError {
    ActionError::value(format!("Could not find element with bid \"{text}\""))
}
