//! Names of images, parsed once. What is one can stand in a Dockerfile and in arguments as it is.

use std::{fmt, str::FromStr};

use crate::error::ImageError;

/// Longest name, as the engines have it.
const LONGEST: usize = 255;
/// Longest tag.
const LONGEST_TAG: usize = 128;

/// The name of an image: `debian`, `debian:12`, `host:5000/team/image:tag`, `image@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImageName {
    text: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl ImageName {
    /// The whole name, as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands before tag and digest, with the registry's host.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if it has one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if it has one: `sha256:…`.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for ImageName {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let refused = |reason: &str| ImageError::Name { name: text.escape_debug().to_string(), reason: reason.into() };
        if text.is_empty() {
            return Err(refused("it is empty"));
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is that of the registry's port.
        let last = name.rfind('/').map_or(0, |at| at + 1);
        let colon = name.get(last..).and_then(|rest| rest.find(':')).map(|at| at + last);
        let (repository, tag) = match colon.and_then(|at| name.split_at_checked(at)) {
            Some((repository, tag)) => (repository, tag.strip_prefix(':')),
            None => (name, None),
        };
        if repository.len() > LONGEST {
            return Err(refused("it is longer than 255 characters"));
        }
        check_repository(repository).map_err(refused)?;
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(refused(
                "a tag has up to 128 letters, digits, `_`, `.` and `-`, and begins with none of the last two",
            ));
        }
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err(refused("a digest is an algorithm, a colon and at least 32 hexadecimal digits"));
        }
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Ok(Self { text: text.into(), repository: repository.into(), tag: owned(tag), digest: owned(digest) })
    }
}

fn check_repository(repository: &str) -> Result<(), &'static str> {
    let mut parts: Vec<&str> = repository.split('/').collect();
    let first = parts.first().copied().unwrap_or_default();
    if parts.len() > 1 && (first.contains(['.', ':']) || first == "localhost") {
        let (host, port) = first.split_once(':').unwrap_or((first, "1"));
        let host_is_good = host.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
        if !host_is_good || port.parse::<u16>().is_err() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("what stands before the first slash is no host, or no host with a port");
        }
        parts.remove(0);
    }
    if parts.iter().all(|part| is_component(part)) {
        return Ok(());
    }
    Err("each part between slashes has lower-case letters and digits, with `.`, `_` and `-` between them only")
}

fn is_component(part: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    part.starts_with(inner)
        && part.ends_with(inner)
        && part.chars().all(|letter| inner(letter) || "._-".contains(letter))
        && !["..", "._", "_.", "-.", ".-", "___"].iter().any(|wrong| part.contains(wrong))
}

fn is_tag(tag: &str) -> bool {
    tag.len() <= LONGEST_TAG
        && tag.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        && tag.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, value)) = digest.split_once(':') else { return false };
    algorithm.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && algorithm.chars().all(|letter| letter.is_ascii_alphanumeric() || "+._-".contains(letter))
        && (32..=128).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, expected) in [
            ("debian".to_owned(), ("debian", None, None)),
            ("debian:11".into(), ("debian", Some("11"), None)),
            ("localhost:5000/a/b:T_1".into(), ("localhost:5000/a/b", Some("T_1"), None)),
            ("host.example:5000/a".into(), ("host.example:5000/a", None, None)),
            (format!("a/b@{digest}"), ("a/b", None, Some(digest.as_str()))),
            (format!("h.x:1/a/b:t@{digest}"), ("h.x:1/a/b", Some("t"), Some(digest.as_str()))),
            ("a__b/c-d.e--f".into(), ("a__b/c-d.e--f", None, None)),
        ] {
            let name: ImageName = text.parse().unwrap();
            assert_eq!((name.repository(), name.tag(), name.digest()), expected);
            assert_eq!(name.as_str(), text);
        }
    }

    #[test]
    fn what_could_become_an_instruction_or_an_option_is_no_name() {
        for text in [
            "",
            " ",
            "-v",
            "--network=host",
            "debian\nRUN true",
            "debian:12 AS x",
            "debian:12\r",
            "$BASE",
            "debian:$(id)",
            "a\\\nb",
            "a//b",
            "/a",
            "a/",
            "A",
            "a:",
            "a:-t",
            "a:.t",
            "a@sha256:1",
            "a@sha256:zz",
            "user@host:1/a",
            "a:b:c",
            "x.y:port/a",
            "x.y:99999/a",
            "ä",
            "a..b",
            "#escape=`",
            "a\u{2028}b",
        ] {
            assert!(text.parse::<ImageName>().is_err(), "{text:?}");
        }
    }
}
