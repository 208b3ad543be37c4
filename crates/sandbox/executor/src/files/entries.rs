//! Entries of directories: looked at, made and moved.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_audit::{Event, Text, record};
use gloveport_protocol::files::{FileEntry, FileKind, FileList, FileMode, MkdirRequest, MoveRequest};
use ignore::WalkBuilder;
use rustix::fs::{CWD, RenameFlags};

use super::{FileError, paths::shown};

/// Entries of a list when the request names no limit.
const DEFAULT_LIMIT: usize = 10_000;
/// Most entries of a list.
const MOST: usize = 100_000;

/// What is at `path`. With `follow`, what a link leads to.
///
/// # Errors
///
/// Nothing is there, or it can not be reached.
pub fn entry(path: &Path, follow: bool) -> Result<FileEntry, FileError> {
    let metadata = if follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
    Ok(describe(path, path, &metadata.map_err(FileError::os(path))?))
}

/// What is below a directory, to `depth` levels.
///
/// # Errors
///
/// `path` is no directory, or can not be read.
pub fn list(path: &Path, depth: usize, hidden: bool, limit: Option<usize>) -> Result<FileList, FileError> {
    // The walk reports a root that is no directory as an entry.
    fs::read_dir(path).map_err(FileError::os(path))?;
    let walk = WalkBuilder::new(path).standard_filters(false).hidden(!hidden).max_depth(Some(depth.max(1))).build();
    let entries = walk.filter_map(Result::ok).filter(|entry| entry.depth() > 0).map(ignore::DirEntry::into_path);
    Ok(collect(path, entries, limit))
}

/// The entries of a walk below `root`, bounded and sorted.
pub(super) fn collect(root: &Path, walk: impl Iterator<Item = PathBuf>, limit: Option<usize>) -> FileList {
    let limit = limit.unwrap_or(DEFAULT_LIMIT).min(MOST);
    let mut paths: Vec<PathBuf> = walk.take(limit.saturating_add(1)).collect();
    let truncated = paths.len() > limit;
    paths.truncate(limit);
    paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    let entries = paths
        .iter()
        // What has gone meanwhile is left out.
        .filter_map(|path| {
            Some(describe(path, path.strip_prefix(root).unwrap_or(path), &fs::symlink_metadata(path).ok()?))
        })
        .collect();
    FileList { entries, truncated }
}

fn describe(path: &Path, name: &Path, metadata: &Metadata) -> FileEntry {
    let (text, bytes) = shown(name);
    let kind = kind(metadata);
    let is_link = kind == FileKind::Symlink;
    FileEntry {
        path: text,
        path_base64: bytes.map(|bytes| STANDARD.encode(bytes)),
        kind,
        size: metadata.len(),
        mode: FileMode::of_file(metadata.mode()),
        uid: metadata.uid(),
        gid: metadata.gid(),
        modified: seconds(metadata),
        target: is_link.then(|| fs::read_link(path).ok()).flatten().map(|target| shown(&target).0),
        target_kind: is_link.then(|| fs::metadata(path).ok()).flatten().as_ref().map(self::kind),
    }
}

fn kind(metadata: &Metadata) -> FileKind {
    let kind = metadata.file_type();
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Symlink
    } else {
        FileKind::Other
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time is shown to about a microsecond")]
fn seconds(metadata: &Metadata) -> f64 {
    metadata.mtime() as f64 + metadata.mtime_nsec() as f64 / 1e9
}

/// Makes a directory.
///
/// # Errors
///
/// It exists and `parents` is not set, its parent does not exist, or the system refuses it.
pub fn make_directory(path: &Path, request: &MkdirRequest) -> Result<(), FileError> {
    record(|| Event::MadeDirectory { path: Text::of(path) });
    let mut builder = fs::DirBuilder::new();
    builder.recursive(request.parents);
    if let Some(mode) = request.mode {
        builder.mode(mode.bits());
    }
    builder.create(path).map_err(FileError::os(path))
}

/// Moves a file or a directory.
///
/// # Errors
///
/// Something is at the new path and `overwrite` is not set, the two are on different file systems, or the system
/// refuses it. Nothing is changed then.
pub fn move_to(from: &Path, to: &Path, request: &MoveRequest) -> Result<(), FileError> {
    fs::symlink_metadata(from).map_err(FileError::os(from))?;
    record(|| Event::Moved { from: Text::of(from), to: Text::of(to) });
    if request.parents
        && let Some(parent) = to.parent()
    {
        fs::create_dir_all(parent).map_err(FileError::os(parent))?;
    }
    let result = if request.overwrite { fs::rename(from, to) } else { rename_to_nothing(from, to) };
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !request.overwrite => {
            Err(FileError::Exists(to.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Err(FileError::Invalid(format!(
            "{} and {} are on different file systems; copy and remove instead",
            from.display(),
            to.display()
        ))),
        // A directory into itself, a path that ends with a dot, a root.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::ResourceBusy) => {
            Err(FileError::Invalid(format!(
                "{} cannot be moved to {}: a directory cannot be moved into itself, and neither `.`, `..` nor what is \
                 mounted can be moved or replaced",
                from.display(),
                to.display()
            )))
        }
        Err(error) => Err(FileError::Os { path: to.to_owned(), source: error }),
    }
}

/// Renames, unless something is at the new path.
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not know the flag.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if fs::symlink_metadata(to).is_err() => {
            fs::rename(from, to)
        }
        other => Ok(other?),
    }
}
