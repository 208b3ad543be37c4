//! Entries of the file system as the agent tells them.

use gloveport_protocol::files::{FileEntry, FileKind};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::paths;

/// An entry at an absolute path.
pub(super) fn entry(path: &str, entry: &FileEntry) -> Value {
    let is_link = entry.kind == FileKind::Symlink;
    // A link is told as what it leads to.
    let kind = if is_link { entry.target_kind.unwrap_or(FileKind::Symlink) } else { entry.kind };
    let mode = entry.mode.bits();
    let mut told = json!({
        "name": paths::name(path),
        "type": match kind {
            FileKind::Directory => "FILE_TYPE_DIRECTORY",
            FileKind::Symlink => "FILE_TYPE_SYMLINK",
            FileKind::File | FileKind::Other => "FILE_TYPE_FILE",
        },
        "path": path,
        "size": entry.size.to_string(),
        "mode": mode,
        "permissions": permissions(entry.kind, mode),
        "owner": owner(entry.uid),
        "group": owner(entry.gid),
        "modifiedTime": time(entry.modified),
        "isSymlink": is_link,
    });
    if let Some(target) = &entry.target {
        told["symlinkTarget"] = target.as_str().into();
    }
    told
}

/// The names of users and groups are those of the sandbox, of which one is the same everywhere.
fn owner(id: u32) -> String {
    if id == 0 { "root".to_owned() } else { id.to_string() }
}

fn permissions(kind: FileKind, mode: u32) -> String {
    let first = match kind {
        FileKind::Directory => 'd',
        FileKind::Symlink => 'L',
        FileKind::File | FileKind::Other => '-',
    };
    let bits = "rwxrwxrwx".chars().enumerate().map(|(at, letter)| if mode & (0o400 >> at) == 0 { '-' } else { letter });
    std::iter::once(first).chain(bits).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a float is cut to what the type can hold")]
fn time(seconds: f64) -> String {
    let time = Timestamp::from_microsecond((seconds * 1e6) as i64);
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_letters() {
        for (kind, mode, expected) in [
            (FileKind::File, 0o644, "-rw-r--r--"),
            (FileKind::Directory, 0o750, "drwxr-x---"),
            (FileKind::Symlink, 0o777, "Lrwxrwxrwx"),
        ] {
            assert_eq!(permissions(kind, mode), expected);
        }
        assert_eq!(time(1.5), "1970-01-01T00:00:01.5Z");
        assert_eq!(time(f64::MAX), "1970-01-01T00:00:00Z");
    }
}
