use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use super::*;

const OTHER: u32 = 4_242;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn owner_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

#[test]
fn missing_directories_are_made_if_that_is_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a/../a/b");
    assert_eq!(directory(&path, Missing::Refused).unwrap_err().kind(), io::ErrorKind::NotFound);
    let held = directory(&path, Missing::Made(0o700)).unwrap();
    assert_eq!(fs::canonicalize(path_of(&held)).unwrap(), fs::canonicalize(root.path()).unwrap().join("a/b"));
    fs::write(root.path().join("f"), "").unwrap();
    let through_a_file = directory(&root.path().join("f/x"), Missing::Made(0o700)).unwrap_err();
    assert_eq!(through_a_file.kind(), io::ErrorKind::NotADirectory);
}

#[test]
fn links_of_this_user_are_followed_and_a_circle_ends() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    symlink("a/b", root.path().join("relative")).unwrap();
    symlink(root.path().join("relative"), root.path().join("absolute")).unwrap();
    symlink("circle", root.path().join("circle")).unwrap();
    let held = directory(&root.path().join("absolute/.."), Missing::Refused).unwrap();
    assert_eq!(Identity::at(&held).unwrap().inode, fs::metadata(root.path().join("a")).unwrap().ino());
    let circle = directory(&root.path().join("circle"), Missing::Refused).unwrap_err();
    assert_eq!(circle.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
}

#[test]
fn a_link_of_another_user_leads_to_that_users_directories_only() {
    if !is_root() {
        println!("skipped: it needs root");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for name in ["ours", "theirs"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    chown(root.path().join("theirs"), Some(OTHER), None).unwrap();
    for (link, target) in
        [("to-ours", "ours"), ("to-theirs", "theirs"), ("around", "theirs/../ours"), ("to-etc", "/etc")]
    {
        symlink(target, root.path().join(link)).unwrap();
        lchown(root.path().join(link), Some(OTHER), None).unwrap();
    }
    for (path, works) in [("to-theirs", true), ("to-ours", false), ("around", false), ("to-etc", false), ("ours", true)]
    {
        for path in [path.to_owned(), format!("{path}/new")] {
            let made = directory(&root.path().join(&path), Missing::Made(0o755));
            assert_eq!(made.is_ok(), works, "{path}: {made:?}");
        }
    }
    assert!(!Path::new("/etc/new").exists());
}

#[test]
fn a_tree_is_given_without_what_its_links_and_other_names_lead_to() {
    if !is_root() {
        println!("skipped: it needs root");
        return;
    }
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = root.path().join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    for file in ["a/b/f", "program"] {
        fs::write(tree.join(file), "x").unwrap();
    }
    fs::set_permissions(tree.join("program"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    fs::hard_link(outside.path().join("secret"), tree.join("a/hard")).unwrap();
    symlink(outside.path(), tree.join("a/link")).unwrap();
    let held = directory(&tree, Missing::Refused).unwrap();
    let given = give(&held, NewOwner { uid: Some(OTHER), gid: None }).unwrap();
    assert_eq!(given, Given { changed: 6, with_other_names: 1, lost_bits: 1, ..Given::default() });
    for path in [tree.join("a/b/f"), tree.join("a/link"), tree.join("a/b"), tree.join("program"), tree.clone()] {
        assert_eq!(owner_of(&path), OTHER, "{}", path.display());
    }
    for path in [outside.path().join("secret"), outside.path().to_owned()] {
        assert_eq!(owner_of(&path), 0, "{}", path.display());
    }
    assert_eq!(fs::metadata(tree.join("program")).unwrap().mode() & 0o7000, 0);
    let again = give(&held, NewOwner { uid: Some(OTHER), gid: None }).unwrap();
    assert_eq!(again, Given { with_other_names: 1, ..Given::default() });
}

/// The race: somebody swaps a directory of the tree for a link to another place, again and again.
#[test]
fn nothing_outside_is_given_or_removed_while_a_directory_is_swapped_for_a_link() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = root.path().join("tree");
    let (uid, rounds) = if is_root() { (Some(OTHER), 60) } else { (None, 20) };
    for number in 0..50 {
        fs::write(outside.path().join(format!("secret{number}")), "x").unwrap();
    }
    for round in 0..rounds {
        let (real, spare) = (tree.join("swapped"), tree.join("spare"));
        fs::create_dir_all(&real).unwrap();
        for number in 0..20 {
            fs::write(real.join(format!("secret{number}")), "x").unwrap();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let _ = fs::rename(&real, &spare);
                    let _ = symlink(outside.path(), &real);
                    let _ = fs::remove_file(&real);
                    let _ = fs::rename(&spare, &real);
                }
            });
            let held = directory(&tree, Missing::Refused).unwrap();
            if uid.is_some() {
                give(&held, NewOwner { uid, gid: None }).unwrap();
            }
            // Whoever fills it while it is emptied may win; what is outside is not touched.
            let _ = remove(&tree, true);
            done.store(true, Relaxed);
        });
        for entry in fs::read_dir(outside.path()).unwrap() {
            assert_eq!(owner_of(&entry.unwrap().path()), rustix::process::geteuid().as_raw(), "round {round}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 50, "round {round}");
        let _ = fs::remove_dir_all(&tree);
    }
}

#[test]
fn a_tree_is_removed_however_deep_it_is_and_links_stay_what_they_are() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("f"), "x").unwrap();
    let tree = root.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let mut at = directory(&tree, Missing::Refused).unwrap();
    for _ in 0..2_000 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        rustix::fs::mkdirat(&at, "empty", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "d", DIRECTORY, Mode::empty()).unwrap();
    }
    symlink(outside.path(), path_of(&at).join("link")).unwrap();
    drop(at);
    assert!(
        matches!(remove(&tree, false), Err(RemoveError::System(error)) if error.kind() == io::ErrorKind::DirectoryNotEmpty)
    );
    remove(&tree, true).unwrap();
    assert!(!tree.exists());
    symlink(outside.path(), &tree).unwrap();
    remove(&tree, true).unwrap();
    assert!(fs::symlink_metadata(&tree).is_err());
    assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "x");
    assert!(matches!(remove(&tree, true), Err(RemoveError::System(error)) if error.kind() == io::ErrorKind::NotFound));
}

#[test]
fn what_names_no_entry_of_a_directory_is_not_removed() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    // Each of these leads to a directory that the test may lose.
    for end in ["a/b/..", "a/b/../", "a/.", "a/./", "a/b/.//", "a/../."] {
        let path = format!("{}/{end}", root.path().display());
        for with_contents in [false, true] {
            assert!(matches!(remove(Path::new(&path), with_contents), Err(RemoveError::NoEntry)), "{path}");
        }
    }
    for path in ["/", "//", "/.", "/..", ".", "..", ""] {
        assert!(matches!(remove(Path::new(path), false), Err(RemoveError::NoEntry)), "{path}");
    }
    assert!(root.path().join("a/b").is_dir());
    remove(&root.path().join("a/b/"), false).unwrap();
    assert!(!root.path().join("a/b").exists());
}

#[test]
fn a_mounted_file_system_is_not_removed() {
    for mounted in ["/proc", "/sys/", "/dev"] {
        let result = remove(Path::new(mounted), true);
        assert!(matches!(result, Err(RemoveError::Mounted(_))), "{mounted}: {result:?}");
    }
    // A link that leads to the root is a link, also with a slash behind it. This one cannot even be removed.
    assert!(matches!(remove(Path::new("/proc/self/root/"), true), Err(RemoveError::System(_))));
}
