//! Zip files, out and in.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs::{self, File},
    io::{self, Cursor, Read as _, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    sync::atomic::AtomicBool,
};

use crate::support::{fifo, names, tree};
use gloveport_archive::{
    ArchiveError, ArchiveLimits, Summary,
    zip::{Plan, unpack, unpack_until},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

fn zipped(plan: &Plan) -> Vec<u8> {
    let mut bytes = Vec::new();
    let summary = plan.write_to(&mut bytes).unwrap();
    assert_eq!(summary, Summary { files: plan.files(), bytes: plan.bytes(), skipped: 0 });
    assert_eq!(bytes.len() as u64, plan.length());
    bytes
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A zip made by a library that does not question names, all entries stored.
fn made(entries: &[(&[u8], &[u8])]) -> File {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        writer.start_file_with_options(options.name(name)).unwrap();
        writer.write_all(content).unwrap();
    }
    file_of(&writer.finish().unwrap().into_inner())
}

#[test]
fn a_tree_is_packed_with_the_names_that_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    tree(&root);
    fs::write(directory.path().join("outside.txt"), "outside").unwrap();
    symlink("../outside.txt", root.join("link")).unwrap();
    symlink("/etc", root.join("directory link")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    symlink("nothing", root.join("dangling")).unwrap();
    fifo(&root.join("fifo"));
    let expected = ["a.txt", "link", "ü.txt", "deep/b/empty", "deep/b/large", "deep/c.txt"];
    for (plan, prefix) in [(Plan::of_contents(&root).unwrap(), ""), (Plan::of_directory(&root).unwrap(), "root/")] {
        let bytes = zipped(&plan);
        let mut archive = ZipArchive::new(Cursor::new(&bytes)).unwrap();
        let mut found: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        let mut expected: Vec<String> = expected.iter().map(|name| format!("{prefix}{name}")).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        for name in &expected {
            let mut content = Vec::new();
            let mut entry = archive.by_name(name).unwrap();
            assert_eq!(entry.compression(), CompressionMethod::Stored);
            entry.read_to_end(&mut content).unwrap();
            let path = root.join(name.strip_prefix(prefix).unwrap());
            assert_eq!(content, fs::read(path).unwrap(), "{name}");
        }
    }
}

#[test]
fn a_zip_without_files_has_22_bytes() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("empty")).unwrap();
    for plan in [Plan::empty(), Plan::of_contents(directory.path()).unwrap()] {
        assert_eq!(zipped(&plan), [b"PK\x05\x06".as_slice(), &[0; 18]].concat());
    }
}

#[test]
fn what_goes_out_comes_in_again() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    tree(&from);
    fs::create_dir(&to).unwrap();
    let plan = Plan::of_contents(&from).unwrap();
    let summary = unpack(&file_of(&zipped(&plan)), &to, &ArchiveLimits::default()).unwrap();
    assert_eq!(summary, Summary { files: 5, bytes: plan.bytes(), skipped: 0 });
    for name in ["a.txt", "ü.txt", "deep/b/empty", "deep/b/large", "deep/c.txt"] {
        assert_eq!(fs::read(from.join(name)).unwrap(), fs::read(to.join(name)).unwrap(), "{name}");
    }
    assert!(!to.join("no entries").exists(), "empty directories vanish");
}

#[test]
fn names_that_are_not_utf8_survive() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    let name = OsStr::from_bytes(b"caf\xe9 \xff");
    fs::write(from.join(name), "content").unwrap();
    unpack(&file_of(&zipped(&Plan::of_contents(&from).unwrap())), &to, &ArchiveLimits::default()).unwrap();
    assert_eq!(fs::read(to.join(name)).unwrap(), b"content");
}

#[test]
fn a_file_that_grows_is_cut_and_one_that_shrinks_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "0123456789").unwrap();
    let plan = Plan::of_contents(directory.path()).unwrap();
    fs::write(&path, "0123456789abcdef").unwrap();
    let mut archive = ZipArchive::new(Cursor::new(zipped(&plan))).unwrap();
    assert_eq!(io::read_to_string(archive.by_name("file").unwrap()).unwrap(), "0123456789");

    fs::write(&path, "01234").unwrap();
    let mut out = Vec::new();
    let error = plan.write_to(&mut out).unwrap_err();
    let shown = path.display();
    assert_eq!(
        error.to_string(),
        format!("`{shown}` became shorter while it was read: 10 bytes were expected, and it ended after 5")
    );
    assert!(ZipArchive::new(Cursor::new(out)).is_err(), "what was written is no zip");

    fs::remove_file(&path).unwrap();
    fifo(&path);
    let error = plan.write_to(io::sink()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read `{shown}`: it is no regular file any more"));
}

