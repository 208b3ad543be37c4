//! Tar streams, out and in.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write as _,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
    },
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use crate::support::{fifo, names, tree};
use gloveport_archive::{
    ArchiveLimits, Summary,
    tar::{Origin, pack, unpack},
};
use tar::{EntryType, Header};

fn packed(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(path, &mut bytes).unwrap();
    assert_eq!(bytes.len() % 512, 0);
    bytes
}

/// Name, kind and mode, number of names, time and contents of everything below a directory.
fn description(root: &Path) -> Vec<String> {
    let mut all = vec![String::new()];
    all.extend(names_of(root));
    all.into_iter()
        .map(|name| {
            let path = root.join(OsStr::from_bytes(&unescaped(&name)));
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_file() {
                format!("{:?}", crc32fast::hash(&fs::read(&path).unwrap()))
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else {
                String::new()
            };
            let links = if metadata.is_file() { metadata.nlink() } else { 0 };
            let (mode, owner) = (metadata.mode(), (metadata.uid(), metadata.gid()));
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            format!("{name} {mode:o} {owner:?} {links} {modified:?} {content}")
        })
        .collect()
}

fn names_of(root: &Path) -> Vec<String> {
    let (mut names, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                directories.push(path.clone());
            }
            names.push(path.strip_prefix(root).unwrap().as_os_str().as_bytes().escape_ascii().to_string());
        }
    }
    names.sort();
    names
}

fn unescaped(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'\\' && tail.first() == Some(&b'x') {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&tail[1..3]).unwrap(), 16).unwrap());
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

fn rich_tree(root: &Path) {
    tree(root);
    let long = "long name ".repeat(20);
    fs::create_dir_all(root.join(&long).join(&long)).unwrap();
    fs::write(root.join(&long).join(&long).join("file"), "deep").unwrap();
    symlink(Path::new(&long).join(&long).join("file"), root.join("long link")).unwrap();
    symlink("/nowhere/at/all", root.join("dangling")).unwrap();
    fs::hard_link(root.join("a.txt"), root.join("deep/same as a")).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"caf\xe9")), "latin").unwrap();
    fs::set_permissions(root.join("deep/c.txt"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(root.join("no entries"), fs::Permissions::from_mode(0o1770)).unwrap();
    fs::set_permissions(root.join("deep/b"), fs::Permissions::from_mode(0o500)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_600_000_000, 123_456_789);
    File::open(root.join("a.txt")).unwrap().set_modified(time).unwrap();
    File::open(root.join("deep/b")).unwrap().set_modified(time).unwrap();
    File::open(root).unwrap().set_modified(time - Duration::from_secs(1_700_000_000)).unwrap();
}

#[test]
fn a_tree_goes_out_and_comes_in_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    rich_tree(&from);
    fs::create_dir(&to).unwrap();
    let before = description(&from);
    let summary = unpack(packed(&from).as_slice(), &to, Origin::Trusted, &ArchiveLimits::default()).unwrap();
    assert_eq!(description(&to), before);
    assert_eq!(summary.files, 10);
    // And once more over what is there.
    unpack(packed(&from).as_slice(), &to, Origin::Trusted, &ArchiveLimits::default()).unwrap();
    assert_eq!(description(&to), before);
}

