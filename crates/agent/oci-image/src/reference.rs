//! What images are asked for as, parsed once.

use std::{fmt, path::PathBuf};

use crate::{digest::Digest, error::ImageError, words::shown};

/// Where images come from whose name has no host.
const DEFAULT_HOST: &str = "docker.io";
/// Longest repository and longest tag, as registries have them.
const LONGEST: usize = 255;
const LONGEST_TAG: usize = 128;

/// The name of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    Registry(Name),
    Local(Local),
}

/// An image of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// The host as it is written, with its port.
    pub(crate) host: String,
    pub(crate) repository: String,
    pub(crate) version: Version,
}

/// Which image of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    Tag(String),
    Digest(Digest),
}

/// An image of this machine's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) form: Form,
    /// Absolute.
    pub(crate) path: PathBuf,
    pub(crate) tag: Option<String>,
}

/// How the files are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A directory in OCI's layout.
    Layout,
    /// A tar of such a directory.
    LayoutArchive,
    /// What `docker save` writes.
    DockerArchive,
}

impl Form {
    const ALL: [Self; 3] = [Self::Layout, Self::LayoutArchive, Self::DockerArchive];

    fn prefix(self) -> &'static str {
        match self {
            Self::Layout => "oci",
            Self::LayoutArchive => "oci-archive",
            Self::DockerArchive => "docker-archive",
        }
    }
}

impl Reference {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// It is none.
    pub(crate) fn parse(text: &str) -> Result<Self, ImageError> {
        let refused = |reason: &str| ImageError::Reference { reference: shown(text, 300), reason: reason.into() };
        for form in Form::ALL {
            let rest = text.strip_prefix(form.prefix()).and_then(|rest| rest.strip_prefix(':'));
            if let Some(rest) = rest {
                // A registry called `oci` with a port is none that anybody has; a tag of digits is a path here.
                return local(form, rest).map(Self::Local).map_err(|reason| refused(&reason));
            }
        }
        name(text).map(Self::Registry).map_err(refused)
    }
}

impl fmt::Display for Reference {
    /// The whole name, the same for all ways to write it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(Name { host, repository, version: Version::Tag(tag) }) => {
                write!(formatter, "{host}/{repository}:{tag}")
            }
            Self::Registry(Name { host, repository, version: Version::Digest(digest) }) => {
                write!(formatter, "{host}/{repository}@{digest}")
            }
            Self::Local(Local { form, path, tag }) => {
                write!(formatter, "{}:{}", form.prefix(), path.display())?;
                tag.as_ref().map_or(Ok(()), |tag| write!(formatter, ":{tag}"))
            }
        }
    }
}

fn local(form: Form, rest: &str) -> Result<Local, String> {
    let (path, tag) = rest.split_once(':').map_or((rest, None), |(path, tag)| (path, Some(tag)));
    if path.is_empty() || rest.contains('\0') {
        return Err(format!("after `{}:` the path of a file or directory is expected", form.prefix()));
    }
    if tag.is_some_and(|tag| tag.is_empty() || tag.len() > LONGEST + LONGEST_TAG) {
        return Err("behind the second colon a tag is expected; paths with a colon cannot be used".into());
    }
    let path = std::path::absolute(path).map_err(|error| format!("its path cannot be used: {error}"))?;
    Ok(Local { form, path, tag: tag.map(str::to_owned) })
}

