//! Repositories that would have programs run, or files read.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
};

use gloveport_repository::{changes, commit_changes, commits, diff};
use gloveport_sys::Identity;

use crate::place::Place;

#[tokio::test]
async fn a_repository_has_no_program_run() {
    let place = Place::new();
    place.repository("r");
    let mark = place.path("mark");
    let touch = format!("touch {}", mark.display());
    place.write("r/.gitattributes", "* diff=evil\n");
    for name in
        ["core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program", "core.pager"]
    {
        place.git("r", &["config", name, &touch]);
    }
    place.git("r", &["config", "log.showSignature", "true"]);
    let hook = place.path("r/.git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    place.write("r/changed", "three\n");
    assert_eq!(place.changes("r", None).await, ["A .gitattributes", "U changed"]);
    assert!(place.diff("r/changed").await.is_ok());
    let path = place.path("r");
    assert_eq!(commits(&place.surroundings(), &path, 5).await.unwrap().commits.len(), 1);
    assert!(commit_changes(&place.surroundings(), &path, "HEAD").await.is_ok());
    assert!(!mark.exists());
}

/// Whether git itself, without any care, runs the program that leaves the mark.
fn is_run(place: &Place, mark: &Path, words: &[&str]) -> bool {
    let _either_way = Command::new("git").args(words).current_dir(place.path("r")).output().unwrap();
    fs::remove_file(mark).is_ok()
}

#[tokio::test]
async fn a_filter_has_its_say_so_that_a_file_that_is_as_it_was_is_no_change() {
    let place = Place::new();
    place.repository("r");
    place.write("r/.git/info/attributes", "kept filter=own\n");
    place.git("r", &["config", "filter.own.clean", "sed s/shown/1/"]);
    // What is on the disk is another text than what is kept.
    place.write("r/kept", "shown\n");
    assert_eq!(place.changes("r", None).await, Vec::<String>::new());
}

#[tokio::test]
async fn another_machine_is_asked_without_programs_of_the_repository() {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["checkout", "-q", "-b", "work"]);
    place.git("r", &["remote", "add", "origin", "../bare"]);
    fs::create_dir(place.path("bare")).unwrap();
    place.git("bare", &["init", "-q", "--bare"]);
    let mark = place.path("mark");
    let script = place.path("script");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let (transport, bare) = (format!("ext::{script}"), place.path("bare"));
    place.git("r", &["config", "protocol.ext.allow", "always"]);
    for (name, url) in [
        ("remote.origin.uploadpack", bare.to_str().unwrap()),
        ("core.gitProxy", "git://127.0.0.1:1/x"),
        ("core.sshCommand", "ssh://127.0.0.1:1/x"),
        ("nothing.special", &transport),
    ] {
        place.git("r", &["config", name, script]);
        place.git("r", &["config", "remote.origin.url", url]);
        assert!(is_run(&place, &mark, &["ls-remote", "origin", "HEAD"]), "{name}");
        assert_eq!(place.changes("r", None).await, Vec::<String>::new(), "{name}");
        assert!(!mark.exists(), "{name}");
        place.git("r", &["config", "--unset", name]);
    }
}

#[tokio::test]
async fn what_a_clone_left_out_is_fetched_or_told_and_never_taken_for_empty() {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", place.path("r").display());
    place.git("", &["clone", "-q", "--filter=blob:none", &url, "partial"]);
    assert_eq!(place.changes("partial", None).await, Vec::<String>::new());
    let blob = place.git("r", &["rev-parse", "HEAD:kept"]);
    fs::remove_file(place.path(&format!("r/.git/objects/{}/{}", &blob[..2], &blob[2..]))).unwrap();
    let missing = place.diff("r/kept").await.unwrap_err();
    assert!(missing.starts_with("Git command failed: git cat-file: "), "{missing}");
}

#[tokio::test]
async fn only_a_regular_file_is_read() {
    let place = Place::new();
    place.repository("r");
    for (name, target) in [("zero", "/dev/zero"), ("directory", "."), ("dangling", "/nowhere"), ("loop", "loop")] {
        symlink(target, place.path("r").join(name)).unwrap();
        assert!(place.diff(&format!("r/{name}")).await.unwrap_err().starts_with("File does not exist: "), "{name}");
    }
    fs::remove_file(place.path("r/kept")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("r/kept")).status().unwrap().success());
    assert_eq!(place.diff("r/kept").await, Ok((Some("1".into()), Some(String::new()))));
    symlink("changed", place.path("r/link")).unwrap();
    assert_eq!(place.diff("r/link").await, Ok((Some(String::new()), Some("one\ntwo".into()))));
}

#[tokio::test]
async fn files_are_read_with_the_rights_of_whoever_owns_the_commands() {
    const NOBODY: u32 = 65_534;
    let place = Place::new();
    place.repository("r");
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        return;
    }
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    place.write("secret", "secret\n");
    fs::set_permissions(place.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("../secret", place.path("r/link")).unwrap();
    let owned = Command::new("chown").args(["-hR", "65534:65534"]).arg(place.path("r")).status().unwrap();
    assert!(owned.success());
    let mut surroundings = place.surroundings();
    surroundings.identity = Some(Identity { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY] });
    let refused = diff(&surroundings, &place.path("r/link"), None, None).await.unwrap_err().to_string();
    assert!(refused.contains("Permission denied"), "{refused}");
    let read = diff(&surroundings, &place.path("r/kept"), None, None).await.unwrap();
    assert_eq!((read.original.as_deref(), read.modified.as_deref()), (Some("1"), Some("1")));
    assert_eq!(changes(&surroundings, &place.path("r"), None).await.unwrap().len(), 1);
}
