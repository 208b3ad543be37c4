//! Texts with what is known of where they come from.

use super::place::UNKNOWN;

/// What a text may carry, as far as rules ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flow(u8);

impl Flow {
    /// Content of a file or an environment that is secret.
    pub(super) const SECRET: Self = Self(1);
    /// The value of a variable whose name says that it is secret.
    pub(super) const TOKEN: Self = Self(2);
    /// Came over the network.
    pub(super) const DOWNLOAD: Self = Self(4);
    /// Was made from something unreadable.
    pub(super) const DECODED: Self = Self(8);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A text; [`UNKNOWN`] stands where only a shell knows more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) flow: Flow,
}

impl Value {
    /// A text of which nothing is known but where it comes from.
    pub(super) fn unknown(flow: Flow) -> Self {
        Self { text: UNKNOWN.to_string(), flow }
    }

    /// A text that stands in the command itself.
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), flow: Flow::default() }
    }

    /// Whether the whole text is known.
    pub(super) fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }

    /// Whether not even the beginning is known.
    pub(super) fn is_opaque(&self) -> bool {
        self.text.trim_start().starts_with(UNKNOWN)
    }
}
