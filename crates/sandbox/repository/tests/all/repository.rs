//! What has changed, and what commits there are.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    process::Command,
};

use gloveport_repository::{changes, commit_changes, commits, diff};

use crate::place::Place;

#[tokio::test]
async fn changes_are_those_of_tracked_files_and_new_ones_whatever_their_names() {
    let place = Place::new();
    place.repository("r");
    assert_eq!(place.changes("r", None).await, Vec::<String>::new());
    place.write("r/changed", "three\n");
    place.write("r/ignored", "");
    place.write("r/deep/a b é", "");
    fs::remove_file(place.path("r/gone")).unwrap();
    place.git("r", &["mv", "kept", "elsewhere \"x\""]);
    let all = ["U changed", "A deep/a b é", "A elsewhere \"x\"", "D gone", "D kept"];
    assert_eq!(place.changes("r", None).await, all);
    assert_eq!(place.changes("r", Some("HEAD")).await, all);
    assert_eq!(place.changes("r/deep", None).await, ["A a b é"]);
    for wrong in ["nowhere", "", "-x", "--output=/tmp/x", "^HEAD", "HEAD..HEAD", "HEAD:kept", "HEAD^{tree}"] {
        let refused = changes(&place.surroundings(), &place.path("r"), Some(wrong)).await.unwrap_err();
        assert!(refused.to_string().starts_with("Git command failed"), "{refused}");
    }
    place.write("plain/file", "");
    assert_eq!(place.changes("plain", None).await, Vec::<String>::new());
    assert_eq!(place.changes("nothing", None).await, Vec::<String>::new());
}

#[tokio::test]
async fn without_a_commit_everything_is_new() {
    let place = Place::new();
    place.write("r/file", "");
    place.git("r", &["init", "-q"]);
    assert_eq!(place.changes("r", None).await, ["A file"]);
    assert_eq!(place.changes("r", Some("HEAD")).await, ["A file"]);
    let none = commits(&place.surroundings(), &place.path("r"), 50).await.unwrap();
    assert!(none.commits.is_empty() && !none.has_more);
}

#[tokio::test]
async fn a_branch_is_compared_with_what_it_began_from() {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["checkout", "-q", "-b", "work"]);
    place.write("r/on-work", "");
    place.commit("r", "work");
    // The main branch here; then what is published of this one; then, when all of it is, what the default branch has.
    assert_eq!(place.changes("r", None).await, ["A on-work"]);
    fs::create_dir(place.path("bare")).unwrap();
    place.git("bare", &["init", "-q", "--bare"]);
    place.git("r", &["remote", "add", "origin", "../bare"]);
    place.git("r", &["push", "-q", "origin", "main", "work"]);
    assert_eq!(place.changes("r", None).await, ["A on-work"]);
    place.write("r/kept", "2\n");
    assert_eq!(place.changes("r", None).await, ["U kept"]);
    place.commit("r", "more work");
    assert_eq!(place.changes("r", None).await, ["U kept"]);
    // A machine that does not answer is none with a default branch.
    place.git("r", &["remote", "set-url", "origin", "/nothing/here"]);
    place.git("r", &["push", "-q", "../bare", "work"]);
    place.git("r", &["update-ref", "refs/remotes/origin/work", "HEAD"]);
    assert_eq!(place.changes("r", None).await, ["U kept", "A on-work"]);
}

#[tokio::test]
async fn repositories_in_directories_are_their_own() {
    let place = Place::new();
    place.repository("r");
    place.repository("r/inner");
    place.write("r/inner/kept", "2\n");
    place.write("r/innermost", "");
    assert_eq!(place.changes("r", None).await, ["U inner/kept", "A innermost"]);
    place.repository("outside/a");
    place.write("outside/a/new", "");
    place.write("outside/broken/.git", "nonsense");
    assert_eq!(place.changes("outside", None).await, ["A a/new"]);
}