#[test]
fn a_reader_that_goes_away_is_an_error() {
    struct Gone;
    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = Plan::empty().write_to(Gone).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the archive: broken pipe");
}

#[test]
fn more_entries_than_16_bits_can_count_are_read_by_everybody() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..65_600 {
        // Links are made faster than files, and an inode can have fewer of them than there are entries.
        let first = directory.path().join((number / 30_000 * 30_000).to_string());
        let path = directory.path().join(number.to_string());
        if path == first { fs::write(path, "") } else { fs::hard_link(first, path) }.unwrap();
    }
    let bytes = zipped(&Plan::of_contents(directory.path()).unwrap());
    assert_eq!(ZipArchive::new(Cursor::new(&bytes)).unwrap().len(), 65_600);
    let to = tempfile::tempdir().unwrap();
    // Names that are left out cost no time.
    let absolute: Vec<String> = (0..65_600).map(|number| format!("/{number}")).collect();
    let entries: Vec<(&[u8], &[u8])> = absolute.iter().map(|name| (name.as_bytes(), b"".as_slice())).collect();
    let summary = unpack(&made(&entries), to.path(), &ArchiveLimits::default()).unwrap();
    assert_eq!(summary, Summary { files: 0, bytes: 0, skipped: 65_600 });
    let limits = ArchiveLimits { files: 65_599, ..ArchiveLimits::default() };
    let error = unpack(&file_of(&bytes), to.path(), &limits).unwrap_err();
    let expected = "the archive has more than 65599 files and directories (stopped after 0 files with 0 bytes)";
    assert_eq!(error.to_string(), expected);
}

/// Counts and forgets, so that large archives need no room.
struct Counter {
    length: u64,
    /// The last bytes, which have the directory.
    tail: Vec<u8>,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        self.tail.extend_from_slice(bytes);
        let excess = self.tail.len().saturating_sub(1024);
        self.tail.drain(..excess);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn large_files_and_offsets_have_the_planned_length() {
    let directory = tempfile::tempdir().unwrap();
    let large = File::create(directory.path().join("a large one")).unwrap();
    large.set_len((4 << 30) + 5).unwrap();
    fs::write(directory.path().join("behind"), "it").unwrap();
    let plan = Plan::of_contents(directory.path()).unwrap();
    let mut counter = Counter { length: 0, tail: Vec::new() };
    plan.write_to(&mut counter).unwrap();
    assert_eq!(counter.length, plan.length());
    // The library reads the directory at the end, and finds sizes and offsets.
    let mut whole = tempfile::tempfile().unwrap();
    io::Seek::seek(&mut whole, io::SeekFrom::Start(counter.length - counter.tail.len() as u64)).unwrap();
    whole.write_all(&counter.tail).unwrap();
    let archive = ZipArchive::new(whole).unwrap();
    assert_eq!(archive.by_index_data(0).unwrap().size(), (4 << 30) + 5);
    assert_eq!(archive.by_index_data(1).unwrap().header_start(), 30 + 11 + 20 + (4 << 30) + 5 + 24);
}

#[test]
fn python_reads_what_is_packed_and_its_zips_are_unpacked() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 to compare with");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    tree(&path("from"));
    fs::create_dir(path("by python")).unwrap();
    fs::create_dir(path("back")).unwrap();
    fs::write(path("ours.zip"), zipped(&Plan::of_contents(&path("from")).unwrap())).unwrap();
    let script = "
import sys, zipfile, os
ours, out, from_, theirs = sys.argv[1:]
with zipfile.ZipFile(ours) as z:
    assert z.testzip() is None
    z.extractall(out)
with zipfile.ZipFile(theirs, 'w', zipfile.ZIP_DEFLATED) as z:
    for base, dirs, files in os.walk(from_):
        for name in dirs + files:
            full = os.path.join(base, name)
            z.write(full, os.path.relpath(full, from_))
";
    let paths = [path("ours.zip"), path("by python"), path("from"), path("theirs.zip")];
    let output = Command::new("python3").args(["-c", script]).args(paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    unpack(&File::open(path("theirs.zip")).unwrap(), &path("back"), &ArchiveLimits::default()).unwrap();
    assert!(path("back/no entries").is_dir());
    for name in ["a.txt", "ü.txt", "deep/b/empty", "deep/b/large", "deep/c.txt"] {
        let expected = fs::read(path("from").join(name)).unwrap();
        assert_eq!(fs::read(path("by python").join(name)).unwrap(), expected, "{name}");
        assert_eq!(fs::read(path("back").join(name)).unwrap(), expected, "{name}");
    }
}

#[test]
fn hostile_names_are_left_out_and_strange_ones_are_kept() {
    let to = tempfile::tempdir().unwrap();
    let inside = to.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let file = made(&[
        (b"/absolute", b"1"),
        (b"../up", b"2"),
        (b"a/../../up", b"3"),
        (b"a/..", b"4"),
        (b"nul\0name", b"5"),
        (b".", b"6"),
        (b"a\\..\\..\\back", b"7"),
        (b"..dots../x..y", b"8"),
        (b"C:/windows", b"9"),
        (b"./good//name", b"10"),
        (b"directory/", b""),
    ]);
    let summary = unpack(&file, &inside, &ArchiveLimits::default()).unwrap();
    assert_eq!(summary, Summary { files: 4, bytes: 5, skipped: 6 });
    assert_eq!(
        names(to.path()),
        [
            "inside",
            "inside/..dots..",
            "inside/..dots../x..y",
            "inside/C:",
            "inside/C:/windows",
            "inside/a\\..\\..\\back",
            "inside/directory",
            "inside/good",
            "inside/good/name",
        ]
    );
}

#[test]
fn links_that_lead_out_are_not_written_through() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "old").unwrap();
    let to = tempfile::tempdir().unwrap();
    symlink(outside.path(), to.path().join("out")).unwrap();
    let target = outside.path().join("file");
    symlink(&target, to.path().join("link")).unwrap();
    let error =
        unpack(&made(&[(b"first", b"1"), (b"out/file", b"new")]), to.path(), &ArchiveLimits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`out` would be written outside of the destination (stopped after 1 files with 1 bytes)"
    );
    // A link that is itself the name is replaced.
    unpack(&made(&[(b"link", b"new")]), to.path(), &ArchiveLimits::default()).unwrap();
    assert_eq!(fs::read_to_string(to.path().join("link")).unwrap(), "new");
    assert!(!to.path().join("link").is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), "old");
    assert_eq!(names(outside.path()), ["file"]);
}

