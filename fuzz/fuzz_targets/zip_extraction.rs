//! Any bytes: a zip file leaves its destination by no name and by no link, and its bounds hold.
#![no_main]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use gloveport_archive::{ArchiveLimits, zip::unpack};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const LIMITS: ArchiveLimits = ArchiveLimits { bytes: 64 * 1024, files: 20, ratio: 50, unsuspicious: 16 * 1024 };

static ROOT: LazyLock<TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("a directory for the fuzzer");
    fs::create_dir(root.path().join("outside")).expect("a directory beside the destination");
    root
});

fuzz_target!(|data: &[u8]| {
    let root = ROOT.path();
    let inside = fresh(root);
    let mut file = tempfile::tempfile().expect("a file for the input");
    file.write_all(data).expect("room for the input");
    let result = unpack(&file, &inside, &LIMITS);
    let (entries, bytes) = measure(&inside);
    assert!(entries <= LIMITS.files && bytes <= LIMITS.bytes, "{entries} {bytes}");
    if let Ok(summary) = result {
        assert!(summary.bytes <= LIMITS.bytes && summary.files <= LIMITS.files);
    }
    assert_eq!(fs::read_dir(root.join("outside")).expect("it is there").count(), 0);
    assert_eq!(fs::read_dir(root).expect("it is there").count(), 2);
});

/// An empty destination but for links that lead out.
fn fresh(root: &Path) -> PathBuf {
    let inside = root.join("inside");
    let _nothing_there = fs::remove_dir_all(&inside);
    fs::create_dir(&inside).expect("the destination");
    symlink("../outside", inside.join("a")).expect("a link out");
    symlink(root.join("outside"), inside.join("b")).expect("a link out");
    inside
}

/// Files and directories below, and the bytes of their contents. The planted links do not count.
fn measure(directory: &Path) -> (u64, u64) {
    let (mut entries, mut bytes) = (0, 0);
    for entry in fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("its metadata");
        if metadata.is_symlink() {
            continue;
        }
        entries += 1;
        if metadata.is_dir() {
            let below = measure(&entry.path());
            entries += below.0;
            bytes += below.1;
        } else {
            bytes += metadata.len();
        }
    }
    (entries, bytes)
}
