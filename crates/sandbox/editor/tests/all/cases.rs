//! The case table of file-editor 4, row by row, and the limits of 3.3.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, io::Write as _};

use crate::common::Desk;
use gloveport_editor::{EditRequest, EditorError, ViewRange};

const CAT: &str = "Here's the result of running `cat -n` on";
const REVIEW: &str = "Review the changes and make sure they are as expected. Edit the file again if necessary.";
const REVIEW_INSERTED: &str = "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.";
const TEXT_NOTICE: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

/// A directory with `c.txt` and a few others.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.create("c.txt", "a\nb\nc").unwrap();
    desk.put("thirty", (1..=30).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat());
    desk.put("two", "test one\ntest two\n");
    desk.put("blocks", "x\ny\nz\n\n\n\nx\ny\nz\n");
    fs::create_dir(desk.file("d")).unwrap();
    desk
}

/// Asks with `/w` for the directory.
fn ask(desk: &Desk, path: &str, request: EditRequest<'_>) -> Result<String, String> {
    let path = path.replace("/w", &desk.root);
    desk.ask(EditRequest { path: &path, ..request })
}

fn invalid(parameter: &str, value: &str, hint: &str) -> String {
    format!("Invalid `{parameter}` parameter: {value}. {hint}")
}

#[test]
fn requests_that_can_not_be_are_refused_in_the_words_of_the_table() {
    let desk = desk();
    let relative = "The path should be an absolute path, starting with `/`.";
    let document = |path: &str, extension: &str| {
        invalid(
            "path",
            path,
            &format!(
                "The path {path} points to a binary file ({extension}) and only the `view` command can be used on supported binary files."
            ),
        )
    };
    let directory =
        invalid("path", "/w/d", "The path /w/d is a directory and only the `view` command can be used on directories.");
    let unknown = |command: &str| {
        format!(
            "Unrecognized command {command}. The allowed commands for the oh_editor tool are: view, create, str_replace, insert, undo_edit"
        )
    };
    let request = |command| EditRequest::new(command, "");
    let create = EditRequest { file_text: Some(""), ..request("create") };
    let replace = |old, new| EditRequest { old_str: Some(old), new_str: Some(new), ..request("str_replace") };
    let insert = |line| EditRequest { insert_line: Some(line), new_str: Some(""), ..request("insert") };
    for (path, request, expected) in [
        // 1 to 5, 7
        ("/w/c.txt", create, invalid("path", "/w/c.txt", "File already exists at: /w/c.txt. Cannot overwrite files using command `create`.")),
        ("/w/d", create, invalid("path", "/w/d", "File already exists at: /w/d. Cannot overwrite files using command `create`.")),
        ("/w/new", request("create"), "Parameter `file_text` is required for command: create.".into()),
        ("rel.txt", create, invalid("path", "rel.txt", relative)),
        ("c.txt", create, invalid("path", "c.txt", &format!("{relative} Maybe you meant /w/c.txt?"))),
        ("", request("view"), invalid("path", ".", &format!("{relative} Maybe you meant /w?"))),
        ("/w/nodir/x", create, "Ran into [Errno 2] No such file or directory: '/w/nodir/x' while trying to write to /w/nodir/x".into()),
        ("/w/c.txt/x", create, "Ran into [Errno 20] Not a directory: '/w/c.txt/x' while trying to write to /w/c.txt/x".into()),
        ("/w/new.pdf", create, document("/w/new.pdf", ".pdf")),
        ("/w/new.FLAC", create, document("/w/new.FLAC", ".FLAC")),
        // 10, 11
        ("/w/none", request("view"), invalid("path", "/w/none", "The path /w/none does not exist. Please provide a valid path.")),
        ("/w/nul\0", request("view"), invalid("path", "/w/nul\0", "The path /w/nul\0 does not exist. Please provide a valid path.")),
        ("/w/d/", replace("a", "b"), directory.clone()),
        ("/w//d/.", insert(0), directory.clone()),
        ("/w/d", request("undo_edit"), directory.clone()),
        ("/w/d", request("nope"), directory),
        // 20 to 23, 25
        ("/w/two", replace("test", "sample"), "No replacement was performed. Multiple occurrences of old_str `test` in lines [1, 2]. Please ensure it is unique.".into()),
        ("/w/blocks", replace("x\ny\nz", ""), "No replacement was performed. Multiple occurrences of old_str `x\ny\nz` in lines [1, 7]. Please ensure it is unique.".into()),
        ("/w/two", replace("", "x"), "No replacement was performed. Multiple occurrences of old_str `` in lines [1, 2, 3]. Please ensure it is unique.".into()),
        ("/w/two", replace(" nothing ", "x"), "No replacement was performed, old_str `nothing` did not appear verbatim in /w/two.".into()),
        ("/w/two", request("str_replace"), "Parameter `old_str` is required for command: str_replace.".into()),
        ("/w/two", replace("one", "one"), invalid("new_str", "one", "No replacement was performed. `new_str` and `old_str` must be different.")),
        // 27
        ("/w/two", insert(10), invalid("insert_line", "10", "It should be within the range of allowed values: [0, 2]")),
        ("/w/two", insert(-1), invalid("insert_line", "-1", "It should be within the range of allowed values: [0, 2]")),
        ("/w/two", request("insert"), "Parameter `insert_line` is required for command: insert.".into()),
        ("/w/two", EditRequest { insert_line: Some(1), ..request("insert") }, "Parameter `new_str` is required for command: insert.".into()),
        // 32, 35
        ("/w/two", request("undo_edit"), "No edit history found for /w/two.".into()),
        ("/w/two", request("nope"), unknown("nope")),
        ("/w/two", request(""), unknown("")),
        ("/w/none", request("nope"), invalid("path", "/w/none", "The path /w/none does not exist. Please provide a valid path.")),
    ] {
        assert_eq!(ask(&desk, path, request), Err(expected), "{path:?} {request:?}");
    }
    assert_eq!(desk.content("two"), b"test one\ntest two\n");
    assert!(!desk.file("new").exists() && !desk.file("new.pdf").exists());
}