#[test]
fn a_link_in_an_archive_becomes_a_file_with_its_target_as_text() {
    let to = tempfile::tempdir().unwrap();
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link", "/etc", SimpleFileOptions::default()).unwrap();
    let file = file_of(&writer.finish().unwrap().into_inner());
    unpack(&file, to.path(), &ArchiveLimits::default()).unwrap();
    assert!(to.path().join("link").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(to.path().join("link")).unwrap(), "/etc");
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode_and_other_things_in_the_way_are_errors() {
    let to = tempfile::tempdir().unwrap();
    let path = |name: &str| to.path().join(name);
    fs::write(path("secret"), "old and longer").unwrap();
    fs::set_permissions(path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    unpack(&made(&[(b"secret", b"new")]), to.path(), &ArchiveLimits::default()).unwrap();
    assert_eq!(fs::read_to_string(path("secret")).unwrap(), "new");
    assert_eq!(fs::metadata(path("secret")).unwrap().permissions().mode() & 0o777, 0o600);

    fifo(&path("fifo"));
    fs::create_dir(path("directory")).unwrap();
    let in_the_way =
        |name: &str| unpack(&made(&[(name.as_bytes(), b"x")]), to.path(), &ArchiveLimits::default()).unwrap_err();
    for (name, reason) in [
        ("fifo", "`fifo` cannot be written: a FIFO is in the way"),
        ("directory", "`directory` cannot be written: a directory is in the way"),
        ("secret/x", "`secret` cannot be written: a file is in the way"),
    ] {
        assert_eq!(in_the_way(name).reason().to_string(), reason);
    }
    assert_eq!(names(to.path()), ["directory", "fifo", "secret"]);
}

fn bomb(megabytes: usize) -> File {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("small", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"small").unwrap();
    writer.start_file("zeros", SimpleFileOptions::default()).unwrap();
    for _ in 0..megabytes {
        writer.write_all(&vec![0; 1 << 20]).unwrap();
    }
    file_of(&writer.finish().unwrap().into_inner())
}

#[test]
fn bombs_are_refused_and_leave_no_half_of_a_file() {
    let limits = ArchiveLimits::default();
    let small = ArchiveLimits { bytes: 5_000_000, ..limits };
    let strict = ArchiveLimits { unsuspicious: 1_000_000, ..limits };
    for (name, limits, reason) in [
        ("bytes", small, "the contents of the archive are larger than 5000000 bytes"),
        ("ratio", strict, "`zeros` makes the contents more than 200 times as large as the archive, as a bomb would"),
    ] {
        let to = tempfile::tempdir().unwrap();
        fs::write(to.path().join("zeros"), "old").unwrap();
        let error = unpack(&bomb(20), to.path(), &limits).unwrap_err();
        assert_eq!(error.to_string(), format!("{reason} (stopped after 1 files with 5 bytes)"), "{name}");
        assert_eq!(names(to.path()), ["small", "zeros"]);
        assert_eq!(fs::read_to_string(to.path().join("zeros")).unwrap(), "old");
    }
    let to = tempfile::tempdir().unwrap();
    assert_eq!(unpack(&bomb(20), to.path(), &limits).unwrap().bytes, (20 << 20) + 5, "20 MB are no bomb");
}

#[test]
fn directories_on_the_way_count_as_well() {
    let to = tempfile::tempdir().unwrap();
    let deep = "d/".repeat(50) + "file";
    let limits = ArchiveLimits { files: 20, ..ArchiveLimits::default() };
    let error = unpack(&made(&[(deep.as_bytes(), b"x")]), to.path(), &limits).unwrap_err();
    assert_eq!(error.reason().to_string(), "the archive has more than 20 files and directories");
}

/// The bytes of a zip with one stored entry.
fn one_entry() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("name"), "content").unwrap();
    zipped(&Plan::of_contents(directory.path()).unwrap())
}

