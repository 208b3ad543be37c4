//! Trees of files to pack.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path};

/// A tree with nested, empty and larger files, a name that is not ASCII, and a directory without entries.
pub(crate) fn tree(root: &Path) {
    fs::create_dir_all(root.join("deep/b")).unwrap();
    fs::create_dir(root.join("no entries")).unwrap();
    fs::write(root.join("a.txt"), "a\n").unwrap();
    fs::write(root.join("ü.txt"), "umlaut").unwrap();
    fs::write(root.join("deep/c.txt"), "c").unwrap();
    fs::write(root.join("deep/b/empty"), "").unwrap();
    let large: Vec<u8> = (0..1_000_003_u32).map(|number| number.to_le_bytes()[(number % 3) as usize]).collect();
    fs::write(root.join("deep/b/large"), large).unwrap();
}

pub(crate) fn fifo(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_bits_truncate(0o600),
        0,
    )
    .unwrap();
}

/// Everything below a directory, sorted.
pub(crate) fn names(root: &Path) -> Vec<String> {
    let (mut names, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            }
            names.push(entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        }
    }
    names.sort();
    names
}
