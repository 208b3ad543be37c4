//! The editor: views, and what is refused (`file-editor` 3 and 4).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{Check, check::Expect};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = views();
    checks.extend(directories());
    checks.push(ranges());
    checks.push(bad_ranges());
    checks.extend(big_files());
    checks.extend(refusals());
    checks.extend(binaries());
    checks
}

/// An `edit` action.
pub(super) fn edit(command: &str, path: &str, more: &Value) -> Value {
    let mut action = json!({"action": "edit", "args": {"command": command, "path": path}});
    if let (Some(args), Some(more)) = (action["args"].as_object_mut(), more.as_object()) {
        args.extend(more.clone());
    }
    action
}

/// The whole observation of an `edit` action.
pub(super) fn edited(action: &Value, content: &str, diff: &str) -> Expect {
    let args = &action["args"];
    let path = &args["path"];
    let member = |name: &str| args.get(name).cloned().unwrap_or(Value::Null);
    Expect::whole(json!({
        "message": format!("I edited the file {}.", path.as_str().unwrap_or_default()),
        "observation": "edit",
        "content": content,
        "extras": {
            "path": path, "prev_exist": false, "old_content": member("old_str"), "new_content": member("new_str"),
            "impl_source": "oh_aci", "diff": diff, "_diff_cache": null
        }
    }))
}

impl Check {
    /// An edit and its whole observation.
    pub(super) fn edit(self, command: &str, path: &str, more: &Value, content: &str, diff: &str) -> Self {
        let action = edit(command, path, more);
        let expect = edited(&action, content, diff);
        self.act(action, expect)
    }

    /// An edit that is refused with this text.
    pub(super) fn refused(self, command: &str, path: &str, more: &Value, message: &str) -> Self {
        self.edit(command, path, more, &format!("ERROR:\n{message}"), "")
    }

    /// A view by a `read` action with a range.
    fn view(self, path: &str, range: &Value, content: &str) -> Self {
        let action = json!({"action": "read", "args": {"path": path, "impl_source": "oh_aci", "view_range": range}});
        let expect = Expect::whole(json!({
            "message": format!("I read the file {path}."), "observation": "read", "content": content,
            "extras": {"path": path, "impl_source": "oh_aci"}
        }));
        self.act(action, expect)
    }
}

/// Numbered lines under the head of a view, the first with this number.
pub(super) fn numbered(description: &str, first: usize, lines: &[&str]) -> String {
    let mut text = format!("Here's the result of running `cat -n` on {description}:\n");
    for (at, line) in lines.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{:6}\t{line}", first + at);
    }
    text
}

fn views() -> Vec<Check> {
    let c = "{dir}/c.txt";
    vec![
        Check::new("editor/view", "a file is shown with numbers, the same by both actions", "file-editor 4 row 8")
            .file("c.txt", "a\nb\nc")
            .edit("view", c, &json!({}), &numbered(c, 1, &["a", "b", "c"]), "")
            .view(c, &Value::Null, &numbered(c, 1, &["a", "b", "c"])),
        Check::new("editor/view-last-newline", "a newline at the end shows one more, empty line", "file-editor 3.4")
            .file("c.txt", "a\nb\n")
            .edit("view", c, &json!({}), &numbered(c, 1, &["a", "b", ""]), ""),
        Check::new("editor/view-empty", "an empty file shows one empty line", "file-editor 3.4")
            .file("c.txt", "")
            .edit("view", c, &json!({}), &numbered(c, 1, &[""]), "")
            .view(c, &Value::Null, &numbered(c, 1, &[""])),
        Check::new("editor/view-texts", "text of all kinds is shown as text mode reads it", "file-editor 3.7")
            .file("crlf", "a\r\nb\rc")
            .file("tabs", "\ta\n\t\tb  \n")
            .file("unicode", "é漢😀\n\u{feff}x")
            .file("bom", "\u{feff}a\nb")
            .edit("view", "{dir}/crlf", &json!({}), &numbered("{dir}/crlf", 1, &["a", "b", "c"]), "")
            .edit("view", "{dir}/tabs", &json!({}), &numbered("{dir}/tabs", 1, &["\ta", "\t\tb  ", ""]), "")
            .edit("view", "{dir}/unicode", &json!({}), &numbered("{dir}/unicode", 1, &["é漢😀", "\u{feff}x"]), "")
            .edit("view", "{dir}/bom", &json!({}), &numbered("{dir}/bom", 1, &["a", "b"]), ""),
        Check::new(
            "editor/path-form",
            "slashes and single dots in a path collapse, double dots stay",
            "file-editor 3.1",
        )
        .file("c.txt", "a")
        .file("d/x", "x")
        .edit("view", "{dir}//./c.txt", &json!({}), &numbered(c, 1, &["a"]), "")
        .edit("view", "{dir}/d/../c.txt", &json!({}), &numbered("{dir}/d/../c.txt", 1, &["a"]), "")
        .refused(
            "view",
            "{dir}/none/",
            &json!({}),
            "Invalid `path` parameter: {dir}/none. The path {dir}/none does not exist. Please provide a valid path.",
        ),
    ]
}

