//! Names of sandboxes and sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most characters of a name.
const LONGEST: usize = 128;

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` cannot be the id of a {what}: use 1 to {LONGEST} letters, digits, `.`, `_` and `-`, a letter or digit first"
)]
pub struct InvalidName {
    what: &'static str,
    text: String,
}

fn check(what: &'static str, text: String) -> Result<String, InvalidName> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins_well = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if begins_well && text.len() <= LONGEST && text.bytes().all(allowed) {
        return Ok(text);
    }
    Err(InvalidName { what, text: text.chars().take(LONGEST).collect() })
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident, $what:literal) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes a text of 1 to 128 letters, digits, `.`, `_` and `-` that begins with a letter or digit, so that
            /// it can be part of a path, a label and a URL.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                check($what, text.into()).map(Self)
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

name! {
    /// The id that a provider gives to a sandbox (`runtime_id` of the Remote Runtime API). It stays the same for the
    /// sandbox's whole life.
    SandboxId, "sandbox"
}

name! {
    /// The session whose sandbox it is (`sid`, `session_id`). A provider has at most one sandbox for each.
    SessionId, "session"
}

impl SessionId {
    /// A new one: 16 hexadecimal digits of the system's random numbers.
    pub fn random() -> Result<Self, gloveport_ids::Error> {
        gloveport_ids::random::<8>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_paths_labels_and_urls() {
        for good in ["a", "0", "conv-1_2.x", &"x".repeat(128)] {
            assert_eq!(SessionId::new(good).map(String::from), Ok(good.to_owned()));
        }
        for bad in ["", ".", "..", "-a", "_a", "a/b", "a b", "ä", "a\0", "a\n", &"x".repeat(129)] {
            assert!(SandboxId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_wrong_name_is_refused_where_json_is_read() {
        assert!(serde_json::from_str::<SessionId>("\"../x\"").is_err());
    }
}
