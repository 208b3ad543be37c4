//! Ids of sessions (configuration 4).

use gloveport_protocol::Secret;
use sha2::{Digest as _, Sha256};

use crate::error::ConfigError;

/// Longest name that is kept whole, in characters.
const NAME: usize = 16;

/// Length of an id whose name is short, in characters.
const LENGTH: usize = 32;

/// Characters of the digest behind a name that was cut.
const DIGEST: usize = 15;

/// Makes the id of a session from its name, or from a random one. It fits the names of Kubernetes objects.
///
/// The digest is over the name and the *masked* secret, as in the reference: the same name gives the same id, and the
/// id is no secret. A name in other alphabets than that of host names is the caller's to avoid.
pub fn session_id(name: Option<&str>, jwt_secret: Option<&Secret>) -> Result<String, ConfigError> {
    let name = match name {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => gloveport_ids::uuid().map_err(ConfigError::Random)?,
    };
    let secret = match jwt_secret {
        None => "None".to_owned(),
        Some(secret) if secret.is_empty() => String::new(),
        Some(secret) => secret.to_string(),
    };
    let digest = gloveport_ids::hex(&Sha256::digest(format!("{name}{secret}")));
    let length = name.chars().count();
    let (kept, digits) = if length > NAME {
        (name.chars().take(NAME).collect(), DIGEST)
    } else {
        (name, LENGTH.saturating_sub(length + 1))
    };
    Ok(format!("{kept}-{}", digest.get(..digits).unwrap_or(&digest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_name_and_digest() {
        let secret = Secret::new("anything");
        // Ids that the reference makes of these names, with any secret and with none.
        for (name, secret, expected) in [
            ("a", None, "a-f6653249add5958550052efe4c1202"),
            ("a", Some(&secret), "a-aa5d81bd17c0ada81683e833a9c845"),
            ("my-session", Some(&secret), "my-session-16c6e2e02f25a6ecee7fd"),
            ("exactly-16-chars", Some(&secret), "exactly-16-chars-09e09e7999fb7a9"),
            ("seventeen-chars-x", None, "seventeen-chars--b9714466fc3ffe0"),
            ("seventeen-chars-x", Some(&secret), "seventeen-chars--f2529bec04b814c"),
            ("a very long session name of mine", Some(&secret), "a very long sess-5ff69a0df72ae7a"),
            ("é漢字", Some(&secret), "é漢字-52a3f30309b453a15e7a5eedce2c"),
        ] {
            assert_eq!(session_id(Some(name), secret).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn an_id_without_a_name_starts_with_a_random_uuid() {
        let first = session_id(None, None).unwrap();
        let second = session_id(Some(""), None).unwrap();
        assert_ne!(first, second);
        for id in [first, second] {
            assert_eq!(id.len(), 32, "{id}");
            let places: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
            assert_eq!(places, [8, 13, 16], "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
        }
    }
}
