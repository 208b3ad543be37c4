//! Files that were added, changed and deleted.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use gloveport_sys::Surroundings;
use serde::Serialize;

use crate::{
    as_user::as_user,
    base::base,
    git::{Git, GitError, failed},
};

/// Most directories that are looked at for repositories of their own.
const DIRECTORIES: usize = 10_000;
/// Most of these repositories.
const NESTED: usize = 100;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// It is new.
    Added,
    /// It is another.
    Updated,
    /// It is gone.
    Deleted,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What became of it.
    pub status: Status,
    /// Its path below the directory that was asked for.
    pub path: String,
}

/// All that differs between the base and the files below a directory, sorted. Nothing if it is in no repository.
///
/// # Errors
///
/// Git fails, or `reference` names no commit.
pub async fn changes(
    surroundings: &Surroundings,
    path: &Path,
    reference: Option<&str>,
) -> Result<Vec<Change>, GitError> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = of_one(surroundings, path, reference).await?;
    let looked = path.to_owned();
    let nested =
        as_user(surroundings, move || nested(&looked)).await.map_err(|error| failed(&["diff"], &error.to_string()))?;
    for place in nested {
        let name = place.to_string_lossy();
        found.retain(|known, _| {
            known.strip_prefix(&*name).is_none_or(|rest| !rest.is_empty() && !rest.starts_with('/'))
        });
        match of_one(surroundings, &path.join(&place), reference).await {
            Ok(inner) => found.extend(inner.into_iter().map(|(path, status)| (format!("{name}/{path}"), status))),
            Err(error) => tracing::debug!(%error, %name, "a repository in a directory is passed over"),
        }
    }
    Ok(found.into_iter().map(|(path, status)| Change { status, path }).collect())
}

async fn of_one(
    surroundings: &Surroundings,
    path: &Path,
    reference: Option<&str>,
) -> Result<BTreeMap<String, Status>, GitError> {
    let Some(git) = Git::open(surroundings, path).await? else { return Ok(BTreeMap::new()) };
    let base = base(&git, reference).await?;
    let mut found = between(&git, &["--relative", &base, "--", "."]).await?;
    let untracked = git.run(&["ls-files", "--others", "--exclude-standard", "-z", "--", "."]).await?;
    for path in fields(&untracked).filter(|path| !path.ends_with('/')) {
        found.insert(path, Status::Added);
    }
    Ok(found)
}

/// What differs between two commits, or between one and the files; `more` are the commits and what is to be compared.
pub(crate) async fn between(git: &Git, more: &[&str]) -> Result<BTreeMap<String, Status>, GitError> {
    let mut words = vec![
        "diff",
        "--name-status",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=dirty",
    ];
    words.extend_from_slice(more);
    let printed = git.run(&words).await?;
    let mut fields = fields(&printed);
    let mut found = BTreeMap::new();
    while let (Some(letter), Some(path)) = (fields.next(), fields.next()) {
        let status = match letter.as_str() {
            "A" => Status::Added,
            "D" => Status::Deleted,
            _ => Status::Updated,
        };
        found.insert(path, status);
    }
    Ok(found)
}

/// What stands between zero bytes.
fn fields(printed: &[u8]) -> impl Iterator<Item = String> {
    let fields = printed.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    fields.map(|field| String::from_utf8_lossy(field).into_owned())
}

/// The directories in this one that are repositories of their own.
fn nested(path: &Path) -> Vec<OsString> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut found: Vec<OsString> = entries
        .take(DIRECTORIES)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git")
        .filter(|entry| has_repository(&entry.path()))
        .map(|entry| entry.file_name())
        .take(NESTED)
        .collect();
    found.sort();
    found
}

fn has_repository(path: &Path) -> bool {
    let place: PathBuf = path.join(".git");
    fs::symlink_metadata(place).is_ok()
}