#[tokio::test]
async fn texts_are_compared_without_the_form_of_their_line_ends() {
    let place = Place::new();
    place.repository("r");
    place.write("r/changed", "one\r\nthree\r\n\r\n");
    place.write("r/new", "new");
    place.write("r/binary", b"\xff\x00");
    fs::remove_file(place.path("r/gone")).unwrap();
    let some = |text: &str| Some(text.to_owned());
    for (name, original, modified) in [
        ("kept", "1", "1"),
        ("changed", "one\ntwo", "one\nthree\n"),
        ("new", "", "new"),
        ("gone", "x", ""),
        ("binary", "", ""),
    ] {
        assert_eq!(place.diff(&format!("r/{name}")).await, Ok((some(original), some(modified))), "{name}");
    }
    assert!(place.diff("r/deep/nothing").await.unwrap_err().starts_with("File does not exist: "));
    place.write("r/large", vec![b'x'; 1_048_577]);
    let large = place.diff("r/large").await.unwrap_err();
    assert_eq!(large, "File too large for git diff: 1048577 bytes (max: 1048576 bytes)");
    place.write("plain/file", "");
    assert_eq!(place.diff("plain/file").await, Ok((None, None)));
    let head = place.git("r", &["rev-parse", "HEAD"]);
    let path = place.path("r/kept");
    let first = diff(&place.surroundings(), &path, None, Some(&head)).await.unwrap();
    assert_eq!((first.original, first.modified), (some(""), some("1")));
}

