//! Bounds of texts.

use crate::StoreError;

/// Most characters of the name of a tenant.
const NAME: usize = 32;

/// A text of at most so many characters, without characters that no line of a log should have.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    let mut bounded: String = text.chars().take(most).map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect();
    if text.chars().nth(most).is_some() {
        bounded.push('…');
    }
    bounded
}

/// A text that must be as it is.
pub(crate) fn exact<'a>(field: &'static str, text: &'a str, most: usize) -> Result<&'a str, StoreError> {
    if text.chars().nth(most).is_some() {
        return Err(StoreError::Value { field, reason: format!("it has more than {most} characters") });
    }
    if text.chars().any(char::is_control) {
        return Err(StoreError::Value { field, reason: "it has control characters".to_owned() });
    }
    Ok(text)
}

/// The name of a tenant.
pub(crate) fn tenant(name: &str) -> Result<&str, StoreError> {
    let is_name = name.len() <= NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_name {
        return Ok(name);
    }
    let shown = bounded(name, NAME);
    let reason = format!("`{shown}` is no name of a tenant; use 1 to {NAME} of a-z, 0-9 and `-`, a letter first");
    Err(StoreError::Value { field: "the name", reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters_and_have_no_control_characters() {
        assert_eq!(bounded("äöü", 2), "äö…");
        assert_eq!(bounded("a\0\nb", 8), "a\u{fffd}\u{fffd}b");
        assert!(exact("label", "a'; DROP TABLE x; --", 32).is_ok());
        assert!(exact("label", "a\0", 32).is_err() && exact("label", "abc", 2).is_err());
    }

    #[test]
    fn names_of_tenants_are_short_and_plain() {
        for name in ["a", "default", "team-7", &"a".repeat(32)] {
            assert!(tenant(name).is_ok(), "{name}");
        }
        for name in ["", "A", "7a", "-a", "a.b", "a b", "a'b", "ä", &"a".repeat(33)] {
            assert!(tenant(name).is_err(), "{name}");
        }
    }
}
