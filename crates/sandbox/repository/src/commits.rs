//! The newest commits, and what one of them changed.

use std::path::Path;

use gloveport_sys::Surroundings;
use serde::Serialize;

use crate::{
    changes::{Change, between},
    git::{Git, GitError, failed},
};

/// What stands between the parts of a line.
const SEPARATOR: char = '\u{1f}';
/// The parts of a commit: its name, the short one, the first line of its message, author and time.
const FORMAT: &str = "--format=%H%x1f%h%x1f%s%x1f%an%x1f%aI";
/// A repository may have another encoding for what is shown.
const UTF_8: &str = "--encoding=UTF-8";

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its name.
    pub sha: String,
    /// As short as is enough.
    pub short_sha: String,
    /// First line of its message.
    pub subject: String,
    /// Who made it.
    pub author: String,
    /// When, ISO 8601 with the offset.
    pub timestamp: String,
}

/// Commits, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commits {
    /// As many as were asked for.
    pub commits: Vec<Commit>,
    /// There are more.
    pub has_more: bool,
}

/// The newest commits. None if there is no repository, or nothing in it.
///
/// # Errors
///
/// Git fails.
pub async fn commits(surroundings: &Surroundings, path: &Path, limit: usize) -> Result<Commits, GitError> {
    let nothing = Commits { commits: Vec::new(), has_more: false };
    if !path.is_dir() {
        return Ok(nothing);
    }
    let Some(git) = Git::open(surroundings, path).await? else { return Ok(nothing) };
    if git.commit("HEAD").await?.is_none() {
        return Ok(nothing);
    }
    let count = format!("--max-count={}", limit.saturating_add(1));
    let printed = git.run(&["log", &count, "-z", "--no-color", "--no-show-signature", UTF_8, FORMAT, "HEAD"]).await?;
    let text = String::from_utf8_lossy(&printed);
    let mut all: Vec<Commit> = text.split('\0').filter_map(parsed).collect();
    let has_more = all.len() > limit;
    all.truncate(limit);
    Ok(Commits { commits: all, has_more })
}

fn parsed(line: &str) -> Option<Commit> {
    // A subject may have whatever is in it.
    let (sha, rest) = line.trim_start_matches('\n').split_once(SEPARATOR)?;
    let (short_sha, rest) = rest.split_once(SEPARATOR)?;
    let (rest, timestamp) = rest.rsplit_once(SEPARATOR)?;
    let (subject, author) = rest.rsplit_once(SEPARATOR)?;
    let [sha, short_sha, subject, author, timestamp] =
        [sha, short_sha, subject, author, timestamp.trim_end()].map(str::to_owned);
    Some(Commit { sha, short_sha, subject, author, timestamp })
}

/// What a commit changed, compared with the first one before it: all of it, with paths from the top of the repository.
///
/// # Errors
///
/// Git fails, or there is no such commit.
pub async fn commit_changes(surroundings: &Surroundings, path: &Path, sha: &str) -> Result<Vec<Change>, GitError> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let Some(git) = Git::open(surroundings, path).await? else { return Ok(Vec::new()) };
    let no_commit = || failed(&["rev-parse"], &format!("`{sha}` names no commit in {}", git.directory().display()));
    let after = git.commit(sha).await?.ok_or_else(no_commit)?;
    let before = git.parent(&after).await?;
    let found = between(&git, &["--no-relative", &before, &after]).await?;
    Ok(found.into_iter().map(|(path, status)| Change { status, path }).collect())
}
