//! Both texts of one file.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use gloveport_sys::{Surroundings, replace};
use gloveport_text::python;
use serde::Serialize;

use crate::{
    as_user::as_user,
    base::base,
    git::{Git, GitError, failed},
};

/// Longest text that is compared, in bytes.
const MOST: u64 = 1024 * 1024;

/// Both texts of one file, with line ends of one byte and without the last one. Nothing if it is in no repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// What it is now.
    pub modified: Option<String>,
    /// What it was.
    pub original: Option<String>,
}

/// Compares a file with the base, or shows what a commit did to it.
///
/// # Errors
///
/// Git fails, there is no such file, it is too long, or a name is none of a commit.
pub async fn diff(
    surroundings: &Surroundings,
    path: &Path,
    reference: Option<&str>,
    commit: Option<&str>,
) -> Result<FileDiff, GitError> {
    let (directory, below) = nearest(path);
    let Some(git) = Git::open(surroundings, &directory).await? else {
        if fs::symlink_metadata(path).is_err() {
            return Err(GitError::NoFile(path.to_owned()));
        }
        return Ok(FileDiff { modified: None, original: None });
    };
    let prefix = git.line(&["rev-parse", "--show-prefix"]).await?.unwrap_or_default();
    let name = format!("{prefix}{below}");
    if let Some(commit) = commit {
        let after = git.commit(commit).await?;
        let after = after.ok_or_else(|| failed(&["rev-parse"], &format!("`{commit}` names no commit")))?;
        let before = git.parent(&after).await?;
        let (before, after) = (blob(&git, &before, &name).await?, blob(&git, &after, &name).await?);
        return Ok(both(before.as_deref(), after.as_deref()));
    }
    let base = base(&git, reference).await?;
    let original = blob(&git, &base, &name).await?;
    let file = path.to_owned();
    let read = as_user(surroundings, move || on_disk(&file)).await;
    let modified = read.unwrap_or_else(|error| Err(failed(&["diff"], &error.to_string())))?;
    if original.is_none() && modified.is_none() {
        return Err(GitError::NoFile(path.to_owned()));
    }
    Ok(both(original.as_deref(), modified.as_deref()))
}

fn both(original: Option<&[u8]>, modified: Option<&[u8]>) -> FileDiff {
    FileDiff { modified: Some(shown(modified)), original: Some(shown(original)) }
}

/// A text as it is compared; nothing of what is no text.
fn shown(bytes: Option<&[u8]>) -> String {
    let text = python::universal_newlines(std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default());
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

/// The nearest directory above a file that is there, and the rest of the path.
fn nearest(path: &Path) -> (PathBuf, String) {
    let found = path.ancestors().skip(1).find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    let below = path.strip_prefix(found).unwrap_or(path);
    (found.to_owned(), below.to_string_lossy().into_owned())
}

/// A file of a commit, or of a tree.
async fn blob(git: &Git, commit: &str, name: &str) -> Result<Option<Vec<u8>>, GitError> {
    let listed = git.run(&["ls-tree", "-z", "--full-tree", commit, "--", name]).await?;
    let listed = String::from_utf8_lossy(&listed);
    let mut parts = listed.split(['\t', ' ']).skip(1);
    let (Some("blob"), Some(object)) = (parts.next(), parts.next()) else { return Ok(None) };
    // A clone may have left it out.
    let size = git.run(&["cat-file", "-s", object]).await?;
    let size = String::from_utf8_lossy(&size).trim().parse().unwrap_or(u64::MAX);
    if size > MOST {
        return Err(GitError::TooLarge { size, most: MOST });
    }
    git.run(&["cat-file", "blob", object]).await.map(Some)
}

fn on_disk(path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    let unreadable = |error: io::Error| failed(&["diff"], &format!("cannot read {}: {error}", path.display()));
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(None),
        Ok(metadata) if metadata.len() > MOST => return Err(GitError::TooLarge { size: metadata.len(), most: MOST }),
        Ok(_) => {}
        Err(_) => return Ok(None),
    }
    let file = replace::open_to_read(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let size = bytes.len() as u64;
    if size > MOST { Err(GitError::TooLarge { size, most: MOST }) } else { Ok(Some(bytes)) }
}
