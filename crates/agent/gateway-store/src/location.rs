//! Which database.

use std::{fmt, path::PathBuf};

use gloveport_protocol::Secret;

use crate::StoreError;

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file of SQLite, which is made if there is none.
    File(PathBuf),
    /// A URL of PostgreSQL, which may have a password.
    Postgres(Secret),
}

impl Location {
    /// Takes a path, or a URL that begins with `postgres://` or `postgresql://`.
    ///
    /// # Errors
    ///
    /// It is empty, or the URL of something else.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(Secret::new(text)));
        }
        let path = text.strip_prefix("sqlite://").unwrap_or(text);
        if path.is_empty() || path.contains('\0') || path.contains("://") {
            // What is no URL of ours may have a password all the same.
            let shown = path.split_once("://").map_or("", |(scheme, _)| scheme);
            let shown = if shown.is_empty() { String::new() } else { format!("{shown}://…") };
            return Err(StoreError::Location(shown));
        }
        Ok(Self::File(PathBuf::from(path)))
    }

    /// The URL for the driver.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::File(path) => {
                // What stands before the first slash would be a host.
                let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let mut url = String::from("sqlite://");
                for byte in whole.as_os_str().as_encoded_bytes() {
                    if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
                        url.push(char::from(*byte));
                    } else {
                        url.push('%');
                        url.push_str(&gloveport_ids::hex(&[*byte]));
                    }
                }
                url.push_str("?mode=rwc");
                url
            }
            Self::Postgres(url) => url.expose().to_owned(),
        }
    }

    /// A text without the password, wherever it stands in it.
    pub(crate) fn without_password(&self, text: &str) -> String {
        let Self::Postgres(url) = self else { return text.to_owned() };
        let text = text.replace(url.expose(), &self.to_string());
        password(url.expose())
            .filter(|password| !password.is_empty())
            .map_or(text.clone(), |password| text.replace(password, "…"))
    }
}

/// User, password and the rest of a URL.
fn parts(url: &str) -> Option<(&str, Option<&str>, &str)> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password that is not written as in URLs may have a slash or a `@`.
    let at = rest[..end].rfind('@').or_else(|| rest.rfind('@'));
    let Some(at) = at else { return Some(("", None, rest)) };
    let (user, place) = (&rest[..at], &rest[at + 1..]);
    Some(match user.split_once(':') {
        Some((user, password)) => (user, Some(password), place),
        None => (user, None, place),
    })
}

fn password(url: &str) -> Option<&str> {
    parts(url).and_then(|(_, password, _)| password)
}

impl fmt::Display for Location {
    /// Without password and parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(url) => match parts(url.expose()) {
                Some((user, _, place)) => {
                    let place = place.split(['?', '#']).next().unwrap_or_default();
                    let at = if user.is_empty() { "" } else { "@" };
                    write!(f, "postgres://{user}{at}{place}")
                }
                None => f.write_str("postgres://…"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_file_or_a_url_and_never_shows_its_password() {
        for (text, shown) in [
            ("gateway.db", "gateway.db"),
            ("sqlite:///var/lib/gateway.db", "/var/lib/gateway.db"),
            ("postgres://me:hunter2@db:5432/gateway?sslmode=require", "postgres://me@db:5432/gateway"),
            ("postgresql://db/gateway", "postgres://db/gateway"),
            ("postgres://me:hunter2/hunter2@db/gateway", "postgres://me@db/gateway"),
            ("postgres:///gateway?host=/run&user=me&password=hunter2", "postgres:///gateway"),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!(location.to_string(), shown);
            assert!(!format!("{location:?}").contains("hunter2"), "{text}");
        }
        for text in ["", " ", "mysql://me:hunter2@db/x", "https://a"] {
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let location = Location::parse("postgres://me:hunter2@db/gateway").unwrap();
        let told = location.without_password("cannot parse postgres://me:hunter2@db/gateway at hunter2");
        assert_eq!(told, "cannot parse postgres://me@db/gateway at …");
        assert_eq!(Location::File("/a b?c#d%e".into()).url(), "sqlite:///a%20b%3fc%23d%25e?mode=rwc");
    }
}
