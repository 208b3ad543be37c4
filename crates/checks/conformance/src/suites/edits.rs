//! The editor: changes (`file-editor` 3.6, 3.7 and 4).

use serde_json::{Value, json};

use super::editor::numbered;
use crate::{Check, check::Expect};

const C: &str = "{dir}/c.txt";
const REVIEW: &str = "Review the changes and make sure they are as expected. Edit the file again if necessary.";
const REVIEW_INSERT: &str = "Review the changes and make sure they are as expected (correct indentation, no duplicate \
                             lines, etc). Edit the file again if necessary.";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = creates();
    checks.extend(replaces());
    checks.extend(bad_replaces());
    checks.extend(inserts());
    checks.extend(bad_inserts());
    checks.extend(undos());
    checks.extend(encodings());
    checks
}

fn replaced(path: &str, first: usize, lines: &[&str]) -> String {
    format!("The file {path} has been edited. {}{REVIEW}", numbered(&format!("a snippet of {path}"), first, lines))
}

fn inserted(path: &str, first: usize, lines: &[&str]) -> String {
    let snippet = numbered("a snippet of the edited file", first, lines);
    format!("The file {path} has been edited. {snippet}{REVIEW_INSERT}")
}

fn diff(path: &str, hunks: &str) -> String {
    format!("--- {path}\n+++ {path}\n{hunks}")
}

impl Check {
    /// The bytes of a file, in hexadecimal digits.
    fn bytes(self, path: &str, content: &[u8]) -> Self {
        let digits = gloveport_ids::hex(content);
        self.run(&format!("od -An -v -tx1 {path} | tr -d ' \\n'"), Expect::ran(&digits, 0))
    }
}

fn creates() -> Vec<Check> {
    vec![
        Check::new("editor/create", "a file is made with the very text", "file-editor 3.6")
            .edit(
                "create",
                C,
                &json!({"file_text": "a\nb\nc"}),
                "File created successfully at: {dir}/c.txt",
                &diff(C, "@@ -1 +1,3 @@\n-\n+a\n+b\n+c"),
            )
            .bytes(C, b"a\nb\nc"),
        Check::new("editor/create-empty", "an empty file is made", "file-editor 4 row 6")
            .edit("create", C, &json!({"file_text": ""}), "File created successfully at: {dir}/c.txt", "")
            .edit("view", C, &json!({}), &numbered(C, 1, &[""]), ""),
        Check::new("editor/create-over", "what exists is not overwritten", "file-editor 4 row 1")
            .file("c.txt", "old")
            .refused(
                "create",
                C,
                &json!({"file_text": "new"}),
                "Invalid `path` parameter: {dir}/c.txt. File already exists at: {dir}/c.txt. Cannot overwrite files using \
                 command `create`.",
            )
            .refused(
                "create",
                "{dir}/",
                &json!({"file_text": "new"}),
                "Invalid `path` parameter: {dir}. File already exists at: {dir}. Cannot overwrite files using command \
                 `create`.",
            )
            .bytes(C, b"old"),
        Check::new("editor/create-no-text", "a file needs a text", "file-editor 4 row 2")
            .refused("create", C, &json!({}), "Parameter `file_text` is required for command: create.")
            .refused("create", C, &json!({"file_text": null}), "Parameter `file_text` is required for command: create."),
        Check::new("editor/create-no-directory", "directories are not made", "file-editor 4 row 5").refused(
            "create",
            "{dir}/none/x",
            &json!({"file_text": "x"}),
            "Ran into [Errno 2] No such file or directory: '{dir}/none/x' while trying to write to {dir}/none/x",
        ),
    ]
}

