//! Copies and lists, row by row (local-and-cli-runtime B10).

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use crate::support::Fixture;

/// A directory of this machine with a file, a tree, a link and a FIFO.
fn source() -> tempfile::TempDir {
    let source = tempfile::tempdir().unwrap();
    let root = source.path();
    fs::create_dir_all(root.join("t/u/empty")).unwrap();
    fs::write(root.join("f"), "F").unwrap();
    fs::write(root.join("t/u/g.txt"), "G").unwrap();
    fs::set_permissions(root.join("f"), fs::Permissions::from_mode(0o751)).unwrap();
    let file = fs::File::options().write(true).open(root.join("f")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    symlink("g.txt", root.join("t/u/link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("p"), rustix::fs::Mode::RWXU).unwrap();
    source
}

/// All paths below a directory, with `/` behind directories and `@` behind links.
fn tree(root: &Path) -> Vec<String> {
    fn add(root: &Path, directory: &Path, paths: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            let mark = if kind.is_dir() {
                "/"
            } else if kind.is_symlink() {
                "@"
            } else {
                ""
            };
            paths.push(format!("{}{mark}", entry.path().strip_prefix(root).unwrap().display()));
            if kind.is_dir() {
                add(root, &entry.path(), paths);
            }
        }
    }
    let mut paths = Vec::new();
    add(root, root, &mut paths);
    paths.sort();
    paths
}

#[test]
fn every_row_of_copies_into_the_workspace_holds() {
    let source = source();
    let s = source.path();
    let all = ["t/", "t/u/", "t/u/empty/", "t/u/g.txt", "t/u/link"];
    let under = |prefix: &str| all.iter().map(|path| format!("{prefix}{path}")).collect::<Vec<_>>().join(" ");
    for (from, to, recursive, expected) in [
        ("f", "c1", false, "c1/ c1/f".to_owned()),
        ("f", "c2.txt", false, "c2.txt".to_owned()),
        ("f", "d", false, "d/f".to_owned()),
        ("f", "new/", false, "new/ new/f".to_owned()),
        ("f", "x1/y1", false, "x1/ x1/y1/ x1/y1/f".to_owned()),
        ("f", "x1/y2.txt", false, "x1/ x1/y2.txt".to_owned()),
        ("f", "", false, "f".to_owned()),
        ("f", "/workspace", false, "f".to_owned()),
        ("t", "tt", true, format!("tt/ {}", under("tt/"))),
        ("t", "t2.d", true, format!("t2.d/ {}", under("t2.d/"))),
        ("t/", "tz", true, "tz/ tz/u/ tz/u/empty/ tz/u/g.txt tz/u/link".to_owned()),
    ] {
        let fixture = Fixture::new();
        fs::create_dir(fixture.root.join("d")).unwrap();
        for _twice in 0..2 {
            let from = s.join("").display().to_string() + from;
            fixture.runtime.copy_to(Path::new(&from), to, recursive).unwrap();
            let found: Vec<_> = tree(&fixture.root).into_iter().filter(|path| path != "d/").collect();
            assert_eq!(found.join(" "), expected, "{from} {to}");
        }
    }
}

#[test]
fn copies_keep_modes_and_times_and_files_that_are_the_same_stay() {
    let source = source();
    let fixture = Fixture::new();
    fixture.runtime.copy_to(&source.path().join("f"), "c.txt", false).unwrap();
    let copied = fs::metadata(fixture.root.join("c.txt")).unwrap();
    assert_eq!((copied.mode() & 0o7777, copied.mtime()), (0o751, 1_000_000_000));
    assert_eq!(fs::read(fixture.root.join("c.txt")).unwrap(), b"F");
    fixture.runtime.copy_to(&fixture.root.join("c.txt"), "c.txt", false).unwrap();
    assert_eq!(fs::metadata(fixture.root.join("c.txt")).unwrap().ino(), copied.ino());
    // A link in the workspace is followed, and stays.
    fs::write(fixture.root.join("target"), "").unwrap();
    symlink("target", fixture.root.join("link")).unwrap();
    fixture.runtime.copy_to(&source.path().join("f"), "link", false).unwrap();
    assert_eq!(fs::read(fixture.root.join("target")).unwrap(), b"F");
    assert!(fs::symlink_metadata(fixture.root.join("link")).unwrap().is_symlink());
}

#[test]
fn copies_that_can_not_be_made_say_why() {
    let source = source();
    let s = source.path().display();
    let fixture = Fixture::new();
    let w = fixture.root.display();
    let top = fixture.root.parent().unwrap().display();
    fs::write(fixture.root.join("t.txt"), "").unwrap();
    symlink("/etc", fixture.root.join("out")).unwrap();
    let traversal = |path: &str, resolved: &str| {
        format!(
            "Invalid path traversal: {path}. Path resolves outside the workspace. Resolved: {resolved}, Workspace: {w}"
        )
    };
    for (from, to, recursive, expected) in [
        ("/nope", "d", false, "Source path '/nope' does not exist.".to_owned()),
        (&format!("{s}/t"), "d", false, format!("Source path '{s}/t' is not a valid file or directory.")),
        (&format!("{s}/p"), "d", false, format!("Source path '{s}/p' is not a valid file or directory.")),
        (&format!("{s}/f"), "../z", false, traversal("../z", &format!("{top}/z"))),
        (&format!("{s}/f"), "out/z", false, traversal("out/z", "/etc/z")),
        (&format!("{s}/f"), "/etc", false, format!("Invalid path: /etc. You can only work with files in {w}.")),
        (
            &format!("{s}/t"),
            "t.txt",
            true,
            format!("Unexpected error copying file: [Errno 17] File exists: '{w}/t.txt'"),
        ),
        (
            &format!("{w}"),
            "sub",
            true,
            format!("Unexpected error copying file: {w} cannot be copied into itself, to {w}/sub/ws"),
        ),
    ] {
        let error = fixture.runtime.copy_to(Path::new(from), to, recursive).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn every_row_of_copies_out_of_the_workspace_holds() {
    let fixture = Fixture::new();
    let (root, w) = (&fixture.root, fixture.root.display());
    fs::create_dir_all(root.join("d/sub/empty")).unwrap();
    fs::write(root.join("d/a.txt"), "a".repeat(10_000)).unwrap();
    fs::set_permissions(root.join("d/a.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::write(root.join("d/sub/b"), "b").unwrap();
    symlink("sub/b", root.join("d/inside")).unwrap();
    symlink("sub", root.join("d/directory")).unwrap();
    symlink("/etc/hostname", root.join("d/outside")).unwrap();
    symlink("nowhere", root.join("d/dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("d/fifo"), rustix::fs::Mode::RWXU).unwrap();
    for (path, expected) in [
        ("d", Ok(vec![("a.txt", 10_000), ("inside", 1), ("sub/b", 1)])),
        ("/workspace/d/sub", Ok(vec![("b", 1)])),
        ("d/a.txt", Ok(vec![("a.txt", 10_000)])),
        ("d/inside", Ok(vec![("b", 1)])),
        ("d/sub/empty", Ok(vec![])),
        ("missing", Err("Path not found: missing".to_owned())),
        (
            "d/outside",
            Err(format!(
                "Invalid path traversal: d/outside. Path resolves outside the workspace. Resolved: /etc/hostname, \
                 Workspace: {w}"
            )),
        ),
    ] {
        let packed = match (fixture.runtime.copy_from(path), expected) {
            (Ok(packed), Ok(expected)) => (packed, expected),
            (Err(error), Err(expected)) => {
                assert_eq!(error.to_string(), expected);
                continue;
            }
            other => panic!("{path}: {other:?}"),
        };
        let (packed, expected) = packed;
        let mut zip = zip::ZipArchive::new(fs::File::open(&packed).unwrap()).unwrap();
        let mut found = Vec::new();
        for index in 0..zip.len() {
            let mut entry = zip.by_index(index).unwrap();
            assert_eq!(entry.compression(), zip::CompressionMethod::Deflated);
            let name = entry.name().unwrap().into_owned();
            if name == "a.txt" {
                assert_eq!(entry.unix_mode().unwrap() & 0o777, 0o751);
                assert!(entry.compressed_size() < 100);
            }
            let length = io::copy(&mut entry, &mut io::sink()).unwrap();
            found.push((name, length));
        }
        let expected: Vec<_> = expected.into_iter().map(|(name, length)| (name.to_owned(), length)).collect();
        assert_eq!(found, expected, "{path}");
        let path = packed.to_path_buf();
        drop(packed);
        assert!(!path.exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_lists_holds() {
    let fixture = Fixture::new();
    let w = fixture.root.display().to_string();
    fs::create_dir(fixture.root.join("d")).unwrap();
    fs::write(fixture.root.join(".hidden"), "").unwrap();
    symlink("loop", fixture.root.join("loop")).unwrap();
    symlink("/etc", fixture.root.join("out")).unwrap();
    let all = format!("{w}/.hidden {w}/d {w}/loop {w}/out");
    for (path, expected) in [
        (None, Ok(all.as_str())),
        (Some("."), Ok(&all)),
        (Some("/workspace"), Ok(&all)),
        (Some("d"), Ok("")),
        (Some("missing"), Ok("")),
        (Some("loop"), Ok("")),
        (Some(".hidden"), Ok(&format!("{w}/.hidden"))),
        (
            Some("out"),
            Err(format!(
                "Invalid path traversal: out. Path resolves outside the workspace. Resolved: /etc, Workspace: {w}"
            )),
        ),
        (Some("/etc"), Err(format!("Invalid path: /etc. You can only work with files in {w}."))),
    ] {
        let found = fixture.runtime.list_files(path).map_err(|error| error.to_string());
        let found = found.map(|mut names| {
            names.sort();
            names.join(" ")
        });
        assert_eq!(found, expected.map(str::to_owned), "{path:?}");
    }
    fixture.runtime.close().await;
    for error in [
        fixture.runtime.list_files(None).unwrap_err(),
        fixture.runtime.copy_from("d").unwrap_err(),
        fixture.runtime.copy_to(Path::new("/etc/hostname"), "x", false).unwrap_err(),
    ] {
        assert_eq!(error.to_string(), "Runtime not initialized");
    }
}
