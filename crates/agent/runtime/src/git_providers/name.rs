//! Names of repositories.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::GitProviderError;

/// Most bytes of a name.
const MAX_BYTES: usize = 1024;

/// All but what no URL gives a meaning to. Python's `quote` without safe characters is the same.
pub(super) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The name of a repository, such as `acme/api`: parts with slashes between them, none of which is empty or leads
/// somewhere else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryName(String);

impl RepositoryName {
    /// Checks a name.
    pub fn parse(name: &str) -> Result<Self, GitProviderError> {
        let refused = |reason| Err(GitProviderError::Name { name: name.escape_debug().to_string(), reason });
        if name.len() > MAX_BYTES {
            return Err(GitProviderError::Name { name: String::new(), reason: "it has more than 1024 bytes" });
        }
        if name.chars().any(char::is_control) {
            return refused("it has control characters");
        }
        if name.split('/').any(|part| part.trim().is_empty()) {
            return refused("it has an empty part");
        }
        if name.split('/').any(|part| matches!(part, "." | "..")) {
            return refused("it leads out of where it is");
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts between slashes; at least one.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The name as the path of a URL. It is the name itself unless that has unusual characters.
    pub(super) fn encoded(&self) -> String {
        self.parts().map(|part| encode(part).to_string()).collect::<Vec<_>>().join("/")
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A text as one part of the path of a URL.
pub(super) fn encode(text: &str) -> percent_encoding::PercentEncode<'_> {
    utf8_percent_encode(text, UNRESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parts_with_slashes_between_them() {
        for (name, encoded) in [
            ("acme/api", "acme/api"),
            ("acme/.openhands", "acme/.openhands"),
            ("group/sub_group/a-b.c~1", "group/sub_group/a-b.c~1"),
            ("api", "api"),
            ("My Org/My Project/a+b", "My%20Org/My%20Project/a%2Bb"),
            ("a/b?c#d@e:f%2e", "a/b%3Fc%23d%40e%3Af%252e"),
            ("a/é", "a/%C3%A9"),
            ("a/...", "a/..."),
        ] {
            assert_eq!(RepositoryName::parse(name).unwrap().encoded(), encoded);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for (name, error) in [
            ("", "`` is not a valid name for a repository: it has an empty part"),
            ("/a", "`/a` is not a valid name for a repository: it has an empty part"),
            ("a//b", "`a//b` is not a valid name for a repository: it has an empty part"),
            ("a/ ", "`a/ ` is not a valid name for a repository: it has an empty part"),
            ("a/../user", "`a/../user` is not a valid name for a repository: it leads out of where it is"),
            ("./a", "`./a` is not a valid name for a repository: it leads out of where it is"),
            ("a/b\r\nX: y", "`a/b\\r\\nX: y` is not a valid name for a repository: it has control characters"),
        ] {
            assert_eq!(RepositoryName::parse(name).unwrap_err().to_string(), error);
        }
        let error = RepositoryName::parse(&"a".repeat(MAX_BYTES + 1)).unwrap_err().to_string();
        assert_eq!(error, "`` is not a valid name for a repository: it has more than 1024 bytes");
    }
}
