//! Where each value comes from.

use std::{collections::BTreeMap, fmt};

use crate::note::Place;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// Somebody set it here.
    Set(Place),
    /// It follows from other settings.
    Derived {
        /// From which, or by which rule.
        from: String,
    },
}

impl Origin {
    /// `default`, `file`, `environment`, `flag` or `derived`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Set(Place::File { .. }) => "file",
            Self::Set(Place::Variable { .. }) => "environment",
            Self::Set(Place::Flag { .. }) => "flag",
            Self::Derived { .. } => "derived",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Set(place) => write!(f, "{place}"),
            Self::Derived { from } => write!(f, "follows from {from}"),
        }
    }
}

/// The origin of every value that is not a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<(String, String), Origin>);

impl Origins {
    /// Origin of a key of a section: `core`, `sandbox`, …, `llm`, `llm.NAME`, `agent`, `agent.NAME`. The tables
    /// `extended`, `condenser` and `model_routing` have their origin under the empty key.
    pub fn of(&self, section: &str, key: &str) -> &Origin {
        self.0.get(&(section.to_owned(), key.to_owned())).unwrap_or(&Origin::Default)
    }

    pub(crate) fn set(&mut self, section: &str, key: &str, origin: Origin) {
        self.0.insert((section.to_owned(), key.to_owned()), origin);
    }

    pub(crate) fn forget(&mut self, section: &str) {
        self.0.retain(|(of, _), _| of != section);
    }
}
