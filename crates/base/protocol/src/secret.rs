//! A text that nobody may see by accident.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is shown in place of a secret (configuration 10).
const MASK: &str = "**********";

/// A secret text: a token, a key, a password.
///
/// `Debug`, `Display` and serialisation show a mask of constant length; the memory is wiped when the value is dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself. Never log it or put it into an error, a URL or the arguments of a process.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_prints_a_secret_shows_it() {
        let secret = Secret::new("hunter2");
        let shown = format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap());
        assert_eq!(shown, "********** ********** \"**********\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_secret_is_read_from_a_text() {
        assert_eq!(serde_json::from_str::<Secret>("\"hunter2\"").unwrap(), Secret::new("hunter2"));
    }
}