fn replaces() -> Vec<Check> {
    let gone = diff(C, "@@ -2 +1,0 @@\n-b");
    vec![
        Check::new("editor/replace", "one occurrence is replaced", "file-editor 4 row 18")
            .file("c.txt", "a\nb\nc")
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "b", "new_str": "B"}),
                &replaced(C, 1, &["a", "B", "c"]),
                &diff(C, "@@ -2 +2 @@\n-b\n+B"),
            )
            .bytes(C, b"a\nB\nc"),
        Check::new(
            "editor/replace-lines",
            "several lines become several others, shown with four around",
            "file-editor 3.6",
        )
        .file("c.txt", super::lines("l", 20))
        .edit(
            "str_replace",
            C,
            &json!({"old_str": "l10\nl11\n", "new_str": "x\ny\nz\n"}),
            &replaced(C, 7, &["l7", "l8", "l9", "x", "y", "z", "l12", "l13", "l14", "l15", "l16", ""]),
            &diff(C, "@@ -10,2 +10,3 @@\n-l10\n-l11\n+x\n+y\n+z"),
        ),
        Check::new(
            "editor/replace-trimmed",
            "a text that is not there is searched for again without blanks around",
            "file-editor 4 row 19",
        )
        .file("c.txt", "a\nB\nc")
        .edit(
            "str_replace",
            C,
            &json!({"old_str": "  B  ", "new_str": "  BB "}),
            &replaced(C, 1, &["a", "BB", "c"]),
            &diff(C, "@@ -2 +2 @@\n-B\n+BB"),
        ),
        Check::new("editor/replace-by-nothing", "without a new text the old one is deleted", "file-editor 4 row 24")
            .file("c.txt", "a\nb\nc")
            .edit("str_replace", C, &json!({"old_str": "b\n", "new_str": null}), &replaced(C, 1, &["a", "c"]), &gone)
            .file("c.txt", "a\nb\nc")
            .edit("str_replace", C, &json!({"old_str": "b\n", "new_str": ""}), &replaced(C, 1, &["a", "c"]), &gone),
        Check::new("editor/replace-nothing-in-empty", "in an empty file the empty text is replaced", "file-editor 3.6")
            .file("c.txt", "")
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "", "new_str": "x"}),
                &replaced(C, 1, &["x"]),
                &diff(C, "@@ -1 +1 @@\n-\n+x"),
            ),
        Check::new(
            "editor/replace-special",
            "regular expressions and group references are plain text",
            "file-editor 3.6",
        )
        .file("c.txt", "a.*(b)$1\\1\nab\n")
        .edit(
            "str_replace",
            C,
            &json!({"old_str": ".*(b)$1\\1", "new_str": "\\g<0>$&{x}%s"}),
            &replaced(C, 1, &["a\\g<0>$&{x}%s", "ab", ""]),
            &diff(C, "@@ -1 +1 @@\n-a.*(b)$1\\1\n+a\\g<0>$&{x}%s"),
        ),
        Check::new("editor/replace-mode", "mode and links stay", "file-editor 3.6")
            .file("c.txt", "a")
            .prepare("chmod 750 {dir}/c.txt; ln -s c.txt {dir}/l.txt")
            .edit(
                "str_replace",
                "{dir}/l.txt",
                &json!({"old_str": "a", "new_str": "b"}),
                &replaced("{dir}/l.txt", 1, &["b"]),
                &diff("{dir}/l.txt", "@@ -1 +1 @@\n-a\n+b"),
            )
            .run("stat -c %a {dir}/c.txt; readlink {dir}/l.txt; cat {dir}/c.txt", Expect::ran("750\nc.txt\nb", 0)),
    ]
}