fn name(text: &str) -> Result<Name, &'static str> {
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
    let last = name.rfind('/').map_or(0, |at| at + 1);
    // A colon before the last slash is that of the port.
    let colon = name.get(last..).and_then(|rest| rest.find(':')).map(|at| at + last);
    let (path, tag) = match colon.and_then(|at| name.split_at_checked(at)) {
        Some((path, tag)) => (path, tag.strip_prefix(':')),
        None => (name, None),
    };
    let (host, path) = match path.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
        _ => (DEFAULT_HOST, path),
    };
    if !is_host(host) {
        return Err("what stands before the first slash is no host, or no host with a port");
    }
    let host = if host == "index.docker.io" { DEFAULT_HOST } else { host };
    if path.len() > LONGEST || !path.split('/').all(is_component) {
        return Err(
            "each part between slashes has lower-case letters and digits, with `.`, `_` and `-` between them, as \
            in `python:3.12-slim` or `ghcr.io/team/image:tag`",
        );
    }
    let repository =
        if host == DEFAULT_HOST && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err("a tag has up to 128 letters, digits, `_`, `.` and `-`, and begins with none of the last two");
    }
    let version = match digest {
        Some(digest) => Version::Digest(
            digest.parse().map_err(|_| "behind `@`, `sha256:` and 64 lower-case hexadecimal digits are expected")?,
        ),
        None => Version::Tag(tag.unwrap_or("latest").to_owned()),
    };
    Ok(Name { host: host.to_owned(), repository, version })
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        // An address of IPv6.
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else { return false };
            return address.parse::<std::net::Ipv6Addr>().is_ok()
                && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    host.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter))
        && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_component(part: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    part.starts_with(inner)
        && part.ends_with(inner)
        && part.chars().all(|letter| inner(letter) || "._-".contains(letter))
        && !part.contains("..")
}

fn is_tag(tag: &str) -> bool {
    (1..=LONGEST_TAG).contains(&tag.len())
        && !tag.starts_with(['.', '-'])
        && tag.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        let digest = Digest::of(b"");
        for (text, expected) in [
            ("python:3.12-slim".to_owned(), "docker.io/library/python:3.12-slim".to_owned()),
            ("python".into(), "docker.io/library/python:latest".into()),
            ("team/x".into(), "docker.io/team/x:latest".into()),
            ("docker.io/python".into(), "docker.io/library/python:latest".into()),
            ("index.docker.io/a/b:c".into(), "docker.io/a/b:c".into()),
            ("localhost/x".into(), "localhost/x:latest".into()),
            ("localhost:5000/x:tag".into(), "localhost:5000/x:tag".into()),
            ("[::1]:5000/x".into(), "[::1]:5000/x:latest".into()),
            (format!("ghcr.io/a/b@{digest}"), format!("ghcr.io/a/b@{digest}")),
            (format!("ghcr.io/a/b:tag@{digest}"), format!("ghcr.io/a/b@{digest}")),
            ("oci:/a/b".into(), "oci:/a/b".into()),
            ("oci:/a/b:tag".into(), "oci:/a/b:tag".into()),
            ("docker-archive:/a.tar:lib/x:1".into(), "docker-archive:/a.tar:lib/x:1".into()),
            ("oci-archive:/a.tar".into(), "oci-archive:/a.tar".into()),
        ] {
            let parsed = Reference::parse(&text).unwrap();
            assert_eq!(parsed.to_string(), expected);
            assert_eq!(Reference::parse(&expected).unwrap(), parsed);
        }
        let relative = Reference::parse("oci:x").unwrap().to_string();
        assert_eq!(relative, format!("oci:{}", std::env::current_dir().unwrap().join("x").display()));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            " ",
            "-v",
            "a//b",
            "/a",
            "a/",
            "A",
            "a:",
            "a:-t",
            "a:.t",
            "a@sha256:1",
            "user@host:1/a",
            "a:b:c",
            "x.y:port/a",
            "x.y:99999/a",
            "x.y:0/a",
            "ä",
            "a..b",
            "x.y/../a",
            "a/../b",
            "a\nb",
            "oci:",
            "oci::t",
            "oci:a:",
            "[::1/x",
            "http://x.y/a",
            "x.y/a?b",
            "a\0b",
        ] {
            assert!(matches!(Reference::parse(text), Err(ImageError::Reference { .. })), "{text:?}");
        }
    }
}
