//! The directory that an archive is of: the one that was asked for, or the only repository in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// How deep repositories are looked for.
const DEPTH: usize = 3;
/// Most directories that are looked at.
const DIRECTORIES: usize = 10_000;
/// Directories of other people's code.
const FOREIGN: [&str; 4] = ["node_modules", "venv", "site-packages", "vendor"];

/// The directory that an archive is of.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    /// Whether a repository begins here.
    pub(super) is_repository: bool,
}

/// Looks for it. It blocks.
pub(super) fn of(path: PathBuf) -> Root {
    if is_repository(&path) {
        return Root { path, is_repository: true };
    }
    let (mut found, mut looked) = (Vec::new(), 0);
    let mut level = vec![path.clone()];
    for _depth in 0..DEPTH {
        let mut next = Vec::new();
        for directory in level {
            for place in directories(&directory) {
                looked += 1;
                if looked > DIRECTORIES || found.len() > 1 {
                    return Root { path, is_repository: false };
                }
                if is_repository(&place) {
                    found.push(place);
                } else {
                    next.push(place);
                }
            }
        }
        level = next;
    }
    match (found.pop(), found.pop()) {
        (Some(only), None) => Root { path: only, is_repository: true },
        _ => Root { path, is_repository: false },
    }
}

fn directories(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            !name.starts_with('.') && !FOREIGN.contains(&&*name)
        })
        // A link to a directory is none.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

fn is_repository(path: &Path) -> bool {
    fs::symlink_metadata(path.join(".git")).is_ok()
}