fn bad_replaces() -> Vec<Check> {
    let many = |old: &str, lines: &str| {
        format!(
            "No replacement was performed. Multiple occurrences of old_str `{old}` in lines {lines}. Please ensure it is \
             unique."
        )
    };
    let same =
        "Invalid `new_str` parameter: b. No replacement was performed. `new_str` and `old_str` must be different.";
    vec![
        Check::new(
            "editor/replace-many",
            "several occurrences are refused with their lines",
            "file-editor 4 rows 20 and 21",
        )
        .file("two", "This is a test file.\nThis file is for testing purposes.")
        .file("blocks", "a\nb\nc\n1\n2\n3\na\nb\nc\n")
        .file("line", "x x x\nx")
        .refused("str_replace", "{dir}/two", &json!({"old_str": "test", "new_str": "sample"}), &many("test", "[1, 2]"))
        .refused(
            "str_replace",
            "{dir}/blocks",
            &json!({"old_str": "a\nb\nc", "new_str": "d"}),
            &many("a\nb\nc", "[1, 7]"),
        )
        .refused("str_replace", "{dir}/line", &json!({"old_str": "x", "new_str": "y"}), &many("x", "[1, 2]"))
        .bytes("{dir}/line", b"x x x\nx"),
        Check::new("editor/replace-empty", "the empty text is everywhere", "file-editor 4 row 22")
            .file("c.txt", "a\nb\nc\n")
            .refused("str_replace", C, &json!({"old_str": "", "new_str": "x"}), &many("", "[1, 2, 3, 4]")),
        Check::new("editor/replace-none", "a text that is not there is refused", "file-editor 3.6")
            .file("c.txt", "a\nb\n")
            .refused(
                "str_replace",
                C,
                &json!({"old_str": " zz\n", "new_str": "x"}),
                "No replacement was performed, old_str `zz` did not appear verbatim in {dir}/c.txt.",
            ),
        Check::new("editor/replace-no-old", "the old text must be given", "file-editor 4 row 23")
            .file("c.txt", "a")
            .refused(
                "str_replace",
                C,
                &json!({"new_str": "x"}),
                "Parameter `old_str` is required for command: str_replace.",
            ),
        Check::new("editor/replace-same", "old and new text must differ", "file-editor 4 row 25")
            .file("c.txt", "a\nb")
            .refused("str_replace", C, &json!({"old_str": "b", "new_str": "b"}), same),
    ]
}

fn insert(line: &Value, text: &str) -> Value {
    json!({"insert_line": line, "new_str": text})
}

fn inserts() -> Vec<Check> {
    vec![
        Check::new("editor/insert", "lines are inserted behind a line", "file-editor 4 row 26")
            .file("c.txt", "a\nb\nc\n")
            .edit(
                "insert",
                C,
                &insert(&json!(1), "x\ny"),
                &inserted(C, 1, &["a", "x", "y", "b", "c", ""]),
                &diff(C, "@@ -1,0 +2,2 @@\n+x\n+y"),
            )
            .bytes(C, b"a\nx\ny\nb\nc\n"),
        Check::new("editor/insert-ends", "lines are inserted in front of all and behind all", "file-editor 3.6")
            .file("c.txt", "a\nb\n")
            .edit(
                "insert",
                C,
                &insert(&json!(0), "x"),
                &inserted(C, 1, &["x", "a", "b", ""]),
                &diff(C, "@@ -0,0 +1 @@\n+x"),
            )
            .edit(
                "insert",
                C,
                &insert(&json!(3), "y"),
                &inserted(C, 1, &["x", "a", "b", "y", ""]),
                &diff(C, "@@ -3,0 +4 @@\n+y"),
            )
            .bytes(C, b"x\na\nb\ny\n"),
        Check::new("editor/insert-empty", "the empty text is one empty line", "file-editor 4 row 28")
            .file("c.txt", "a\nb\n")
            .edit(
                "insert",
                C,
                &insert(&json!(1), ""),
                &inserted(C, 1, &["a", "", "b", ""]),
                &diff(C, "@@ -1,0 +2 @@\n+"),
            ),
        Check::new("editor/insert-newline", "a newline at the end gives one more line", "file-editor 3.6")
            .file("c.txt", "a\nb\n")
            .edit(
                "insert",
                C,
                &insert(&json!(1), "x\n"),
                &inserted(C, 1, &["a", "x", "", "b", ""]),
                &diff(C, "@@ -1,0 +2,2 @@\n+x\n+"),
            ),
        Check::new(
            "editor/insert-glued",
            "behind a last line without a newline the text is glued to it",
            "file-editor 3.6",
        )
        .file("c.txt", "a\nb\nc")
        .edit(
            "insert",
            C,
            &insert(&json!(3), "end"),
            &inserted(C, 1, &["a", "b", "cend", ""]),
            &diff(C, "@@ -3 +3,2 @@\n-c\n+cend\n+"),
        )
        .bytes(C, b"a\nb\ncend\n"),
        Check::new("editor/insert-window", "four lines around are shown", "file-editor 3.6")
            .file("c.txt", super::lines("l", 20))
            .edit(
                "insert",
                C,
                &insert(&json!(10), "x\ny"),
                &inserted(C, 7, &["l7", "l8", "l9", "l10", "x", "y", "l11", "l12", "l13", "l14", ""]),
                &diff(C, "@@ -10,0 +11,2 @@\n+x\n+y"),
            ),
        Check::new("editor/insert-text-number", "a number given as text is understood", "file-editor 4 row 29")
            .file("c.txt", "a\nb\n")
            .edit(
                "insert",
                C,
                &insert(&json!(" 1 "), "x"),
                &inserted(C, 1, &["a", "x", "b", ""]),
                &diff(C, "@@ -1,0 +2 @@\n+x"),
            )
            .edit(
                "insert",
                C,
                &insert(&json!("+1"), "y"),
                &inserted(C, 1, &["a", "y", "x", "b", ""]),
                &diff(C, "@@ -1,0 +2 @@\n+y"),
            ),
        Check::new("editor/insert-mode", "the mode stays", "file-editor 3.6")
            .file("c.txt", "a\n")
            .prepare("chmod 640 {dir}/c.txt")
            .edit("insert", C, &insert(&json!(0), "x"), &inserted(C, 1, &["x", "a", ""]), &diff(C, "@@ -0,0 +1 @@\n+x"))
            .run(
                "stat -c %a {dir}/c.txt",
                Expect::ran("640", 0).or(
                    Expect::ran("600", 0),
                    "the reference loses the mode; gloveport must keep it (file-editor 3.6, REF-BUG)",
                ),
            ),
    ]
}

