//! How a form of a secret compares with the text at one place.

/// The answer of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Where the match ends, if there is one.
    pub(super) end: Option<usize>,
    /// Whether the text ends before it is decided: with more text there may be a match, or a longer one.
    pub(super) open: bool,
}

impl Outcome {
    /// No match, whatever follows.
    pub(super) const NONE: Self = Self { end: None, open: false };

    /// The longer match of both, and open if one of them is.
    pub(super) fn or(self, other: Self) -> Self {
        Self { end: self.end.max(other.end), open: self.open || other.open }
    }
}

/// What a pattern may begin with: its first byte, and the second if it has one.
pub(super) type Head = (u8, Option<u8>);
