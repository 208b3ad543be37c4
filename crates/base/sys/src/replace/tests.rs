use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use rustix::fs::{FileType, Mode, XattrFlags};
use tempfile::TempDir;

use super::*;

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_new_file_gets_the_mode_and_owner_that_were_asked_for() {
    let directory = directory();
    let path = directory.path().join("new");
    let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    write(&path, b"text", NewFile { mode: Some(0o664), owner: Some(owner) }).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.uid(), metadata.gid()), (0o664, owner.0, owner.1));
    assert_eq!(fs::read(&path).unwrap(), b"text");
    assert_eq!(names(directory.path()), ["new"]);
}

#[test]
fn a_replaced_file_keeps_its_mode_and_extended_attributes_and_is_another_file() {
    let directory = directory();
    let path = directory.path().join("old");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    rustix::fs::setxattr(&path, "user.note", b"kept", XattrFlags::empty()).unwrap();
    let before = fs::metadata(&path).unwrap();
    let reader = File::open(&path).unwrap();
    write(&path, b"new content", NewFile { mode: Some(0o600), owner: None }).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.mode(), before.mode());
    assert_ne!(after.ino(), before.ino());
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, "user.note", &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
    assert_eq!(io::read_to_string(reader).unwrap(), "old", "who had the old file open reads the old content");
    assert_eq!(fs::read(&path).unwrap(), b"new content");
}

#[test]
fn a_file_with_two_names_keeps_both() {
    let directory = directory();
    let (path, other) = (directory.path().join("a"), directory.path().join("b"));
    fs::write(&path, "a long old content").unwrap();
    fs::hard_link(&path, &other).unwrap();
    write(&path, b"new", NewFile::default()).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
    assert_eq!(names(directory.path()), ["a", "b"]);
}

#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let directory = directory();
    let path = directory.path().join("link");
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::write(directory.path().join("sub/target"), "old").unwrap();
    symlink("sub/target", &path).unwrap();
    write(&path, b"new", NewFile::default()).unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read(directory.path().join("sub/target")).unwrap(), b"new");
    let dangling = directory.path().join("dangling");
    symlink("sub/missing", &dangling).unwrap();
    write(&dangling, b"made", NewFile::default()).unwrap();
    assert_eq!(fs::read(directory.path().join("sub/missing")).unwrap(), b"made");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once_and_nothing_is_left() {
    let directory = directory();
    let (fifo, socket, turning) =
        (directory.path().join("fifo"), directory.path().join("socket"), directory.path().join("loop"));
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    symlink("loop", &turning).unwrap();
    let errno = |error: io::Error| error.raw_os_error().unwrap();
    for (path, expected) in [
        (fifo.as_path(), Errno::INVAL),
        (&socket, Errno::INVAL),
        (Path::new("/dev/null"), Errno::INVAL),
        (directory.path(), Errno::ISDIR),
        (&turning, Errno::LOOP),
        (&directory.path().join("missing/file"), Errno::NOENT),
    ] {
        let found = errno(write(path, b"x", NewFile::default()).unwrap_err());
        assert_eq!(found, expected.raw_os_error(), "{}", path.display());
        if !path.ends_with("file") {
            let found = errno(read(path, 10).unwrap_err());
            assert_eq!(found, expected.raw_os_error(), "{}", path.display());
        }
    }
    assert_eq!(special_kind(&fifo), Some("FIFO"));
    assert_eq!(special_kind(Path::new("/dev/null")), Some("character device"));
    assert_eq!(special_kind(directory.path()), None);
    assert_eq!(names(directory.path()), ["fifo", "loop", "socket"]);
}

#[test]
fn a_replacement_that_is_dropped_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("file");
    fs::write(&path, "old").unwrap();
    let mut replacement = Replacement::begin(&path, NewFile::default()).unwrap();
    replacement.write_all(b"half of the new").unwrap();
    drop(replacement);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(directory.path()), ["file"]);
}

#[test]
fn a_file_that_must_be_new_replaces_nothing_not_even_what_came_meanwhile() {
    let directory = directory();
    let path = directory.path().join("file");
    let begin = || {
        let mut replacement = Replacement::begin(&path, NewFile::default()).unwrap();
        replacement.write_all(b"new").unwrap();
        replacement
    };
    let early = begin();
    begin().commit_new().unwrap();
    fs::write(&path, "mine").unwrap();
    for replacement in [early, begin()] {
        assert_eq!(replacement.commit_new().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
    assert_eq!(names(directory.path()), ["file"]);
}

#[test]
fn a_file_larger_than_the_limit_is_not_read() {
    let directory = directory();
    let path = directory.path().join("file");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    assert_eq!(read(&path, 4).unwrap_err().raw_os_error(), Some(Errno::FBIG.raw_os_error()));
    assert!(!read(Path::new("/proc/self/status"), 100_000).unwrap().is_empty(), "files of the kernel have no length");
}

#[test]
fn left_over_files_of_a_process_that_is_gone_are_removed_and_those_of_living_ones_stay() {
    let directory = directory();
    let path = directory.path().join("file");
    let mut replacement = Replacement::begin(&path, NewFile::default()).unwrap();
    replacement.write_all(b"x").unwrap();
    assert_eq!(names(directory.path()).len(), 1);
    remove_leftovers().unwrap();
    assert_eq!(names(directory.path()).len(), 1, "this process lives");
    replacement.commit().unwrap();
    assert_eq!(names(directory.path()), ["file"]);

    // A journal without a lock is what a killed process leaves.
    let orphan = directory.path().join(".gloveport-0123456789abcdef.tmp");
    fs::write(&orphan, "x").unwrap();
    let innocent = directory.path().join("innocent");
    fs::write(&innocent, "x").unwrap();
    let journals = crate::private::directory().unwrap();
    let journal = journals.join(format!("test-{}", std::process::id()));
    let mut content = vec![0; 3 * 4096];
    for (slot, path) in [(0, &innocent), (2, &orphan)] {
        let bytes = path.as_os_str().as_encoded_bytes();
        content[slot * 4096..slot * 4096 + bytes.len()].copy_from_slice(bytes);
    }
    fs::write(&journal, content).unwrap();
    remove_leftovers().unwrap();
    assert_eq!(names(directory.path()), ["file", "innocent"]);
    assert!(!journal.exists());
}