fn bad_inserts() -> Vec<Check> {
    let range = |line: i64| {
        format!("Invalid `insert_line` parameter: {line}. It should be within the range of allowed values: [0, 2]")
    };
    vec![
        Check::new("editor/insert-out-of-range", "a line that is not there is refused", "file-editor 4 row 27")
            .file("c.txt", "a\nb\n")
            .refused("insert", C, &insert(&json!(10), "x"), &range(10))
            .refused("insert", C, &insert(&json!(3), "x"), &range(3))
            .refused("insert", C, &insert(&json!(-1), "x"), &range(-1)),
        Check::new("editor/insert-no-line", "line and text must be given", "file-editor 3.6")
            .file("c.txt", "a\n")
            .refused("insert", C, &json!({"new_str": "x"}), "Parameter `insert_line` is required for command: insert.")
            .refused("insert", C, &json!({"insert_line": 0}), "Parameter `new_str` is required for command: insert."),
        Check::new("editor/insert-nonsense", "a text that is no number is refused", "file-editor 4 row 30")
            .file("c.txt", "a\n")
            .refused("insert", C, &insert(&json!("x"), "x"), "Invalid insert_line value: 'x'. Expected an integer.")
            .refused("insert", C, &insert(&json!("1.5"), "x"), "Invalid insert_line value: '1.5'. Expected an integer.")
            .refused("insert", C, &insert(&json!(""), "x"), "Invalid insert_line value: ''. Expected an integer."),
    ]
}

fn undone(path: &str, lines: &[&str]) -> String {
    format!("Last edit to {path} undone successfully. {}", numbered(path, 1, lines))
}

fn undos() -> Vec<Check> {
    let none = "No edit history found for {dir}/c.txt.";
    vec![
        Check::new("editor/undo", "edits are undone, the newest first", "file-editor 4 row 31")
            .file("c.txt", "a\nb\n")
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "a", "new_str": "A"}),
                &replaced(C, 1, &["A", "b", ""]),
                &diff(C, "@@ -1 +1 @@\n-a\n+A"),
            )
            .edit(
                "insert",
                C,
                &insert(&json!(0), "x"),
                &inserted(C, 1, &["x", "A", "b", ""]),
                &diff(C, "@@ -0,0 +1 @@\n+x"),
            )
            .edit("undo_edit", C, &json!({}), &undone(C, &["A", "b", ""]), &diff(C, "@@ -1 +0,0 @@\n-x"))
            .edit("undo_edit", C, &json!({}), &undone(C, &["a", "b", ""]), &diff(C, "@@ -1 +1 @@\n-A\n+a"))
            .refused("undo_edit", C, &json!({}), none)
            .bytes(C, b"a\nb\n"),
        Check::new("editor/undo-nothing", "without an edit there is nothing to undo", "file-editor 4 row 32")
            .file("c.txt", "a")
            .refused("undo_edit", C, &json!({}), none),
        Check::new("editor/undo-create", "behind the creation the created text comes once more", "file-editor 3.6")
            .act(super::editor::edit("create", C, &json!({"file_text": "a"})), Expect::status(200))
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "a", "new_str": "b"}),
                &replaced(C, 1, &["b"]),
                &diff(C, "@@ -1 +1 @@\n-a\n+b"),
            )
            .edit("undo_edit", C, &json!({}), &undone(C, &["a"]), &diff(C, "@@ -1 +1 @@\n-b\n+a"))
            .edit("undo_edit", C, &json!({}), &undone(C, &["a"]), "")
            .refused("undo_edit", C, &json!({}), none),
        undo_ten(),
    ]
}

