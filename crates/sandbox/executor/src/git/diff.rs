//! A file as it was and as it is (`runtime-interface` §12.2).

use std::{
    ffi::OsString,
    fs, io,
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    os::unix::ffi::OsStringExt as _,
    path::{Component, Path, PathBuf},
};

use serde_json::json;

use super::{
    Answer,
    command::{Git, GitError},
    reference::{arguments, revision},
};

/// Largest file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Why there is no difference to show.
#[derive(Debug, thiserror::Error)]
enum DiffError {
    /// The name that the reference has for it.
    #[error("file_to_large: {} has more than {MAX_FILE} bytes", .0.display())]
    TooLarge(PathBuf),
    /// The name that the reference has for it.
    #[error("no_repository: no directory above {} has a .git", .0.display())]
    NoRepository(PathBuf),
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The file at the revision to compare with, and now. A file that is gone is empty now, and one that is new was empty.
pub(super) async fn answer(git: &Git<'_>, directory: &Path, file: &str) -> Answer {
    match difference(git, directory, file).await {
        Ok((original, modified)) => {
            Answer { content: json!({"modified": modified, "original": original}).to_string(), exit_code: 0 }
        }
        Err(error) => Answer { content: error.to_string(), exit_code: 1 },
    }
}

async fn difference(git: &Git<'_>, directory: &Path, file: &str) -> Result<(String, String), DiffError> {
    let path = normal(&directory.join(file));
    let name = path.clone();
    let found = tokio::task::spawn_blocking(move || find(&path)).await;
    let (modified, root) = found.unwrap_or_else(|_panic| Err(DiffError::NoRepository(name.clone())))?;
    let original = match revision(git, &root).await? {
        Some(revision) => original(git, &root, &name, revision).await?,
        None => Vec::new(),
    };
    Ok((lines(&original), lines(&modified)))
}

/// The content of the file and the root of its repository.
fn find(path: &Path) -> Result<(Vec<u8>, PathBuf), DiffError> {
    let content = read(path)?;
    let root = path.ancestors().skip(1).find(|directory| directory.join(".git").symlink_metadata().is_ok());
    let root = root.ok_or_else(|| DiffError::NoRepository(path.to_owned()))?;
    Ok((content, root.to_owned()))
}

fn read(path: &Path) -> Result<Vec<u8>, DiffError> {
    let failed = |source| DiffError::Read { path: path.to_owned(), source };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(error)),
    };
    // Opening a pipe or a device could wait for ever.
    if !metadata.is_file() {
        return Err(DiffError::NotAFile(path.to_owned()));
    }
    let mut content = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(MAX_FILE + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > MAX_FILE {
        return Err(DiffError::TooLarge(path.to_owned()));
    }
    Ok(content)
}

/// The content at a revision; empty if the file was not there. It is read as it is stored, without text conversion.
async fn original(git: &Git<'_>, root: &Path, path: &Path, revision: OsString) -> Result<Vec<u8>, DiffError> {
    let Ok(relative) = path.strip_prefix(root) else { return Ok(Vec::new()) };
    let mut object = revision.into_vec();
    object.push(b':');
    object.extend_from_slice(relative.as_os_str().as_bytes());
    match git.output(root, arguments!["cat-file", "blob", &OsString::from_vec(object)]).await {
        Ok(content) => Ok(content),
        Err(GitError::Failed { .. }) => Ok(Vec::new()),
        Err(GitError::TooMuch { .. }) => Err(DiffError::TooLarge(path.to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The lines of a text with `\n` between them and none behind the last, split where Python splits.
fn lines(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let mut normal = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\r' {
            characters.next_if_eq(&'\n');
        }
        normal.push(if is_line_end(character) { '\n' } else { character });
    }
    if normal.ends_with('\n') {
        normal.pop();
    }
    normal
}

const fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}' | '\u{1D}' | '\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_python() {
        for (text, expected) in [
            ("", ""),
            ("\n", ""),
            ("a", "a"),
            ("a\n", "a"),
            ("a\n\n\n", "a\n\n"),
            ("\n  a\r\nb\rc\n\r", "\n  a\nb\nc\n"),
            ("a\u{C}b\u{2028}c\u{85}d", "a\nb\nc\nd"),
        ] {
            assert_eq!(lines(text.as_bytes()), expected, "{text:?}");
        }
    }
}