#[test]
fn ranges_are_judged_and_shown_as_the_table_says() {
    let desk = desk();
    let lines = |range: std::ops::RangeInclusive<usize>| {
        let lines: Vec<String> = range.map(|line| format!("{line:6}\tline {line}")).collect();
        format!("{CAT} /w/thirty:\n{}\n", lines.join("\n"))
    };
    let whole = lines(1..=30).trim_end().to_owned() + "\n    31\t\n";
    let note = "NOTE: We only show up to 30 since there're only 30 lines in this file.\n";
    let refused = |value: &str, hint: &str| Err(invalid("view_range", value, hint));
    let second = |b: i64, a: i64| {
        format!("Its second element `{b}` should be greater than or equal to the first element `{a}`.")
    };
    let first = |a: i64| format!("Its first element `{a}` should be within the range of lines of the file: [1, 30].");
    let kind = "It should be a list of two integers.";
    for (range, expected) in [
        (ViewRange::Lines(&[28, -1]), Ok(lines(28..=30))),
        (ViewRange::Lines(&[28, 40]), Ok(note.to_owned() + &lines(28..=30))),
        (ViewRange::Lines(&[30, 30]), Ok(lines(30..=30))),
        (ViewRange::Lines(&[]), Ok(whole)),
        (ViewRange::Lines(&[0, 2]), refused("[0, 2]", &first(0))),
        (ViewRange::Lines(&[31, 32]), refused("[31, 32]", &first(31))),
        (
            ViewRange::Lines(&[i64::MIN, i64::MAX]),
            refused("[-9223372036854775808, 9223372036854775807]", &first(i64::MIN)),
        ),
        (ViewRange::Lines(&[5, 3]), refused("[5, 3]", &second(3, 5))),
        (ViewRange::Lines(&[2, -5]), refused("[2, -5]", &second(-5, 2))),
        (ViewRange::Lines(&[1]), refused("[1]", kind)),
        (ViewRange::Lines(&[1, 2, 3]), refused("[1, 2, 3]", kind)),
        (ViewRange::Malformed("['a', 2]"), refused("['a', 2]", kind)),
        (ViewRange::Malformed("[1.5, 2]"), refused("[1.5, 2]", kind)),
    ] {
        let request = EditRequest { view_range: Some(range), ..EditRequest::new("view", "") };
        assert_eq!(ask(&desk, "/w/thirty", request), expected, "{range}");
    }
    let request = EditRequest { view_range: Some(ViewRange::Lines(&[1, 2])), ..EditRequest::new("view", "") };
    let hint = "The `view_range` parameter is not allowed when `path` points to a directory.";
    assert_eq!(ask(&desk, "/w/d", request), Err(invalid("view_range", "[1, 2]", hint)));
    let request = EditRequest { view_range: Some(ViewRange::Malformed("['a']")), ..EditRequest::new("view", "") };
    assert_eq!(ask(&desk, "/w/d", request), Err(invalid("view_range", "['a']", hint)));
}