#[test]
fn gnu_tar_reads_what_is_packed_and_its_streams_are_unpacked() {
    if Command::new("tar").arg("--version").output().is_err() {
        eprintln!("skipped: there is no tar to compare with");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    rich_tree(&path("from"));
    let before = description(&path("from"));
    fs::create_dir(path("by tar")).unwrap();
    fs::write(path("ours.tar"), packed(&path("from"))).unwrap();
    let run = |arguments: &[&OsStr]| {
        let output = Command::new("tar").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    run(&["-xpf".as_ref(), path("ours.tar").as_ref(), "-C".as_ref(), path("by tar").as_ref()]);
    assert_eq!(description(&path("by tar")), before);
    for format in ["--format=gnu", "--format=pax"] {
        let to = path(format);
        fs::create_dir(&to).unwrap();
        let stream =
            run(&[format.as_ref(), "-cf".as_ref(), "-".as_ref(), "-C".as_ref(), path("from").as_ref(), ".".as_ref()]);
        unpack(stream.as_slice(), &to, Origin::Trusted, &ArchiveLimits::default()).unwrap();
        // The format of GNU has whole seconds.
        let exact = format == "--format=pax";
        let seconds = |list: Vec<String>| -> Vec<String> {
            let nanoseconds = |line: String| match (exact, line.rsplit_once(", ")) {
                (false, Some((start, end))) => {
                    format!("{start} {}", end.trim_start_matches(|c: char| c.is_ascii_digit()))
                }
                _ => line,
            };
            list.into_iter().map(nanoseconds).collect()
        };
        assert_eq!(seconds(description(&to)), seconds(before.clone()), "{format}");
    }
}

#[test]
fn a_single_file_is_one_entry_and_special_files_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "content").unwrap();
    fifo(&directory.path().join("fifo"));
    let mut bytes = Vec::new();
    assert_eq!(pack(&file, &mut bytes).unwrap(), Summary { files: 1, bytes: 7, skipped: 0 });
    let to = tempfile::tempdir().unwrap();
    unpack(bytes.as_slice(), to.path(), Origin::Trusted, &ArchiveLimits::default()).unwrap();
    assert_eq!(names(to.path()), ["file"]);
    let to = tempfile::tempdir().unwrap();
    unpack(packed(directory.path()).as_slice(), to.path(), Origin::Trusted, &ArchiveLimits::default()).unwrap();
    assert_eq!(names(to.path()), ["file"]);
}

#[test]
fn every_cut_of_a_stream_is_noticed_and_leaves_no_half_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("one"), vec![1; 700]).unwrap();
    fs::write(directory.path().join("two"), vec![2; 700]).unwrap();
    let stream = packed(directory.path());
    for length in (0..stream.len() - 1024).step_by(100) {
        let to = tempfile::tempdir().unwrap();
        let error = unpack(&stream[..length], to.path(), Origin::Trusted, &ArchiveLimits::default()).unwrap_err();
        assert_eq!(error.reason().to_string(), "the archive is damaged: it ends too early", "{length}");
        for name in names(to.path()) {
            assert_eq!(fs::read(to.path().join(&name)).unwrap().len(), 700, "{name} {length}");
        }
    }
}

/// A header that no honest program would write.
fn header(name: &str, kind: EntryType, link: &str, size: u64) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[test]
fn hostile_streams_change_nothing_outside() {
    use EntryType::{Block, Char, Fifo, Link, Regular, Symlink};
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "old").unwrap();
    let out = outside.path().to_str().unwrap();
    let escapes = |name: &str| format!("`{name}` would be written outside of the destination");
    let out_file = format!("{out}/file");
    let content = |name: &str| [header(name, Regular, "", 3), vec![b'x'; 3], vec![0; 509]].concat();
    for (case, stream, reason) in [
        ("absolute", content(&format!("{out}/new")), escapes(&format!("{out}/new"))),
        ("up", content("a/../../new"), escapes("a/../../new")),
        ("through a link", [header("l", Symlink, out, 0), content("l/new")].concat(), escapes("l")),
        ("through a relative link", [header("l", Symlink, "..", 0), content("l/new")].concat(), escapes("l")),
        ("hard link out", header("h", Link, &out_file, 0), escapes("h")),
        ("hard link up", header("h", Link, "../file", 0), escapes("h")),
        (
            "hard link through a link",
            [header("l", Symlink, out, 0), header("h", Link, "l/file", 0)].concat(),
            escapes("h"),
        ),
        ("device", header("null", Char, "", 0), "`null` is a device, which is not unpacked".into()),
        ("block device", header("disk", Block, "", 0), "`disk` is a device, which is not unpacked".into()),
        ("fifo", header("pipe", Fifo, "", 0), "`pipe` is a FIFO, which is not unpacked".into()),
        ("sparse", header("s", EntryType::GNUSparse, "", 0), "`s` is a sparse file, which is not unpacked".into()),
        (
            "no header",
            vec![b'x'; 512],
            "the archive is damaged: it is no tar stream, or a header of it is damaged".into(),
        ),
        (
            "endless name",
            header("n", EntryType::GNULongName, "", 1 << 40),
            "the archive is damaged: a name or an extended header is too long".into(),
        ),
    ] {
        let to = tempfile::tempdir().unwrap();
        let inside = to.path().join("inside");
        fs::create_dir(&inside).unwrap();
        let stream = [stream, vec![0; 1024]].concat();
        let error = unpack(stream.as_slice(), &inside, Origin::Trusted, &ArchiveLimits::default()).unwrap_err();
        assert_eq!(error.reason().to_string(), reason, "{case}");
        assert_eq!(names(outside.path()), ["file"], "{case}");
        assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "old", "{case}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "{case}");
    }
}

