//! Keys of servers.

use std::fmt;

use subtle::ConstantTimeEq as _;

/// The key of a session. Its content is never shown and is compared in constant time.
#[derive(Clone)]
pub struct SessionKey(String);

impl SessionKey {
    /// A key, which should not be empty.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Whether this is the key. The time that it takes tells nothing but the length.
    pub fn matches(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }

    /// Its content, for whoever must hand it on.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_matches_itself_only_and_does_not_show_itself() {
        let key = SessionKey::new("secret");
        for (presented, matches) in
            [("secret", true), ("Secret", false), ("secre", false), ("secrets", false), ("", false)]
        {
            assert_eq!(key.matches(presented.as_bytes()), matches, "{presented:?}");
        }
        assert_eq!(format!("{key:?}"), "SessionKey(..)");
    }
}