fn directories() -> Vec<Check> {
    let head = "Here's the files and directories up to 2 levels deep in {dir}/w, excluding hidden items:\n";
    let tree = format!(
        "{head}{{dir}}/w/\n{{dir}}/w/Z.txt\n{{dir}}/w/a b.txt\n{{dir}}/w/sub/\n{{dir}}/w/sub/deep/\n{{dir}}/w/sub/x\n\
         {{dir}}/w/to-sub/\n{{dir}}/w/to-sub/deep/\n{{dir}}/w/to-sub/x"
    );
    let hidden =
        "\n\n2 hidden files/directories in this directory are excluded. You can use 'ls -la {dir}/w' to see them.";
    vec![
        Check::new(
            "editor/view-directory",
            "a directory is listed to two levels, without hidden names",
            "file-editor 3.5",
        )
        .prepare(
            "mkdir -p {dir}/w/sub/deep/deeper; cd {dir}/w; touch Z.txt 'a b.txt' sub/x sub/.h sub/deep/y; \
                 ln -s sub to-sub; cd - >/dev/null",
        )
        .edit("view", "{dir}/w", &json!({}), &tree, "")
        .edit("view", "{dir}/w/", &json!({}), &tree, "")
        .prepare("mkdir {dir}/w/.hidden; touch {dir}/w/.env {dir}/w/.hidden/y")
        .edit("view", "{dir}/w", &json!({}), &format!("{tree}{hidden}"), "")
        .view("{dir}/w", &json!([]), &format!("{tree}{hidden}")),
        Check::new("editor/view-hidden-directory", "a directory that is itself hidden is listed", "file-editor 3.5")
            .file(".h/a", "x")
            .edit(
                "view",
                "{dir}/.h",
                &json!({}),
                "Here's the files and directories up to 2 levels deep in {dir}/.h, excluding hidden items:\n\
                 {dir}/.h/\n{dir}/.h/a",
                "",
            ),
        Check::new("editor/view-directory-range", "a range for a directory is refused", "file-editor 3.5")
            .file("w/a", "x")
            .view(
                "{dir}/w",
                &json!([1, 2]),
                "ERROR:\nInvalid `view_range` parameter: [1, 2]. The `view_range` parameter is not allowed when `path` \
                 points to a directory.",
            ),
    ]
}

fn thirty() -> String {
    super::lines("Line ", 30)
}

fn ranges() -> Check {
    let f = "{dir}/f";
    let whole: Vec<String> = (1..=30).map(|number| format!("Line {number}")).chain([String::new()]).collect();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let last = numbered(f, 28, &["Line 28", "Line 29", "Line 30"]);
    let note = "NOTE: We only show up to 30 since there're only 30 lines in this file.\n";
    Check::new("editor/view-range", "a range of lines is shown", "file-editor 4 rows 12, 13 and 17")
        .file("f", thirty())
        .view(f, &json!([28, -1]), &last)
        .view(f, &json!([28, 30]), &last)
        .view(f, &json!([28, 40]), &format!("{note}{last}"))
        .view(f, &json!([2, 3]), &numbered(f, 2, &["Line 2", "Line 3"]))
        .view(f, &json!([30, 30]), &numbered(f, 30, &["Line 30"]))
        .view(f, &json!([]), &numbered(f, 1, &whole))
}

fn bad_ranges() -> Check {
    let first = |a: i64, b: i64| {
        format!("[{a}, {b}]. Its first element `{a}` should be within the range of lines of the file: [1, 30].")
    };
    let second = |a: i64, b: i64| {
        format!("[{a}, {b}]. Its second element `{b}` should be greater than or equal to the first element `{a}`.")
    };
    let kind = |value: &str| format!("{value}. It should be a list of two integers.");
    let cases = [
        (json!([0, 2]), first(0, 2)),
        (json!([31, 32]), first(31, 32)),
        (json!([-1, 2]), first(-1, 2)),
        (json!([5, 3]), second(5, 3)),
        (json!([2, -5]), second(2, -5)),
        (json!([1]), kind("[1]")),
        (json!([1, 2, 3]), kind("[1, 2, 3]")),
        (json!(["a", 2]), kind("['a', 2]")),
        (json!([1.5, 2]), kind("[1.5, 2]")),
    ];
    let check = Check::new("editor/view-range-wrong", "a wrong range is refused", "file-editor 4 rows 14 to 16");
    cases.into_iter().fold(check.file("f", thirty()), |check, (range, message)| {
        check.view("{dir}/f", &range, &format!("ERROR:\nInvalid `view_range` parameter: {message}"))
    })
}

