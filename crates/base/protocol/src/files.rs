//! Bodies of the native file API (`/v1/files/…`).
//!
//! Paths travel as text. Names that are not UTF-8 are shown with replacement characters, and `path_base64` has their
//! bytes. A relative path is relative to the directory that the tools start in.

mod mode;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use mode::{FileMode, NoMode};

/// What something in a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// One entry of a file system. Links are not followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    /// The path: absolute from `stat` and `watch`, relative to the directory that was asked for elsewhere.
    pub path: String,
    /// The bytes of a path that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// What it is.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: FileMode,
    /// User id of the owner.
    #[schema(value_type = u64)]
    pub uid: u32,
    /// Group id.
    #[schema(value_type = u64)]
    pub gid: u32,
    /// Time of the last change of the content, in seconds since 1970.
    pub modified: f64,
    /// What a link points to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What a link leads to in the end; absent for a dangling link and for everything but links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_kind: Option<FileKind>,
}

/// Answer to `GET /v1/files/list` and `POST /v1/files/glob`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FileList {
    /// The entries, sorted bytewise by path.
    pub entries: Vec<FileEntry>,
    /// There are more than the limit.
    pub truncated: bool,
}

/// Body of `POST /v1/files/glob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobRequest {
    /// Directory to look in; none is the directory that the tools start in.
    #[serde(default)]
    pub path: Option<String>,
    /// Patterns such as `src/**/*.rs`, relative to the directory; `!` in front excludes.
    #[serde(alias = "patterns")]
    pub globs: Vec<String>,
    /// Looks at names that begin with a dot, too.
    #[serde(default)]
    pub hidden: bool,
    /// Leaves out what `.gitignore` and `.ignore` files name.
    #[serde(default = "yes")]
    pub respect_ignore: bool,
    /// Most entries of the answer.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Body of `POST /v1/files/grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of a JSON object of its own")]
pub struct GrepRequest {
    /// File or directory to search; none is the directory that the tools start in.
    #[serde(default)]
    pub path: Option<String>,
    /// Regular expression in the syntax of the Rust `regex` crate.
    pub pattern: String,
    /// The pattern is plain text.
    #[serde(default)]
    pub literal: bool,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// Only files that match one of these patterns; `!` in front excludes.
    #[serde(default)]
    pub globs: Vec<String>,
    /// Looks at names that begin with a dot, too.
    #[serde(default)]
    pub hidden: bool,
    /// Leaves out what `.gitignore` and `.ignore` files name.
    #[serde(default = "yes")]
    pub respect_ignore: bool,
    /// Lines shown before and after each match.
    #[serde(default)]
    pub context: usize,
    /// Most matching lines of the answer.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Answer to `POST /v1/files/grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrepMatches {
    /// Lines in the order of files (bytewise) and lines.
    pub lines: Vec<GrepLine>,
    /// There are more matches than the limit.
    pub truncated: bool,
    /// Files that could not be read, with the reason; at most 100.
    pub skipped: Vec<String>,
}

/// A line that matches, or one near it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrepLine {
    /// The file, relative to the directory that was asked for.
    pub path: String,
    /// Number of the line, counted from 1.
    pub line: u64,
    /// The line without its end; cut after 4,096 characters.
    pub text: String,
    /// Whether it matches, or only stands near a match.
    pub is_match: bool,
}

/// Body of `POST /v1/files/move`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// What is moved.
    pub from: String,
    /// Its new path.
    pub to: String,
    /// Replaces what is there: a file, or an empty directory.
    #[serde(default)]
    pub overwrite: bool,
    /// Makes missing parent directories.
    #[serde(default)]
    pub parents: bool,
}

/// Body of `POST /v1/files/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveRequest {
    /// What is removed; a link itself, not its target.
    pub path: String,
    /// Removes a directory with everything in it.
    #[serde(default)]
    pub recursive: bool,
    /// It is no error if nothing is there.
    #[serde(default)]
    pub missing_ok: bool,
}

/// Body of `POST /v1/files/mkdir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MkdirRequest {
    /// The directory.
    pub path: String,
    /// Makes missing parents, and it is no error if the directory is there.
    #[serde(default)]
    pub parents: bool,
    /// Permission bits; none is 0777 less the umask.
    #[serde(default)]
    pub mode: Option<FileMode>,
}

/// Something that happened below a watched path (`GET /v1/files/watch`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEvent {
    /// What happened.
    pub change: FileChange,
    /// Where.
    pub path: String,
    /// It is a directory.
    pub is_directory: bool,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// It is new: made, or moved here.
    Created,
    /// Its content was written and closed.
    Modified,
    /// Its mode, owner, times or extended attributes changed.
    Attributes,
    /// It is gone: removed, or moved away.
    Removed,
    /// Events were lost because they came faster than they were read; look at everything again.
    Overflow,
}

/// Answer to `PUT /v1/files/content` and `PUT /v1/files/archive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stored {
    /// Where it was stored.
    pub path: String,
    /// Files written.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn patterns_of_names_are_globs_in_every_call_and_the_name_of_before_is_read() {
        for wire in ["globs", "patterns"] {
            let request: GlobRequest = from_value(json!({wire: ["*.rs"]})).unwrap();
            assert_eq!(request.globs, ["*.rs"], "{wire}");
            assert_eq!(to_value(&request).unwrap()["globs"], json!(["*.rs"]));
        }
        let search: GrepRequest = from_value(json!({"pattern": "a+", "globs": ["*.rs"]})).unwrap();
        assert_eq!((search.pattern.as_str(), search.globs), ("a+", vec!["*.rs".to_owned()]));
    }
}