#[test]
fn a_file_over_a_link_replaces_the_link_and_one_over_a_fifo_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("file");
    fs::write(&target, "old").unwrap();
    let stream = [
        header("l", EntryType::Symlink, target.to_str().unwrap(), 0),
        header("l", EntryType::Regular, "", 0),
        vec![0; 1024],
    ]
    .concat();
    let to = tempfile::tempdir().unwrap();
    unpack(stream.as_slice(), to.path(), Origin::Trusted, &ArchiveLimits::default()).unwrap();
    assert!(to.path().join("l").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(&target).unwrap(), "old");
    fifo(&to.path().join("pipe"));
    let stream = [header("pipe", EntryType::Regular, "", 0), vec![0; 1024]].concat();
    let error = unpack(stream.as_slice(), to.path(), Origin::Trusted, &ArchiveLimits::default()).unwrap_err();
    assert_eq!(error.reason().to_string(), "`pipe` cannot be written: a FIFO is in the way");
}

#[test]
fn files_of_another_system_bring_no_rights_along() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    for path in [&from, &to] {
        fs::create_dir_all(path.join("there")).unwrap();
    }
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&to, 0o700);
    mode(&to.join("there"), 0o755);
    for (name, bits) in [("setuid", 0o4755), ("setgid", 0o2755), ("plain", 0o640)] {
        fs::write(from.join(name), "program").unwrap();
        mode(&from.join(name), bits);
    }
    fs::create_dir(from.join("new")).unwrap();
    mode(&from.join("new"), 0o3777);
    mode(&from.join("there"), 0o2777);
    mode(&from, 0o1777);
    let mut stream = packed(&from);
    if rustix::process::geteuid().is_root() {
        // The owner that the stream names is root of the sandbox or anybody else: none of it counts.
        std::os::unix::fs::chown(from.join("setuid"), Some(4242), Some(4242)).unwrap();
        mode(&from.join("setuid"), 0o4755);
        stream = packed(&from);
    }
    unpack(stream.as_slice(), &to, Origin::Foreign, &ArchiveLimits::default()).unwrap();
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for (name, bits) in
        [("", 0o755), ("there", 0o755), ("new", 0o777), ("setuid", 0o755), ("setgid", 0o755), ("plain", 0o640)]
    {
        let metadata = to.join(name).metadata().unwrap();
        assert_eq!(format!("{:o}", metadata.mode() & 0o7777), format!("{bits:o}"), "{name}");
        assert_eq!((metadata.uid(), metadata.gid()), (user, group), "{name}");
    }
}

#[test]
fn bounds_hold_for_what_arrives() {
    let directory = tempfile::tempdir().unwrap();
    tree(directory.path());
    let stream = packed(directory.path());
    for (limits, reason) in [
        (
            ArchiveLimits { bytes: 500_000, ..ArchiveLimits::default() },
            "the contents of the archive are larger than 500000 bytes",
        ),
        (ArchiveLimits { files: 3, ..ArchiveLimits::default() }, "the archive has more than 3 files and directories"),
    ] {
        let to = tempfile::tempdir().unwrap();
        let error = unpack(stream.as_slice(), to.path(), Origin::Trusted, &limits).unwrap_err();
        assert_eq!(error.reason().to_string(), reason);
        assert!(!to.path().join("deep/b/large").exists());
    }
}

#[test]
fn a_full_disk_is_told_and_leaves_no_half_of_a_file() {
    let to = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&OsStr]| Command::new("mount").args(arguments).output();
    let options: [&OsStr; 5] =
        ["-t".as_ref(), "tmpfs".as_ref(), "-osize=64k".as_ref(), "none".as_ref(), to.path().as_ref()];
    if !mount(&options).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut file = File::create(directory.path().join("too large")).unwrap();
    file.write_all(&vec![7; 200_000]).unwrap();
    let result = unpack(packed(directory.path()).as_slice(), to.path(), Origin::Trusted, &ArchiveLimits::default());
    let left = names(to.path());
    assert!(Command::new("umount").arg(to.path()).status().unwrap().success());
    let expected =
        "cannot write `too large`: No space left on device (os error 28) (stopped after 0 files with 0 bytes)";
    assert_eq!(result.unwrap_err().to_string(), expected);
    assert_eq!(left, Vec::<String>::new());
}
