//! The keys that change what others mean.

use std::ops::BitOr;

use serde::{Serialize, Serializer};

/// A set of modifiers. Serializes as the bits of the DevTools protocol: Alt 1, Control 2, Meta 4, Shift 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modifiers(u8);

impl Modifiers {
    /// No modifier.
    pub const NONE: Self = Self(0);
    /// Alt.
    pub const ALT: Self = Self(1);
    /// Control.
    pub const CONTROL: Self = Self(2);
    /// Meta.
    pub const META: Self = Self(4);
    /// Shift.
    pub const SHIFT: Self = Self(8);

    /// The modifier that an argument of `click` names; `ControlOrMeta` is Control.
    pub fn named(name: &str) -> Option<Self> {
        if name == "ControlOrMeta" { Some(Self::CONTROL) } else { Self::of_key(name) }
    }

    /// The modifier that a key is, by its `KeyboardEvent.key`.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        match key {
            "Alt" => Some(Self::ALT),
            "Control" => Some(Self::CONTROL),
            "Meta" => Some(Self::META),
            "Shift" => Some(Self::SHIFT),
            _ => None,
        }
    }

    /// The bits of the DevTools protocol.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `others` are in the set.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The set without `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The names of the keys, in the order in which they are pressed.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        ["Alt", "Control", "Meta", "Shift"]
            .into_iter()
            .filter(move |name| Self::of_key(name).is_some_and(|modifier| self.contains(modifier)))
    }
}

impl BitOr for Modifiers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Serialize for Modifiers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0)
    }
}
