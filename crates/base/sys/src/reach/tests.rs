use std::os::unix::fs::symlink;

use rustix::io::Errno;

use super::*;

struct Place {
    directory: tempfile::TempDir,
    bounds: Bounds,
}

/// `inside/` with a file, a directory and links of all kinds, beside `outside/`.
fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for name in ["inside/sub", "outside"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("inside/file"), "in").unwrap();
    fs::write(root.join("outside/file"), "out").unwrap();
    fs::hard_link(root.join("outside/file"), root.join("inside/hard")).unwrap();
    let real = fs::canonicalize(root).unwrap();
    symlink("file", root.join("inside/relative")).unwrap();
    symlink(real.join("inside/file"), root.join("inside/absolute")).unwrap();
    symlink("../inside/sub", root.join("inside/around")).unwrap();
    symlink("../outside", root.join("inside/out")).unwrap();
    symlink("loop", root.join("inside/loop")).unwrap();
    symlink("/proc/self/root", root.join("inside/magic")).unwrap();
    symlink("sub/new", root.join("inside/dangling")).unwrap();
    let bounds = Bounds::new(&root.join("inside")).unwrap();
    Place { directory, bounds }
}

fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error()
}

#[test]
fn links_are_followed_wherever_they_come_back_and_nothing_is_opened_out_of_bounds() {
    for by_kernel in [true, false] {
        let Place { directory, mut bounds } = place();
        if !by_kernel {
            bounds = bounds.step_by_step();
        }
        let root = bounds.path().to_owned();
        let reach = Reach::Beneath(Arc::new(bounds));
        let read = |path: &str| match reach.open_to_read(&root.join(path)) {
            Ok(file) => Ok(io::read_to_string(file).unwrap()),
            Err(error) => Err(error.raw_os_error().unwrap()),
        };
        let failed = |errno: Errno| Err(errno.raw_os_error());
        for (path, expected) in [
            ("file", Ok("in".to_owned())),
            ("relative", Ok("in".to_owned())),
            ("absolute", Ok("in".to_owned())),
            ("around/../file", Ok("in".to_owned())),
            ("missing/../file", Ok("in".to_owned())),
            ("magic/../file", failed(Errno::XDEV)),
            ("out/file", failed(Errno::XDEV)),
            ("../outside/file", failed(Errno::XDEV)),
            ("magic/etc/passwd", failed(Errno::XDEV)),
            ("/etc/passwd", failed(Errno::XDEV)),
            ("loop", failed(Errno::LOOP)),
            ("missing", failed(Errno::NOENT)),
            ("sub", failed(Errno::ISDIR)),
            ("", failed(Errno::ISDIR)),
        ] {
            assert_eq!(read(path), expected, "{path} {by_kernel}");
        }
        let through_proc = format!("/proc/self/root{}/file", root.display());
        assert_eq!(read(&through_proc), Ok("in".to_owned()), "where it leads counts, not how");
        drop(directory);
    }
}

#[test]
fn a_file_with_other_names_gets_a_new_one_and_the_others_keep_the_old() {
    let Place { directory, bounds } = place();
    let reach = Reach::Beneath(Arc::new(bounds));
    let path = directory.path().join("inside/hard");
    reach.write(&path, b"new", NewFile::default()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::read_to_string(directory.path().join("outside/file")).unwrap(), "out");
}

#[test]
fn files_are_written_beneath_and_links_stay_links() {
    let Place { directory, bounds } = place();
    let reach = Reach::Beneath(Arc::new(bounds));
    let inside = directory.path().join("inside");
    for (path, target, expected) in [
        ("relative", "inside/file", Ok(())),
        ("dangling", "inside/sub/new", Ok(())),
        ("out/file", "outside/file", Err(Errno::XDEV)),
        ("sub", "inside/sub", Err(Errno::ISDIR)),
        ("", "inside", Err(Errno::ISDIR)),
        ("missing/file", "inside/missing", Err(Errno::NOENT)),
    ] {
        let written = reach.write(&inside.join(path), b"text", NewFile::default());
        let written = written.map_err(|error| errno(&error).unwrap());
        assert_eq!(written, expected.map_err(Errno::raw_os_error), "{path}");
        if expected.is_ok() {
            assert_eq!(fs::read_to_string(directory.path().join(target)).unwrap(), "text");
            assert!(fs::symlink_metadata(inside.join(path)).unwrap().is_symlink());
        }
    }
    assert_eq!(fs::read_to_string(directory.path().join("outside/file")).unwrap(), "out");
    let left: Vec<_> = reach.entries(&inside).unwrap().map(|entry| entry.unwrap().name).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".gloveport")), "{left:?}");
}

#[test]
fn directories_are_made_beneath_and_what_is_in_the_way_is_named() {
    let Place { directory, bounds } = place();
    let root = bounds.path().to_owned();
    bounds.make_directories(&root.join("around/a/b")).unwrap();
    assert!(root.join("sub/a/b").is_dir());
    for (path, at, expected) in [
        ("file", "file", Errno::EXIST),
        ("file/x", "file/x", Errno::NOTDIR),
        ("out/x", "../outside/x", Errno::XDEV),
        ("../x", "../x", Errno::XDEV),
    ] {
        let Obstacle { path: found, source } = bounds.make_directories(&root.join(path)).unwrap_err();
        assert_eq!(errno(&source), Some(expected.raw_os_error()), "{path}");
        assert_eq!(found, bounds.resolve(&root.join(at)).unwrap());
    }
    assert_eq!(fs::read_dir(directory.path().join("outside")).unwrap().count(), 1);
}

#[test]
fn a_directory_is_listed_alike_by_its_path_and_by_its_descriptor() {
    let Place { directory, bounds } = place();
    let inside = directory.path().join("inside");
    let listed = |reach: &Reach| {
        let entries = reach.entries(&inside).unwrap().map(Result::unwrap);
        let mut entries: Vec<_> = entries.map(|entry| (entry.name, entry.kind)).collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        entries
    };
    let confined = Reach::Beneath(Arc::new(bounds));
    assert_eq!(listed(&confined), listed(&Reach::Anywhere));
    assert_eq!(listed(&confined).len(), 10);
    assert_eq!(errno(&confined.entries(&inside.join("out")).unwrap_err()), Some(Errno::XDEV.raw_os_error()));
}