fn big_files() -> Vec<Check> {
    let notice = "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You \
                  should retry this tool after you have searched inside the file with `grep -n` in order to find the \
                  line numbers of what you are looking for.</NOTE>";
    // 16,000 characters are 2,285 lines of 7 characters and 5 of the next.
    let mut lines = vec!["Line 1"; 2285];
    let cut = format!("Line {notice}");
    lines.push(&cut);
    let shown = numbered("{dir}/long", 1, &lines);
    vec![
        Check::new("editor/view-long", "a long file is cut after 16,000 characters", "file-editor 4 row 33")
            .file("long", "Line 1\n".repeat(16_000))
            .edit("view", "{dir}/long", &json!({}), &shown, ""),
        Check::new("editor/too-large", "a file of more than 10 MiB is refused", "file-editor 4 row 34")
            .prepare("head -c 10485761 /dev/zero | tr '\\0' x > {dir}/large")
            .refused(
                "view",
                "{dir}/large",
                &json!({}),
                "File validation failed for {dir}/large: File is too large (10.0MB). Maximum allowed size is 10MB.",
            )
            .refused(
                "str_replace",
                "{dir}/large",
                &json!({"old_str": "x", "new_str": "y"}),
                "File validation failed for {dir}/large: File is too large (10.0MB). Maximum allowed size is 10MB.",
            ),
    ]
}

const UNKNOWN: &str = ". The allowed commands for the oh_editor tool are: view, create, str_replace, insert, undo_edit";

fn refusals() -> Vec<Check> {
    let relative = "The path should be an absolute path, starting with `/`.";
    let missing = "Invalid `path` parameter: {dir}/x. The path {dir}/x does not exist. Please provide a valid path.";
    let directory = "Invalid `path` parameter: {dir}/d. The path {dir}/d is a directory and only the `view` command can be \
                     used on directories.";
    let mut on_directory =
        Check::new("editor/directory", "a directory can only be viewed", "file-editor 3.2 step 4").file("d/a", "x");
    for (command, more) in [
        ("str_replace", json!({"old_str": "a", "new_str": "b"})),
        ("insert", json!({"insert_line": 0, "new_str": "b"})),
        ("undo_edit", json!({})),
        ("nonsense", json!({})),
    ] {
        on_directory = on_directory.refused(command, "{dir}/d", &more, directory);
    }
    vec![
        Check::new("editor/relative", "a relative path is refused", "file-editor 4 row 3")
            .refused(
                "create",
                "rel.txt",
                &json!({"file_text": "x"}),
                &format!("Invalid `path` parameter: rel.txt. {relative}"),
            )
            .refused(
                "view",
                "none/../rel.txt",
                &json!({}),
                &format!("Invalid `path` parameter: none/../rel.txt. {relative}"),
            ),
        Check::new(
            "editor/relative-hint",
            "a relative path that exists below the initial directory is suggested",
            "file-editor 4 row 4",
        )
        .prepare("mkdir {workspace}/{name}-h; echo x > {workspace}/{name}-h/a")
        .refused(
            "create",
            "{name}-h/a",
            &json!({"file_text": "x"}),
            &format!("Invalid `path` parameter: {{name}}-h/a. {relative} Maybe you meant {{workspace}}/{{name}}-h/a?"),
        )
        .prepare("rm -r {workspace}/{name}-h"),
        Check::new("editor/missing", "every command but create needs the path to exist", "file-editor 4 row 10")
            .refused("view", "{dir}/x", &json!({}), missing)
            .refused("str_replace", "{dir}/x", &json!({"old_str": "a", "new_str": "b"}), missing)
            .refused("insert", "{dir}/x", &json!({"insert_line": 0, "new_str": "b"}), missing)
            .refused("undo_edit", "{dir}/x", &json!({}), missing)
            .refused("nonsense", "{dir}/x", &json!({}), missing),
        on_directory,
        Check::new("editor/unknown", "an unknown command is named", "file-editor 4 row 35")
            .file("f", "x")
            .refused("nonsense", "{dir}/f", &json!({}), &format!("Unrecognized command nonsense{UNKNOWN}"))
            .refused("", "{dir}/f", &json!({}), &format!("Unrecognized command {UNKNOWN}")),
    ]
}

fn binaries() -> Vec<Check> {
    let only = |path: &str, kind: &str| {
        format!(
            "Invalid `path` parameter: {path}. The path {path} points to a binary file ({kind}) and only the `view` \
             command can be used on supported binary files."
        )
    };
    vec![
        Check::new("editor/binary-extension", "a document can only be viewed", "file-editor 4 row 7")
            .file("d.docx", "x")
            .refused("create", "{dir}/new.pdf", &json!({"file_text": "x"}), &only("{dir}/new.pdf", ".pdf"))
            .refused(
                "str_replace",
                "{dir}/d.docx",
                &json!({"old_str": "x", "new_str": "y"}),
                &only("{dir}/d.docx", ".docx"),
            )
            .run("ls {dir}", Expect::ran("d.docx", 0)),
        Check::new("editor/binary", "binary data is refused", "file-editor 3.7")
            .file("b", b"\x00\x01\x02\x03\xff\xfe\x00\x90".repeat(200))
            .refused(
                "view",
                "{dir}/b",
                &json!({}),
                "File validation failed for {dir}/b: File appears to be binary and this file type cannot be read or \
                 edited by this tool.",
            ),
    ]
}
