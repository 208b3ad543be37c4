//! The file commands, as a person uses them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Output, Stdio},
    time::{Duration, SystemTime},
};

use crate::support::{Server, gloveport, text};
use serde_json::Value;
use tempfile::TempDir;

/// Runs a command in a directory; answers with its exit code, its output and its errors.
fn run_in(directory: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = raw_in(directory, arguments, input.as_bytes());
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn raw_in(directory: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = gloveport(directory);
    command.args(arguments).current_dir(directory);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that reads nothing closes the pipe.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// A tree with everything that a copy has to keep.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("sub/empty")).unwrap();
    fs::write(root.join("plain"), "plain text\n").unwrap();
    fs::write(root.join("sub/script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("sub/script"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("plain", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    fs::hard_link(root.join("plain"), root.join("sub/other-name")).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(root.join("plain")).unwrap().set_modified(time).unwrap();
}

/// What of a tree must arrive: names, modes, times, targets and contents.
fn described(root: &Path) -> Vec<String> {
    let mut open = vec![root.to_owned()];
    let mut lines = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let mode = metadata.permissions().mode();
            let rest = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if metadata.is_dir() {
                open.push(path);
                String::new()
            } else {
                format!("{:?} {:?}", metadata.modified().unwrap(), fs::read_to_string(&path).unwrap())
            };
            lines.push(format!("{name} {mode:o} {rest}"));
        }
    }
    lines.sort();
    lines
}

fn lab() -> (Server, TempDir) {
    (Server::serve(&[], &[]), tempfile::tempdir().unwrap())
}

#[test]
fn a_file_is_written_shown_and_edited_here_and_on_a_server_alike() {
    let (server, lab) = lab();
    let url = server.url();
    for place in [&[][..], &["--url", url.as_str()]] {
        let root = if place.is_empty() { lab.path() } else { server.home.path() };
        let file = root.join("notes/a.txt");
        let path = file.to_str().unwrap();
        let run = |arguments: &[&str], input: &str| run_in(lab.path(), &[arguments, place].concat(), input);
        assert_eq!(run(&["write", path], "one\ntwo\nthree"), (0, String::new(), String::new()));
        assert_eq!(fs::read(&file).unwrap(), b"one\ntwo\nthree", "exactly what was given");
        let head = format!("Here's the result of running `cat -n` on {path}:\n");
        assert_eq!(run(&["view", path, "-n", "2:"], "").1, format!("{head}     2\ttwo\n     3\tthree\n"));
        assert_eq!(run(&["view", path, "--raw", "-n", "2"], "").1, "two\n");
        let change = |hunk: &str| (0, format!("--- {path}\n+++ {path}\n{hunk}\n"), String::new());
        let replaced = run(&["edit", "replace", path, "--old", "two", "--new", "-"], "TWO");
        assert_eq!(replaced, change("@@ -2 +2 @@\n-two\n+TWO"));
        let inserted = run(&["edit", "insert", path, "--line", "0", "--text", "zero\n"], "");
        assert_eq!(inserted, change("@@ -0,0 +1 @@\n+zero"));
        assert_eq!(run(&["write", path, "-n", "3"], "2\n"), (0, String::new(), String::new()));
        assert_eq!(fs::read(&file).unwrap(), b"zero\none\n2\nthree");
        let (code, _, error) = run(&["edit", "replace", path, "--old", "missing", "--new", "x"], "");
        let expected = format!("gloveport: nothing is changed: {path} does not contain the text `missing`\n");
        assert_eq!((code, error), (1, expected));
        let (code, json, _) = run(&["view", path, "--json"], "");
        let observation: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((code, &observation["observation"]), (0, &Value::from("read")));
    }
    let path = server.home.path().join("notes/a.txt");
    let undo = |place: &[&str]| run_in(lab.path(), &[&["edit", "undo", path.to_str().unwrap()], place].concat(), "");
    assert_eq!(undo(&["--url", &url]).0, 0);
    assert_eq!(
        fs::read(&path).unwrap(),
        b"one\nTWO\nthree",
        "before the insertion; the written line is not remembered"
    );
    assert!(undo(&[]).2.contains("only a server remembers edits"));
}

#[test]
fn a_tree_goes_to_a_server_and_comes_back_with_modes_links_and_times() {
    let (server, lab) = lab();
    tree(&lab.path().join("tree"));
    let expected = described(&lab.path().join("tree"));
    let url = server.url();
    let cp = |from: &str, to: &str| run_in(lab.path(), &["cp", from, to, "--url", &url], "");
    let there = server.home.path();
    assert_eq!(cp("tree", &format!(":{}/new", there.display())), (0, String::new(), String::new()));
    assert_eq!(described(&there.join("new")), expected);
    // Into a directory that is there.
    assert_eq!(cp("tree", ":new").0, 0);
    assert_eq!(described(&there.join("new/tree")), expected);
    fs::remove_dir_all(there.join("new/tree")).unwrap();
    assert_eq!(cp(":new", "back").0, 0);
    assert_eq!(described(&lab.path().join("back")), expected);
    assert_eq!(run_in(lab.path(), &["cp", "tree", "local"], "").0, 0);
    assert_eq!(described(&lab.path().join("local")), expected);
}

#[test]
fn streams_go_in_and_out() {
    let (server, lab) = lab();
    let url = server.url();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let cp = |from: &str, to: &str, input: &[u8]| raw_in(lab.path(), &["cp", from, to, "--url", &url], input);
    assert!(cp("-", ":stored", &bytes).status.success());
    assert_eq!(fs::read(server.home.path().join("stored")).unwrap(), bytes);
    assert_eq!(cp(":stored", "-", b"").stdout, bytes);
    fs::create_dir_all(server.home.path().join("dir/sub")).unwrap();
    fs::write(server.home.path().join("dir/sub/file"), "content").unwrap();
    let tar = cp(":dir", "-", b"").stdout;
    assert!(cp("-", ":unpacked/", &tar).status.success());
    assert_eq!(fs::read(server.home.path().join("unpacked/sub/file")).unwrap(), b"content");
    let refused = cp("-", ":unpacked/", &tar[..1000]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("tar"), "{}", text(&refused.stderr));
}

#[test]
fn a_directory_is_listed_with_what_was_asked_for() {
    let (server, lab) = lab();
    let root = server.home.path().join("dir");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join(".hidden"), "").unwrap();
    fs::write(root.join("file"), "12345").unwrap();
    let (url, path) = (server.url(), root.to_str().unwrap());
    for place in [&[][..], &["--url", url.as_str()]] {
        let ls = |arguments: &[&str]| run_in(lab.path(), &[&["ls", path], arguments, place].concat(), "");
        assert_eq!(ls(&[]), (0, "file\nsub/\n".to_owned(), String::new()));
        assert_eq!(ls(&["-a"]).1, ".hidden\nfile\nsub/\n");
        let long = ls(&["-l"]).1;
        assert!(long.lines().next().unwrap().starts_with("-0644 ") && long.contains(" 5 "), "{long}");
        let json: Value = serde_json::from_str(&ls(&["--json"]).1).unwrap();
        assert_eq!(json[1]["kind"], "directory");
    }
}