#[test]
fn files_are_created_as_given_and_shown_with_numbers() {
    let desk = desk();
    assert_eq!(desk.view("c.txt"), Ok(format!("{CAT} /w/c.txt:\n     1\ta\n     2\tb\n     3\tc\n")));
    let report = desk.create("empty", "").unwrap();
    assert_eq!(report.output, format!("File created successfully at: {}", desk.path("empty")));
    assert_eq!((report.diff.as_str(), report.old_text), ("", None));
    assert_eq!(desk.view("empty"), Ok(format!("{CAT} /w/empty:\n     1\t\n")));
    assert_eq!(desk.content("empty"), b"");
}

#[test]
fn the_examples_of_the_specification_are_answered_exactly() {
    let desk = Desk::new();
    desk.create("test.txt", "x").unwrap();
    fs::write(desk.file(".hidden"), "").unwrap();
    let expected = "Here's the files and directories up to 2 levels deep in /w, excluding hidden items:\n/w/\n/w/test.txt\n\n1 hidden files/directories in this directory are excluded. You can use 'ls -la /w' to see them.";
    assert_eq!(desk.ask(EditRequest::new("view", &desk.root)), Ok(expected.into()));

    let (old, new) = ("def test():\n\tprint(\"Hello, World!\")", "def test():\n\tprint(\"Hello, Universe!\")");
    desk.create("test.py", old).unwrap();
    let path = desk.path("test.py");
    let request = EditRequest { old_str: Some(old), new_str: Some(new), ..EditRequest::new("str_replace", &path) };
    let expected = format!(
        "The file /w/test.py has been edited. {CAT} a snippet of /w/test.py:\n     1\tdef test():\n     2\t\tprint(\"Hello, Universe!\")\n{REVIEW}"
    );
    assert_eq!(desk.ask(request), Ok(expected));
}

#[test]
fn edits_change_the_file_and_tell_it() {
    let desk = desk();
    let path = desk.path("c.txt");
    // 18
    let report = desk.replace("c.txt", "b", "B").unwrap();
    assert_eq!(report.diff, format!("--- {path}\n+++ {path}\n@@ -2 +2 @@\n-b\n+B"));
    assert_eq!(report.old_text.as_deref().map(String::as_str), Some("a\nb\nc"));
    assert_eq!(report.new_text.as_deref().map(String::as_str), Some("a\nB\nc"));
    // 19
    desk.replace("c.txt", "  B  ", "  BB ").unwrap();
    assert_eq!(desk.content("c.txt"), b"a\nBB\nc");
    // 24
    let request = EditRequest { old_str: Some("BB\n"), ..EditRequest::new("str_replace", &path) };
    assert_eq!(desk.ask(request).map(|output| output.lines().count()), Ok(4));
    assert_eq!(desk.content("c.txt"), b"a\nc");
    // 26, 28
    let report = desk.insert("c.txt", 1, "").unwrap();
    assert_eq!(
        report.output,
        format!(
            "The file {path} has been edited. {CAT} a snippet of the edited file:\n     1\ta\n     2\t\n     3\tc\n{REVIEW_INSERTED}"
        )
    );
    assert_eq!(desk.content("c.txt"), b"a\n\nc");
    // 31
    for expected in ["a\nc", "a\nBB\nc", "a\nB\nc", "a\nb\nc", "a\nb\nc"] {
        let report = desk.undo("c.txt").unwrap();
        assert_eq!(desk.content("c.txt"), expected.as_bytes());
        assert!(
            report.output.starts_with(&format!("Last edit to {path} undone successfully. {CAT} {path}:\n     1\ta\n"))
        );
    }
    assert_eq!(desk.undo("c.txt"), Err(EditorError::NoHistory(path)));
}