fn undo_ten() -> Check {
    let mut check =
        Check::new("editor/undo-ten", "ten edits of a file are remembered", "file-editor 3.6").file("c.txt", "v0");
    for version in 1..=12 {
        let (old, new) = (format!("v{}", version - 1), format!("v{version}"));
        let changes = diff(C, &format!("@@ -1 +1 @@\n-{old}\n+{new}"));
        check =
            check.edit("str_replace", C, &json!({"old_str": old, "new_str": new}), &replaced(C, 1, &[&new]), &changes);
    }
    for version in (2..=11).rev() {
        let (now, then) = (format!("v{}", version + 1), format!("v{version}"));
        let changes = diff(C, &format!("@@ -1 +1 @@\n-{now}\n+{then}"));
        check = check.edit("undo_edit", C, &json!({}), &undone(C, &[&then]), &changes);
    }
    check.refused("undo_edit", C, &json!({}), "No edit history found for {dir}/c.txt.")
}

fn encodings() -> Vec<Check> {
    vec![
        Check::new("editor/bom", "a byte order mark stays", "file-editor 3.7")
            .file("c.txt", "\u{feff}a\nb\n")
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "a", "new_str": "é"}),
                &replaced(C, 1, &["é", "b", ""]),
                &diff(C, "@@ -1 +1 @@\n-a\n+é"),
            )
            .bytes(C, "\u{feff}é\nb\n".as_bytes()),
        Check::new("editor/unicode", "text outside of ASCII is replaced and inserted", "file-editor 3.7")
            .file("c.txt", "é漢😀\nb\n")
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "漢", "new_str": "字字"}),
                &replaced(C, 1, &["é字字😀", "b", ""]),
                &diff(C, "@@ -1 +1 @@\n-é漢😀\n+é字字😀"),
            )
            .edit(
                "insert",
                C,
                &insert(&json!(2), "ß"),
                &inserted(C, 1, &["é字字😀", "b", "ß", ""]),
                &diff(C, "@@ -2,0 +3 @@\n+ß"),
            ),
        Check::new("editor/crlf", "a file with carriage returns is edited as lines", "file-editor, preamble")
            .file("c.txt", "a\r\nb\r\nc\r\n")
            .edit(
                "str_replace",
                C,
                &json!({"old_str": "a\nb", "new_str": "x\ny"}),
                &replaced(C, 1, &["x", "y", "c", ""]),
                &diff(C, "@@ -1,2 +1,2 @@\n-a\n-b\n+x\n+y"),
            )
            .run(
                "od -An -v -tx1 {dir}/c.txt | tr -d ' \\n'",
                Expect::ran("780a790a630a", 0)
                    .or(Expect::ran("780d0a790d0a630d0a", 0), "carriage returns may be kept (file-editor, preamble)"),
            ),
        Check::new(
            "editor/trailing-blanks",
            "blanks at the ends of lines stay in the file and not in the diff",
            "file-editor 3.9",
        )
        .file("c.txt", "a  \nb\t\n")
        .edit(
            "str_replace",
            C,
            &json!({"old_str": "b", "new_str": "c"}),
            &replaced(C, 1, &["a  ", "c\t", ""]),
            &diff(C, "@@ -2 +2 @@\n-b\n+c"),
        )
        .bytes(C, b"a  \nc\t\n"),
    ]
}
