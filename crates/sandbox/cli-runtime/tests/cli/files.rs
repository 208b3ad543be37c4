//! Reading, writing and editing, row by row (local-and-cli-runtime B6 to B8).

use std::{fs, os::unix::fs::symlink};

use gloveport_protocol::{
    Action, EditAction, EditObservation, FileEditSource, FileReadSource, InsertLine, Observation, ReadAction,
    ReadObservation, WriteAction, WriteObservation,
};

use crate::support::{Fixture, error_of};

/// A workspace with a file of each kind.
fn furnished() -> Fixture {
    let fixture = Fixture::new();
    let root = &fixture.root;
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("t.txt"), "a\r\nb\rc\n").unwrap();
    fs::write(root.join("bin"), b"\0\x01\x02").unwrap();
    fs::write(root.join("latin"), b"caf\xe9 x\n").unwrap();
    fs::write(root.join("empty"), "").unwrap();
    symlink("t.txt", root.join("link")).unwrap();
    symlink(root.join("t.txt"), root.join("absolute")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_read_table_holds() {
    let fixture = furnished();
    let long = "n".repeat(300);
    let text = Ok("a\nb\nc\n");
    for (path, expected) in [
        ("t.txt", text),
        ("./t.txt", text),
        ("t.txt/", text),
        ("/workspace/t.txt", text),
        (&format!("{}/t.txt", fixture.root.display()), text),
        ("link", text),
        ("absolute", text),
        ("missing/../t.txt", text),
        ("latin", Ok("caf\u{fffd} x\n")),
        ("empty", Ok("")),
        ("missing", Err("File not found: missing")),
        ("dangling", Err("File not found: dangling")),
        ("loop", Err("File not found: loop")),
        ("t.txt/x", Err("File not found: t.txt/x")),
        (&long, Err(&format!("File not found: {long}"))),
        ("d", Err("Cannot read directory: d")),
        ("", Err("Cannot read directory: ")),
        (".", Err("Cannot read directory: .")),
        ("/workspace", Err("Cannot read directory: /workspace")),
        ("bin", Err("ERROR_BINARY_FILE")),
        ("fifo", Err("Error reading file fifo: it is a FIFO, and only regular files can be read")),
        ("a\0b", Err("embedded null byte")),
    ] {
        match (fixture.read(path).await, expected) {
            (Observation::Read(read), Ok(text)) => assert_eq!(read, ReadObservation::new(text, path), "{path}"),
            (observation, Err(text)) => assert_eq!(error_of(&observation), text),
            (observation, Ok(_)) => panic!("{path}: {observation:?}"),
        }
    }
    // A part is not read alone.
    let part = Action::Read(ReadAction { start: 1, end: 2, ..ReadAction::new("t.txt") });
    assert_eq!(fixture.act(part).await, Observation::Read(ReadObservation::new("a\nb\nc\n", "t.txt")));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_reading_with_the_editor_holds() {
    let fixture = furnished();
    let w = fixture.root.display();
    let head = format!("Here's the result of running `cat -n` on {w}/t.txt:\n");
    let whole = format!("{head}     1\ta\n     2\tb\n     3\tc\n     4\t\n");
    let missing = |path: &str| {
        format!(
            "ERROR:\nInvalid `path` parameter: {w}/{path}. The path {w}/{path} does not exist. Please provide a valid path."
        )
    };
    for (path, range, expected) in [
        ("t.txt", None, whole.clone()),
        ("link", None, whole.clone()),
        ("/workspace/t.txt", Some(vec![2.into(), 2.into()]), format!("{head}     2\tb\n")),
        (
            "t.txt",
            Some(vec!["x".into(), 2.into()]),
            "ERROR:\nInvalid `view_range` parameter: ['x', 2]. It should be a list of two integers.".to_owned(),
        ),
        (
            "bin",
            None,
            format!(
                "ERROR:\nFile validation failed for {w}/bin: File appears to be binary and this file type cannot be \
                read or edited by this tool."
            ),
        ),
        ("missing", None, missing("missing")),
        ("loop", None, missing("loop")),
        (
            "d",
            None,
            format!("Here's the files and directories up to 2 levels deep in {w}/d, excluding hidden items:\n{w}/d/"),
        ),
    ] {
        let impl_source = FileReadSource::OhAci;
        let action = Action::Read(ReadAction { impl_source, view_range: range, ..ReadAction::new(path) });
        if path == "loop" {
            // Why it can not be opened is told by the system's own error.
            let Observation::Read(read) = fixture.act(action).await else { panic!("{path}") };
            assert!(read.content.starts_with("ERROR:\n"), "{}", read.content);
            continue;
        }
        let expected = ReadObservation { impl_source, ..ReadObservation::new(expected, path) };
        assert_eq!(fixture.act(action).await, Observation::Read(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_write_table_holds() {
    let fixture = furnished();
    let w = fixture.root.display();
    for (path, target, expected) in [
        ("n.txt", "n.txt", Ok(())),
        ("t.txt", "t.txt", Ok(())),
        ("bin", "bin", Ok(())),
        ("x/y/z", "x/y/z", Ok(())),
        ("/workspace/v", "v", Ok(())),
        ("dangling", "nowhere", Ok(())),
        ("d", "", Err(format!("Error writing to file d: [Errno 21] Is a directory: '{w}/d'"))),
        ("", "", Err(format!("Error writing to file : [Errno 21] Is a directory: '{w}'"))),
        ("t.txt/x", "", Err(format!("Error writing to file t.txt/x: [Errno 17] File exists: '{w}/t.txt'"))),
        (
            "loop",
            "",
            Err(format!("Error writing to file loop: [Errno 40] Too many levels of symbolic links: '{w}/loop'")),
        ),
        ("fifo", "", Err(format!("Error writing to file fifo: [Errno 22] Invalid argument: '{w}/fifo'"))),
    ] {
        let observation = fixture.act(Action::Write(WriteAction::new(path, "a\r\nb"))).await;
        match expected {
            Ok(()) => {
                assert_eq!(observation, Observation::Write(WriteObservation::new("", path)));
                assert_eq!(fs::read_to_string(fixture.root.join(target)).unwrap(), "a\r\nb");
            }
            Err(text) => assert_eq!(error_of(&observation), text),
        }
    }
    let part = Action::Write(WriteAction { start: 1, end: 1, ..WriteAction::new("n.txt", "whole") });
    fixture.act(part).await;
    assert_eq!(fs::read_to_string(fixture.root.join("n.txt")).unwrap(), "whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_edit_table_holds() {
    let fixture = furnished();
    let w = fixture.root.display();
    let new = |command: &str, path: &str| EditAction { command: command.into(), ..EditAction::new(path) };
    let edited = "The file";
    let review = "Review the changes and make sure they are as expected";
    let snippet = |what: &str| format!("Here's the result of running `cat -n` on {what}:\n");
    for (action, content, diff) in [
        (
            EditAction { file_text: Some("one\ntwo\n".into()), ..new("create", "e.txt") },
            format!("File created successfully at: {w}/e.txt"),
            "--- e.txt\n+++ e.txt\n@@ -0,0 +1,2 @@\n+one\n+two",
        ),
        (
            new("view", "/workspace/e.txt"),
            format!("{}     1\tone\n     2\ttwo\n     3\t\n", snippet(&format!("{w}/e.txt"))),
            "",
        ),
        (
            EditAction {
                old_str: Some("one".into()),
                new_str: Some("1".into()),
                ..new("str_replace", "/workspace/e.txt")
            },
            format!(
                "{edited} {w}/e.txt has been edited. {}     1\t1\n     2\ttwo\n     3\t\n{review}. Edit the file again if \
                 necessary.",
                snippet(&format!("a snippet of {w}/e.txt"))
            ),
            "--- /workspace/e.txt\n+++ /workspace/e.txt\n@@ -1 +1 @@\n-one\n+1",
        ),
        (
            EditAction {
                insert_line: Some(InsertLine::Text("1".into())),
                new_str: Some("x".into()),
                ..new("insert", "e.txt")
            },
            format!(
                "{edited} {w}/e.txt has been edited. {}     1\t1\n     2\tx\n     3\ttwo\n     4\t\n{review} (correct \
                 indentation, no duplicate lines, etc). Edit the file again if necessary.",
                snippet("a snippet of the edited file")
            ),
            "--- e.txt\n+++ e.txt\n@@ -1,0 +2 @@\n+x",
        ),
        (
            new("undo_edit", "e.txt"),
            format!(
                "Last edit to {w}/e.txt undone successfully. {}     1\t1\n     2\ttwo\n     3\t\n",
                snippet(&format!("{w}/e.txt"))
            ),
            "--- e.txt\n+++ e.txt\n@@ -2 +1,0 @@\n-x",
        ),
        (
            new("nope", "e.txt"),
            "ERROR:\nUnrecognized command nope. The allowed commands for the oh_editor tool are: view, create, \
             str_replace, insert, undo_edit"
                .into(),
            "",
        ),
        (
            EditAction { file_text: Some(String::new()), ..new("create", "nodir/e") },
            format!(
                "ERROR:\nRan into [Errno 2] No such file or directory: '{w}/nodir/e' while trying to write to {w}/nodir/e"
            ),
            "",
        ),
        (new("str_replace", "e.txt"), "ERROR:\nParameter `old_str` is required for command: str_replace.".into(), ""),
        (
            EditAction { insert_line: Some(InsertLine::Text("x".into())), ..new("insert", "e.txt") },
            "ERROR:\nInvalid insert_line value: 'x'. Expected an integer.".into(),
            "",
        ),
    ] {
        let expected = EditObservation {
            path: action.path.clone(),
            old_content: action.old_str.clone(),
            new_content: action.new_str.clone(),
            impl_source: FileEditSource::OhAci,
            diff: Some(diff.into()),
            ..EditObservation::new(content)
        };
        assert_eq!(fixture.act(Action::Edit(action)).await, Observation::Edit(expected));
    }
    assert_eq!(error_of(&fixture.act(Action::Edit(new("view", "bin"))).await), "ERROR_BINARY_FILE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_one_history_whichever_of_its_names_is_used() {
    let fixture = Fixture::new();
    symlink("f", fixture.root.join("alias")).unwrap();
    let edit = |command: &str, path: &str| EditAction { command: command.into(), ..EditAction::new(path) };
    fixture.act(Action::Edit(EditAction { file_text: Some("1\n".into()), ..edit("create", "f") })).await;
    for (old, new, path) in [("1", "2", "alias"), ("2", "3", "/workspace/f"), ("3", "4", "./x/../f")] {
        let replace = EditAction { old_str: Some(old.into()), new_str: Some(new.into()), ..edit("str_replace", path) };
        fixture.act(Action::Edit(replace)).await;
    }
    for (path, text) in [("f", "3\n"), ("alias", "2\n"), ("f", "1\n")] {
        fixture.act(Action::Edit(edit("undo_edit", path))).await;
        assert_eq!(fs::read_to_string(fixture.root.join("f")).unwrap(), text);
    }
}
