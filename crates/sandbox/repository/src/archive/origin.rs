//! Where a repository is from, and where it stands.

use std::path::Path;

use gloveport_sys::Surroundings;

use crate::git::{Git, GitError};

/// Parts of the names of what is secret in the query of an address.
const SECRET: [&str; 9] = ["auth", "credential", "key", "pass", "pwd", "secret", "sig", "token", "code"];
/// What stands in place of it: `<redacted>`, as it is written in an address.
const REDACTED: &str = "%3Credacted%3E";

/// Where a repository is from, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The address of `origin`, without secrets.
    pub remote: Option<String>,
    /// The branch; `DETACHED` if there is none.
    pub branch: String,
    /// The commit; none if there is none yet.
    pub head: Option<String>,
    /// The directory.
    pub root: String,
}

impl Origin {
    /// What git tells of a directory; nothing if it has no repository.
    pub(super) async fn of(surroundings: &Surroundings, root: &Path) -> Result<Option<Self>, GitError> {
        let Some(git) = Git::open(surroundings, root).await? else { return Ok(None) };
        let remote = git.line(&["config", "--get", "remote.origin.url"]).await?;
        let branch = git.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
        let head = git.commit("HEAD").await?;
        Ok(Some(Self {
            remote: remote.map(|address| without_secrets(&address)),
            branch: branch.unwrap_or_else(|| "DETACHED".to_owned()),
            head,
            root: root.to_string_lossy().into_owned(),
        }))
    }
}

/// An address without who asks, and without what of its query looks secret.
fn without_secrets(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority.rsplit_once('@').map_or(authority.to_owned(), |(_, host)| format!("****@{host}"));
    let Some((path, query)) = path.split_once('?') else { return format!("{scheme}://{authority}{path}") };
    let (query, fragment) =
        query.split_once('#').map_or((query, String::new()), |(query, rest)| (query, format!("#{rest}")));
    let pairs: Vec<String> = query.split('&').map(without_secret).collect();
    format!("{scheme}://{authority}{path}?{}{fragment}", pairs.join("&"))
}

fn without_secret(pair: &str) -> String {
    let Some((name, _)) = pair.split_once('=') else { return pair.to_owned() };
    let lower = name.to_ascii_lowercase();
    if SECRET.iter().any(|part| lower.contains(part)) { format!("{name}={REDACTED}") } else { pair.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_without_its_secrets() {
        for (address, expected) in [
            ("https://me:secret@example.com/x.git", "https://****@example.com/x.git"),
            ("https://a@b@example.com/x@y", "https://****@example.com/x@y"),
            ("https://example.com/x?Access_Token=1&y=2#z", "https://example.com/x?Access_Token=%3Credacted%3E&y=2#z"),
            ("https://example.com?sig=1", "https://example.com?sig=%3Credacted%3E"),
            ("git@example.com:x/y.git", "git@example.com:x/y.git"),
            ("../bare", "../bare"),
            ("ssh://git@example.com:22/x", "ssh://****@example.com:22/x"),
        ] {
            assert_eq!(without_secrets(address), expected);
        }
    }
}