#[test]
fn wrong_use_is_told_and_changes_nothing() {
    let (server, lab) = lab();
    let url = server.url();
    fs::write(lab.path().join("binary"), b"\x89PNG\0\xff").unwrap();
    fs::create_dir_all(lab.path().join("dir/sub")).unwrap();
    for (arguments, expected_code, expected) in [
        (vec!["view", "missing"], 1, "does not exist"),
        (vec!["view", "-n", "0", "x"], 2, "counted from 1"),
        (vec!["view", "-n", "5:3", "x"], 2, "comes after the last"),
        (vec!["view", "binary"], 1, "binary"),
        (vec!["edit", "create", "binary", "--text", "x"], 1, "binary exists already"),
        (vec!["edit", "create", "new", "--text", "@missing"], 1, "missing"),
        (vec!["write", "dir", "--text", "x"], 1, "Is a directory"),
        (vec!["write", "binary/x", "--text", "x"], 1, "binary"),
        (vec!["ls", "missing"], 1, "missing does not exist"),
        (vec!["cp", "missing", "x"], 1, "missing"),
        (vec!["cp", "dir", "dir/sub/x"], 1, "never end"),
        (vec!["cp", "binary", "dir", "--url", &url], 1, "colon"),
        (vec!["cp", ":a", ":b", "--url", &url], 1, "both paths"),
        (vec!["cp", ":missing", "x", "--url", &url], 1, "missing does not exist\n"),
        (vec!["ls", "--url", "http://127.0.0.1:1"], 1, "no server answers at http://127.0.0.1:1/"),
        (vec!["ls", "--url", "ftp://x"], 1, "http"),
    ] {
        let (code, _, error) = run_in(lab.path(), &arguments, "");
        assert_eq!(code, expected_code, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let mut names: Vec<_> = fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| !name.to_string_lossy().starts_with(".gloveport-"));
    names.sort();
    assert_eq!(names, ["binary", "dir"]);
}

#[test]
fn a_text_is_given_to_write_by_the_rule_of_edit() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("source"), b"from a file\n\xff").unwrap();
    for (words, input, content) in [
        (&["write", "a", "--text", "@source"][..], "", &b"from a file\n\xff"[..]),
        (&["write", "a", "--text", "-"], "from standard input", b"from standard input"),
        (&["write", "a", "--text", "-x"], "", b"-x"),
        (&["write", "a"], "@source", b"@source"),
    ] {
        assert_eq!(run_in(home.path(), words, input).0, 0, "{words:?}");
        assert_eq!(fs::read(home.path().join("a")).unwrap(), content, "{words:?}");
    }
    let (code, _, told) = run_in(home.path(), &["write", "a", "--text", "@missing"], "");
    assert!(code == 1 && told.contains("cannot read the text from missing"), "{told}");
    let (code, _, told) = run_in(home.path(), &["edit", "create", "b", "--text", "@source"], "");
    assert!(code == 1 && told.contains("source is not UTF-8 text"), "{told}");
}
