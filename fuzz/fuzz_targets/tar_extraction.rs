//! Any bytes: a tar stream leaves its destination by no name and by no link, brings no rights along, and its bounds hold.
#![no_main]

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use gloveport_archive::{
    ArchiveLimits,
    tar::{Origin, unpack},
};
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
    let mut stream = data.to_vec();
    mend(&mut stream);
    if let Ok(summary) = unpack(stream.as_slice(), &inside, Origin::Foreign, &LIMITS) {
        assert!(summary.bytes <= LIMITS.bytes && summary.files <= LIMITS.files);
    }
    let (entries, bytes) = measure(&inside);
    assert!(entries <= LIMITS.files && bytes <= LIMITS.bytes, "{entries} {bytes}");
    assert_eq!(fs::read_dir(root.join("outside")).expect("it is there").count(), 0);
    assert_eq!(fs::read_dir(root).expect("it is there").count(), 2);
});

/// Makes the checksums of headers right, which no fuzzer guesses.
fn mend(stream: &mut [u8]) {
    for block in stream.chunks_exact_mut(512) {
        if &block[257..262] == b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

/// An empty destination but for links that lead out.
fn fresh(root: &Path) -> PathBuf {
    let inside = root.join("inside");
    open_up(&inside);
    let _nothing_there = fs::remove_dir_all(&inside);
    fs::create_dir(&inside).expect("the destination");
    symlink("../outside", inside.join("a")).expect("a link out");
    symlink(root.join("outside"), inside.join("b")).expect("a link out");
    inside
}

/// Streams take rights away from directories, too.
fn open_up(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if directory.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        let _not_ours = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            open_up(&entry.path());
        }
    }
}

/// Files and directories below, and the bytes of their contents, each file one time. The planted links do not count.
fn measure(directory: &Path) -> (u64, u64) {
    let (mut entries, mut bytes) = (0, 0);
    open_up(directory);
    for entry in fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        let metadata = entry.path().symlink_metadata().expect("its metadata");
        if metadata.is_symlink() {
            continue;
        }
        entries += 1;
        assert_eq!(metadata.mode() & 0o6000, 0, "{}", entry.path().display());
        if metadata.is_dir() {
            let below = measure(&entry.path());
            entries += below.0;
            bytes += below.1;
        } else {
            bytes += metadata.len() / metadata.nlink().max(1);
        }
    }
    (entries, bytes)
}
