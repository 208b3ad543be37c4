//! What the files of a repository are compared with (`runtime-interface` §12.1).

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
    time::Duration,
};

use super::command::{Git, GitError};

/// Time for the server of the remote repository to say what its default branch is.
const REMOTE_LIMIT: Duration = Duration::from_secs(5);
/// The empty tree of repositories with SHA-1 names.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Makes a list of arguments of anything that is text.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => {
        &[$(std::ffi::OsStr::new($argument)),*]
    };
}
pub(super) use arguments;

/// The revision with which the repository at a directory is compared: the first that exists of the branch at `origin`,
/// the commit where HEAD left the default branch of `origin`, that branch, and nothing. None if there is no repository.
pub(super) async fn revision(git: &Git<'_>, directory: &Path) -> Result<Option<OsString>, GitError> {
    if let Some(branch) = git.ask(directory, arguments!["rev-parse", "--abbrev-ref", "HEAD"]).await?
        && let Some(found) = verify(git, directory, &origin(&branch)).await?
    {
        return Ok(Some(found));
    }
    if let Some(default) = default_branch(git, directory).await? {
        let tip = origin(&default);
        if let Some(base) = git.ask(directory, arguments!["merge-base", "HEAD", &tip]).await? {
            return Ok(Some(base));
        }
        if let Some(found) = verify(git, directory, &tip).await? {
            return Ok(Some(found));
        }
    }
    let empty = git.ask(directory, arguments!["hash-object", "-t", "tree", "/dev/null"]).await?;
    verify(git, directory, &empty.unwrap_or_else(|| EMPTY_TREE.into())).await
}

fn origin(branch: &OsStr) -> OsString {
    OsString::from_vec([b"origin/", branch.as_bytes()].concat())
}

async fn verify(git: &Git<'_>, directory: &Path, name: &OsStr) -> Result<Option<OsString>, GitError> {
    git.ask(directory, arguments!["rev-parse", "--verify", "--quiet", "--end-of-options", name]).await
}

/// The default branch of `origin`: as the clone remembers it, and else as the server says.
async fn default_branch(git: &Git<'_>, directory: &Path) -> Result<Option<OsString>, GitError> {
    let remembered = arguments!["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"];
    if let Some(name) = git.ask(directory, remembered).await?
        && let Some(branch) = name.as_bytes().strip_prefix(b"origin/")
    {
        return Ok(Some(OsStr::from_bytes(branch).to_owned()));
    }
    if git.ask(directory, arguments!["config", "--get", "remote.origin.url"]).await?.is_none() {
        return Ok(None);
    }
    match git.output_within(REMOTE_LIMIT, directory, arguments!["remote", "show", "origin"]).await {
        Ok(text) => Ok(head_branch(&text)),
        // Without the server there is still something to compare with.
        Err(GitError::Failed { .. } | GitError::TimedOut { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `HEAD branch: main` in the description of a remote repository.
fn head_branch(text: &[u8]) -> Option<OsString> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.trim_ascii().strip_prefix(b"HEAD branch: "))?;
    let name = line.trim_ascii();
    (!name.is_empty() && !name.starts_with(b"(")).then(|| OsStr::from_bytes(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_branch_is_read_from_the_description_of_a_remote() {
        for (text, expected) in [
            ("* remote origin\n  Fetch URL: x\n  HEAD branch: trunk\n  Remote branch:\n", Some("trunk")),
            ("  HEAD branch: (unknown)\n", None),
            ("  HEAD branch: (not queried)\n", None),
            ("  HEAD branch (remote HEAD is ambiguous, may be one of the following):\n    a\n", None),
            ("", None),
        ] {
            assert_eq!(head_branch(text.as_bytes()), expected.map(OsString::from), "{text}");
        }
    }
}