#[test]
fn long_texts_are_cut_and_the_place_is_marked() {
    let desk = desk();
    desk.put("long", "Line 1\n".repeat(16_000));
    let output = desk.view("long").unwrap();
    assert!(output.ends_with(&format!("  2286\tLine {TEXT_NOTICE}\n")));
    let shown =
        output.strip_prefix(&format!("{CAT} /w/long:\n")).unwrap().strip_suffix(&format!("{TEXT_NOTICE}\n")).unwrap();
    let text: Vec<&str> = shown.split('\n').map(|line| &line[7..]).collect();
    assert_eq!(text.join("\n").chars().count(), 16_000);
}

#[test]
fn a_file_of_more_than_10_mib_is_refused_unread() {
    let desk = desk();
    let limit = 10 * 1024 * 1024;
    desk.put("whole", "x\n".repeat(limit / 2));
    assert!(desk.view("whole").is_ok());
    for (length, shown) in [(limit as u64 + 1, "10.0"), (1 << 30, "1024.0")] {
        fs::File::create(desk.file("large")).unwrap().set_len(length).unwrap();
        let expected = format!(
            "File validation failed for /w/large: File is too large ({shown}MB). Maximum allowed size is 10MB."
        );
        let path = desk.path("large");
        for request in [
            EditRequest::new("view", &path),
            EditRequest { old_str: Some("a"), ..EditRequest::new("str_replace", &path) },
            EditRequest { insert_line: Some(0), new_str: Some(""), ..EditRequest::new("insert", &path) },
            EditRequest::new("undo_edit", &path),
        ] {
            assert_eq!(desk.ask(request), Err(expected.clone()));
        }
    }
    let mut file = fs::File::create(desk.file("large.pdf")).unwrap();
    file.write_all(b"%PDF-1.4").unwrap();
    file.set_len(limit as u64 + 1).unwrap();
    assert!(desk.view("large.pdf").unwrap_err().contains("File is too large (10.0MB)"));
}

#[test]
fn ten_edits_of_a_file_can_be_undone() {
    let desk = desk();
    for number in 0..12 {
        desk.insert("two", 0, &number.to_string()).unwrap();
    }
    let undone = std::iter::from_fn(|| desk.undo("two").ok()).count();
    assert_eq!(undone, 10);
    assert_eq!(desk.content("two"), b"1\n0\ntest one\ntest two\n");
}

#[test]
fn a_text_with_very_many_matches_has_a_short_message() {
    let desk = desk();
    desk.put("lines", "\n".repeat(1_000_000));
    for old in ["", "\n"] {
        let error = desk.replace("lines", old, "x").unwrap_err().to_string();
        assert!(
            error.len() < 20_000
                && error.contains("in lines [1, 2, 3, ")
                && error.ends_with(" 2000, ...]. Please ensure it is unique.")
        );
    }
}

#[test]
fn documents_are_shown_or_told_why_not() {
    let desk = desk();
    let head = |name: &str| format!("Here's the content of the file /w/{name} displayed in Markdown format:\n");
    desk.put("note.docx", "only text\n\n\n\nhere  \n");
    assert_eq!(desk.view("note.docx"), Ok(format!("{}only text\n\nhere\n\n", head("note.docx"))));
    desk.put("sound.MP3", b"ID3\x03");
    assert_eq!(
        desk.view("sound.MP3"),
        Ok(format!("{}### Audio Transcript:\nError. Could not transcribe this audio.\n", head("sound.MP3")))
    );
    for (content, reason) in
        [(&b""[..], "the file is empty"), (b"%PDF-1.4\n\0\xff", "the file is not a valid document: ")]
    {
        desk.put("damaged.pdf", content);
        let error = desk.view("damaged.pdf").unwrap_err();
        assert!(error.starts_with(&format!("Error in converting file to Markdown: {reason}")), "{error}");
        assert!(error.ends_with(". Please use Python code to read /w/damaged.pdf"), "{error}");
    }
    let path = desk.path("damaged.pdf");
    let request = EditRequest { old_str: Some("a"), ..EditRequest::new("str_replace", &path) };
    assert!(desk.ask(request).unwrap_err().contains("points to a binary file (.pdf)"));
}