#[tokio::test]
async fn commits_are_told_with_what_each_changed() {
    let place = Place::new();
    place.repository("r");
    place.write("r/kept", "2\n");
    place.commit("r", "the second\u{1f}é\n\nwith more");
    let (surroundings, path) = (place.surroundings(), place.path("r"));
    let both = commits(&surroundings, &path, 2).await.unwrap();
    let subjects: Vec<&str> = both.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!((subjects, both.has_more), (vec!["the second\u{1f}é", "the first"], false));
    assert_eq!(both.commits[0].author, "A");
    let one = commits(&surroundings, &path, 1).await.unwrap();
    assert!(one.commits.len() == 1 && one.has_more);
    let second = commit_changes(&surroundings, &path, &both.commits[0].short_sha).await.unwrap();
    assert_eq!(serde_json::to_string(&second).unwrap(), r#"[{"status":"UPDATED","path":"kept"}]"#);
    let first = commit_changes(&surroundings, &path, &both.commits[1].sha).await.unwrap();
    assert_eq!(first.len(), 4);
    assert!(commit_changes(&surroundings, &path, "0123456").await.is_err());
}

#[tokio::test]
async fn each_kind_of_change_has_its_status() {
    let place = Place::new();
    place.repository("r");
    place.write("r/to-link", "");
    place.commit("r", "more");
    place.git("r", &["checkout", "-q", "-b", "other"]);
    place.write("r/changed", "theirs\n");
    place.commit("r", "theirs");
    place.git("r", &["checkout", "-q", "main"]);
    place.write("r/changed", "ours\n");
    place.commit("r", "ours");
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let merge = Command::new("git").args(identity).args(["merge", "-q", "other"]).current_dir(place.path("r")).output();
    assert!(!merge.unwrap().status.success());
    // It failed because both have changed the file, and for nothing else.
    assert!(!place.git("r", &["ls-files", "--unmerged"]).is_empty());
    place.write("r/copy of kept", "1\n");
    place.git("r", &["add", "copy of kept"]);
    place.write("r/line\nend", "");
    fs::write(place.path("r").join(OsStr::from_bytes(b"bytes\xff")), "").unwrap();
    fs::remove_file(place.path("r/to-link")).unwrap();
    symlink("kept", place.path("r/to-link")).unwrap();
    symlink("/nowhere", place.path("r/dangling")).unwrap();
    let all =
        ["A bytes\u{fffd}", "U changed", "A copy of kept", "A dangling", "A line\nend", "U to-link"].map(str::to_owned);
    assert_eq!(place.changes("r", Some("HEAD")).await, all);
}

#[tokio::test]
async fn a_directory_whose_name_is_a_pattern_is_itself() {
    let place = Place::new();
    place.repository("r");
    for name in [":(glob)**", "*", "[a]", "a"] {
        place.write(&format!("r/{name}/file"), "1\n");
    }
    place.commit("r", "patterns");
    for name in [":(glob)**", "*", "[a]", "a"] {
        place.write(&format!("r/{name}/file"), "2\n");
        assert_eq!(place.changes(&format!("r/{name}"), None).await, ["U file"], "{name}");
        assert_eq!(place.diff(&format!("r/{name}/file")).await, Ok((Some("1".into()), Some("2".into()))), "{name}");
    }
}

#[tokio::test]
async fn a_commit_tells_both_texts_and_a_side_without_the_file_is_empty() {
    let place = Place::new();
    place.repository("r");
    place.write("r/deep/new", "a\r\nb\r\n");
    fs::remove_file(place.path("r/gone")).unwrap();
    place.commit("r", "the second");
    let second = place.git("r", &["rev-parse", "--short", "HEAD"]);
    fs::remove_dir_all(place.path("r/deep")).unwrap();
    for (name, original, modified) in
        [("deep/new", "", "a\nb"), ("gone", "x", ""), ("kept", "1", "1"), ("none", "", ""), ("deep", "", "")]
    {
        let found = diff(&place.surroundings(), &place.path("r").join(name), None, Some(&second)).await.unwrap();
        assert_eq!((found.original.as_deref(), found.modified.as_deref()), (Some(original), Some(modified)), "{name}");
    }
    // What is gone with its directory is looked for from where there still is one.
    assert_eq!(place.diff("r/deep/new").await, Ok((Some("a\nb".into()), Some(String::new()))));
    let unknown = diff(&place.surroundings(), &place.path("r/kept"), None, Some("0123456")).await.unwrap_err();
    assert!(unknown.to_string().starts_with("Git command failed"), "{unknown}");
}

#[tokio::test]
async fn a_text_is_too_large_on_either_side_from_the_first_byte_too_many() {
    let place = Place::new();
    place.repository("r");
    place.write("r/exact", vec![b'x'; 1_048_576]);
    place.write("r/large", vec![b'x'; 1_048_577]);
    place.commit("r", "large ones");
    place.write("r/large", "small");
    let text = Some("x".repeat(1_048_576));
    assert_eq!(place.diff("r/exact").await, Ok((text.clone(), text)));
    let large = place.diff("r/large").await.unwrap_err();
    assert_eq!(large, "File too large for git diff: 1048577 bytes (max: 1048576 bytes)");
}

#[tokio::test]
async fn a_merge_is_compared_with_its_first_parent_and_times_have_their_offset() {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["checkout", "-q", "-b", "other"]);
    place.write("r/theirs", "");
    place.commit("r", "theirs");
    place.git("r", &["checkout", "-q", "main"]);
    place.write("r/ours", "");
    place.commit("r", "ours");
    place.git("r", &["merge", "-q", "--no-edit", "other"]);
    place.git("r", &["mv", "kept", "moved"]);
    place.git("r", &["commit", "-q", "--date", "2026-11-22T03:54:23+05:30", "-m", "caf\u{e9}"]);
    // What a repository prefers to show is not what is answered.
    place.git("r", &["config", "i18n.logOutputEncoding", "ISO-8859-1"]);
    place.git("r", &["config", "diff.renames", "copies"]);
    let path = place.path("r");
    let found = commits(&place.surroundings(), &path, 2).await.unwrap();
    assert!(found.has_more);
    let newest = &found.commits[0];
    assert_eq!((newest.subject.as_str(), newest.timestamp.as_str()), ("caf\u{e9}", "2026-11-22T03:54:23+05:30"));
    assert!(newest.sha.len() == 40 && newest.sha.starts_with(&newest.short_sha));
    let told = |found: Vec<_>| serde_json::to_string(&found).unwrap();
    let renamed = commit_changes(&place.surroundings(), &path, &newest.sha).await.unwrap();
    assert_eq!(told(renamed), r#"[{"status":"DELETED","path":"kept"},{"status":"ADDED","path":"moved"}]"#);
    let merge = commit_changes(&place.surroundings(), &path, &found.commits[1].sha).await.unwrap();
    assert_eq!(told(merge), r#"[{"status":"ADDED","path":"theirs"}]"#);
    let plain = place.path("plain");
    fs::create_dir(&plain).unwrap();
    assert_eq!(commit_changes(&place.surroundings(), &plain, "abcd").await.unwrap(), []);
    assert_eq!(commits(&place.surroundings(), &plain, 1).await.unwrap().commits, []);
}
