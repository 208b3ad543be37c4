//! As whom something is done. A sandbox has one user for everything; others are taken on by its own programs for that.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};

use crate::{connect::ConnectError, headers::text, place::Facts};

/// What E2B calls the user of a sandbox.
const DEFAULT: &str = "user";
/// Most characters of a name.
const NAME: usize = 32;

/// The user that a call names, if it is another one than that of the sandbox.
pub(super) fn named(headers: &HeaderMap, facts: &Facts) -> Result<Option<String>, ConnectError> {
    let Some(header) = text(headers, &AUTHORIZATION) else { return Ok(None) };
    let wrong =
        || ConnectError::wrong("the header Authorization must be Basic with the name of a user and no password");
    let encoded = header.strip_prefix("Basic ").ok_or_else(wrong)?;
    let decoded = STANDARD.decode(encoded.trim()).map_err(|_| wrong())?;
    let decoded = String::from_utf8(decoded).map_err(|_| wrong())?;
    let (name, _) = decoded.split_once(':').ok_or_else(wrong)?;
    other(name, facts)
}

/// A name, if it is another one than that of the sandbox's user.
pub(super) fn other(name: &str, facts: &Facts) -> Result<Option<String>, ConnectError> {
    if name.is_empty() || name == DEFAULT || name == facts.user {
        return Ok(None);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.len() > NAME || name.starts_with('-') || !name.bytes().all(is_plain) {
        return Err(ConnectError::wrong("this cannot be the name of a user"));
    }
    Ok(Some(name.to_owned()))
}

/// Files are worked on by the user of the sandbox alone.
pub(super) fn only_own(name: Option<&str>, facts: &Facts) -> Result<(), ConnectError> {
    match name {
        None => Ok(()),
        Some(name) => Err(ConnectError::wrong(format!(
            "files of this sandbox are read and written as its user `{}`, and not as `{name}`; leave the user out, or run a \
             command as that user",
            facts.user
        ))),
    }
}

/// The words that run a program as another user, with variables.
pub(super) fn words(name: &str, facts: &Facts, env: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let lead: &[&str] = if facts.user == "root" { &["runuser", "-u"] } else { &["sudo", "-n", "-u"] };
    let mut words: Vec<String> = lead.iter().map(|word| (*word).to_owned()).collect();
    words.extend([name.to_owned(), "--".to_owned(), "env".to_owned()]);
    words.extend(env.map(|(name, value)| format!("{name}={value}")));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_names_are_none_and_others_are_checked() {
        let facts = Facts { user: "openhands".to_owned(), directory: "/workspace".to_owned() };
        for (name, expected) in [
            ("", Some(None)),
            ("user", Some(None)),
            ("openhands", Some(None)),
            ("root", Some(Some("root".to_owned()))),
            ("-u", None),
            ("a b", None),
            ("a;b", None),
        ] {
            assert_eq!(other(name, &facts).ok(), expected, "{name}");
        }
        let mut headers = HeaderMap::new();
        for (value, is_good) in
            [("Basic cm9vdDo=", true), ("Basic !", false), ("Bearer x", false), ("Basic cm9vdA==", false)]
        {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            assert_eq!(named(&headers, &facts).is_ok(), is_good, "{value}");
        }
    }
}