#[test]
fn damaged_archives_are_told_and_leave_nothing() {
    let good = one_entry();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let central = good.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    let end = good.len() - 22;
    let overlapping = with(&|bytes| {
        let record = bytes[central..end].to_vec();
        bytes.splice(end..end, record.iter().copied());
        let end = bytes.len() - 22;
        bytes[end + 8] = 2;
        bytes[end + 10] = 2;
        bytes[end + 12] = u8::try_from(2 * record.len()).unwrap();
    });
    let prefixed = [b"#!/bin/sh\n".as_slice(), &good].concat();
    for (case, bytes, expected) in [
        ("empty", Vec::new(), "this is not a zip file"),
        ("text", b"no zip".repeat(100), "this is not a zip file"),
        ("cut off", good[..end].to_vec(), "this is not a zip file"),
        ("good", good.clone(), ""),
        ("something before it", prefixed, ""),
        (
            "content",
            with(&|bytes| bytes[36] ^= 1),
            "the archive is damaged: the contents of `name` are not what they were",
        ),
        ("local record", with(&|bytes| bytes[0] = 0), "the archive is damaged: `name` is not where it must be"),
        (
            "directory",
            with(&|bytes| bytes[central] = 0),
            "the archive is damaged: a record of its directory is missing",
        ),
        ("overlap", overlapping, "the archive is damaged: its entries overlap"),
        ("encrypted", with(&|bytes| bytes[central + 8] |= 1), "`name` is encrypted, which is not unpacked"),
        (
            "method",
            with(&|bytes| bytes[central + 10] = 99),
            "`name` is compressed in a way that is not known, which is not unpacked",
        ),
        (
            "too many entries",
            with(&|bytes| bytes[end + 10] = 9),
            "the archive is damaged: its directory is too short for its entries",
        ),
        (
            "a size behind the end",
            with(&|bytes| bytes[central + 20] = 200),
            "the archive is damaged: its entries overlap",
        ),
    ] {
        let to = tempfile::tempdir().unwrap();
        let result = unpack(&file_of(&bytes), to.path(), &ArchiveLimits::default());
        let text = result.as_ref().err().map(|error| error.reason().to_string()).unwrap_or_default();
        assert_eq!(text, expected, "{case}");
        let expected = if result.is_ok() { vec!["name".to_owned()] } else { Vec::new() };
        assert_eq!(names(to.path()), expected, "{case}");
    }
}

#[test]
fn nothing_is_written_after_it_was_cancelled() {
    let to = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(true);
    let error = unpack_until(&file_of(&one_entry()), to.path(), &ArchiveLimits::default(), &stop).unwrap_err();
    assert_eq!(error.to_string(), "unpacking was cancelled (stopped after 0 files with 0 bytes)");
    assert_eq!(names(to.path()), Vec::<String>::new());
}

#[test]
fn a_missing_destination_is_told() {
    let error = unpack(&file_of(&one_entry()), Path::new("/nothing/here"), &ArchiveLimits::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Destination { .. }));
    assert_eq!(error.to_string(), "cannot unpack into `/nothing/here`: No such file or directory (os error 2)");
}
