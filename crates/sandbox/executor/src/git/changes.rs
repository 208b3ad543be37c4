//! Which files changed (`runtime-interface` §12.1).

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    Answer,
    command::{Git, GitError},
    reference::{arguments, revision},
};

/// Most repositories in the directories below the one that is asked about.
const MAX_NESTED: usize = 256;

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    status: char,
    /// The bytes of the path.
    path: Vec<u8>,
}

/// The changes of the repository at a directory and of those in the directories directly below it, sorted by path. What
/// goes wrong is an object with the reason; the exit code is 0 all the same.
pub(super) async fn answer(git: &Git<'_>, directory: &Path) -> Answer {
    let content = match all_changes(git, directory).await {
        Ok(changes) => changes
            .iter()
            .map(|change| json!({"status": change.status.to_string(), "path": String::from_utf8_lossy(&change.path)}))
            .collect::<Value>(),
        Err(error) => json!({"error": error.to_string()}),
    };
    Answer { content: content.to_string(), exit_code: 0 }
}

async fn all_changes(git: &Git<'_>, directory: &Path) -> Result<Vec<Change>, GitError> {
    let nested = nested_repositories(directory.to_owned()).await;
    let mut changes = changes(git, directory).await?;
    changes.retain(|change| !nested.iter().any(|name| is_within(&change.path, name.as_bytes())));
    for name in &nested {
        for change in self::changes(git, &directory.join(name)).await? {
            let path = [name.as_bytes(), b"/", change.path.as_slice()].concat();
            changes.push(Change { path, ..change });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// Whether a path is a directory or something in it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The names of the directories directly below one that have a `.git`, in order.
async fn nested_repositories(directory: PathBuf) -> Vec<OsString> {
    let list = move || {
        let Ok(entries) = fs::read_dir(&directory) else { return Vec::new() };
        let names = entries.flatten().filter(|entry| entry.path().join(".git").symlink_metadata().is_ok());
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        if names.len() > MAX_NESTED {
            tracing::warn!(
                count = names.len(),
                "only the first {MAX_NESTED} repositories of a directory are looked at"
            );
            names.truncate(MAX_NESTED);
        }
        names
    };
    tokio::task::spawn_blocking(list).await.unwrap_or_default()
}

/// The changes of one repository, with paths that begin at the directory.
async fn changes(git: &Git<'_>, directory: &Path) -> Result<Vec<Change>, GitError> {
    let Some(revision) = revision(git, directory).await? else { return Ok(Vec::new()) };
    let diff =
        arguments!["diff", "--no-ext-diff", "--no-textconv", "--name-status", "--relative", "-z", &revision, "--",];
    let mut changes = tracked(&git.output(directory, diff).await?);
    let others = git.output(directory, arguments!["ls-files", "--others", "--exclude-standard", "-z"]).await?;
    changes.extend(fields(&others).map(|path| Change { status: 'A', path: path.to_vec() }));
    Ok(changes)
}

/// The parts of an output that each end with a zero byte.
fn fields(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|field| !field.is_empty())
}

/// Reads `STATUS NUL PATH NUL`, with two paths for what was renamed or copied.
fn tracked(output: &[u8]) -> Vec<Change> {
    let mut fields = fields(output);
    let mut changes = Vec::new();
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        let mut add = |status, path: &[u8]| changes.push(Change { status, path: path.to_vec() });
        match status.first() {
            Some(b'R') => {
                add('D', path);
                fields.next().into_iter().for_each(|path| add('A', path));
            }
            Some(b'C') => fields.next().into_iter().for_each(|path| add('A', path)),
            Some(known @ (b'A' | b'D' | b'U')) => add(char::from(*known), path),
            // A file that became a link, or the other way round, is a changed file.
            _ => add('M', path),
        }
    }
    changes
}

/// How many changes an output has.
#[cfg(fuzzing)]
pub(super) fn fuzz(output: &[u8]) -> usize {
    let changes = tracked(output);
    assert!(changes.iter().all(|change| matches!(change.status, 'A' | 'D' | 'M' | 'U')));
    changes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_git_becomes_one_of_the_four() {
        let output = b"M\0a b\0A\0c\0D\0d\0U\0u\0T\0t\0R090\0old\0new\nline\0C100\0from\0to\xFF\0";
        let changes: Vec<_> = tracked(output).into_iter().map(|change| (change.status, change.path)).collect();
        let expected: Vec<(char, &[u8])> = vec![
            ('M', b"a b"),
            ('A', b"c"),
            ('D', b"d"),
            ('U', b"u"),
            ('M', b"t"),
            ('D', b"old"),
            ('A', b"new\nline"),
            ('A', b"to\xFF"),
        ];
        assert_eq!(changes, expected.into_iter().map(|(status, path)| (status, path.to_vec())).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_that_only_begins_like_a_directory_is_not_in_it() {
        for (path, expected) in
            [("nest", true), ("nest/", true), ("nest/a", true), ("nest_a", false), ("a/nest", false)]
        {
            assert_eq!(is_within(path.as_bytes(), b"nest"), expected, "{path}");
        }
    }
}
