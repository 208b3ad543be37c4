//! `read` and `write` (`file-editor` 1, 2 and 5).

use serde_json::{Value, json};

use crate::{Check, check::Expect};

const READ: &str = "file-editor 1";
const WRITE: &str = "file-editor 2";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![slices(), read_text(), relative()];
    checks.extend(media());
    checks.extend(read_errors());
    checks.push(write_slices());
    checks.extend(writes());
    checks.extend(write_errors());
    checks
}

fn read(path: &str, more: &Value) -> Value {
    let mut action = json!({"action": "read", "args": {"path": path}});
    if let (Some(args), Some(more)) = (action["args"].as_object_mut(), more.as_object()) {
        args.extend(more.clone());
    }
    action
}

fn write(path: &str, content: &str, more: &Value) -> Value {
    let mut action = json!({"action": "write", "args": {"path": path, "content": content}});
    if let (Some(args), Some(more)) = (action["args"].as_object_mut(), more.as_object()) {
        args.extend(more.clone());
    }
    action
}

fn got(path: &str, content: &str) -> Expect {
    Expect::whole(json!({
        "message": format!("I read the file {path}."), "observation": "read", "content": content,
        "extras": {"path": path, "impl_source": "default"}
    }))
}

fn wrote(path: &str) -> Expect {
    Expect::whole(json!({
        "message": format!("I wrote to the file {path}."), "observation": "write", "content": "",
        "extras": {"path": path}
    }))
}

/// The text of numbered lines: `"245"` gives `2\n4\n5\n`.
fn lines(digits: &str) -> String {
    digits.chars().flat_map(|digit| [digit, '\n']).collect()
}

const READ_SLICES: [(i64, i64, &str); 19] = [
    (0, -1, "12345"),
    (-5, -1, "12345"),
    (0, 5, "12345"),
    (0, 6, "12345"),
    (0, 100, "12345"),
    (0, 0, "1"),
    (0, 1, "1"),
    (-5, -5, "1"),
    (0, 2, "12"),
    (1, 2, "2"),
    (1, -1, "2345"),
    (3, 3, "4"),
    (4, 5, "45"),
    (5, 5, "45"),
    (4, -1, "5"),
    (10, -1, ""),
    (2, 100, "345"),
    (2, 1, "3"),
    (0, -2, "1"),
];

fn slices() -> Check {
    let check = Check::new("read/lines", "a range of lines is cut as the table says", "file-editor 1.2");
    let check = READ_SLICES.iter().fold(check.file("n", lines("12345")), |check, (start, end, expected)| {
        check.act(read("{dir}/n", &json!({"start": start, "end": end})), got("{dir}/n", &lines(expected)))
    });
    // Fewer than two lines.
    check
        .file("one", "1")
        .file("none", "")
        .act(read("{dir}/one", &json!({"start": 0, "end": 0})), got("{dir}/one", "1"))
        .act(read("{dir}/none", &json!({"start": 0, "end": 0})), got("{dir}/none", ""))
}

fn read_text() -> Check {
    Check::new("read/text", "text comes as it is, with every line end as one newline", READ)
        .file("crlf", "a\r\nb\rc\n")
        .file("open", "a\nb")
        .file("empty", "")
        .file("unicode", "é漢😀\u{2028}x\u{85}y\n")
        .file("bom", "\u{feff}a\n")
        .act(read("{dir}/crlf", &json!({})), got("{dir}/crlf", "a\nb\nc\n"))
        .act(read("{dir}/open", &json!({})), got("{dir}/open", "a\nb"))
        .act(read("{dir}/empty", &json!({})), got("{dir}/empty", ""))
        .act(read("{dir}/unicode", &json!({})), got("{dir}/unicode", "é漢😀\u{2028}x\u{85}y\n"))
        .act(read("{dir}/bom", &json!({})), got("{dir}/bom", "\u{feff}a\n"))
}

fn relative() -> Check {
    Check::new("read/relative", "a relative path belongs to the directory of the shell", READ)
        .file("sub/{name}.txt", "x\n")
        .file("sub/gloveport-conformance.txt", "inner\n")
        .file("gloveport-conformance.txt", "outer\n")
        .run("cd {dir}/sub", Expect::ended(0))
        .act(read("gloveport-conformance.txt", &json!({})), got("{dir}/sub/gloveport-conformance.txt", "inner\n"))
        .act(read("./gloveport-conformance.txt", &json!({})), got("{dir}/sub/gloveport-conformance.txt", "inner\n"))
        .act(read("../gloveport-conformance.txt", &json!({})), got("{dir}/sub/../gloveport-conformance.txt", "outer\n"))
        .run("cd {workspace}", Expect::ended(0))
}

/// The smallest PNG image: one transparent point.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x62, 0, 1, 0, 0, 5, 0, 1,
    0x0d, 0x0a, 0x2d, 0xb4, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
const PNG_URL: &str =
    "base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGIAAQAABQABDQottAAAAABJRU5ErkJggg==";

const MEDIA: [(&str, &str); 11] = [
    ("gloveport-c.png", "image/png"),
    ("gloveport-c.PNG", "image/png"),
    ("gloveport-c.jpg", "image/jpeg"),
    ("gloveport-c.jpeg", "image/jpeg"),
    ("gloveport-c.bmp", "image/bmp"),
    ("gloveport-c.gif", "image/gif"),
    ("gloveport-c.pdf", "application/pdf"),
    ("gloveport-c.mp4", "video/mp4"),
    ("gloveport-c.webm", "video/webm"),
    ("gloveport-c.Webm", "video/webm"),
    ("gloveport-c.ogg", "audio/ogg"),
];

fn media() -> Vec<Check> {
    let check = Check::new("read/media", "media by relative paths come as data URLs", "file-editor 1.1");
    let check = MEDIA.iter().fold(check, |check, (name, _)| check.file(name, PNG));
    let check = check.run("cd {dir}", Expect::ended(0));
    let check = MEDIA.iter().fold(check, |check, (name, mime)| {
        check.act(read(name, &json!({})), got(&format!("{{dir}}/{name}"), &format!("data:{mime};{PNG_URL}")))
    });
    vec![
        check.run("cd {workspace}", Expect::ended(0)),
        Check::new("read/media-absolute", "an image by its absolute path is a binary file", "file-editor 1.1")
            .file("a.png", PNG)
            .act(read("{dir}/a.png", &json!({})), Expect::error("ERROR_BINARY_FILE"))
            .act(read("{dir}/a.png", &json!({"impl_source": "oh_aci"})), Expect::error("ERROR_BINARY_FILE")),
        Check::new(
            "read/media-text",
            "text with the name of an image by its absolute path is a data URL",
            "file-editor 1.1",
        )
        .file("a.gif", "text\n")
        .file("a.svg", "text\n")
        .act(read("{dir}/a.gif", &json!({})), got("{dir}/a.gif", "data:image/gif;base64,dGV4dAo="))
        .act(read("{dir}/a.svg", &json!({})), got("{dir}/a.svg", "text\n")),
    ]
}

fn read_errors() -> Vec<Check> {
    vec![
        Check::new("read/missing", "a missing file is an error that tells where the shell is", "file-editor 1.3")
            .run("cd {workspace}", Expect::ended(0))
            .act(
                read("{dir}/missing", &json!({})),
                Expect::error("File not found: {dir}/missing. Your current working directory is {workspace}."),
            )
            .act(
                read("gloveport-missing/x", &json!({"start": 3, "end": 4})),
                Expect::error(
                    "File not found: {workspace}/gloveport-missing/x. Your current working directory is {workspace}.",
                ),
            ),
        Check::new("read/directory", "a directory is an error", "file-editor 1.3")
            .act(read("{dir}", &json!({})), Expect::error("Path is a directory: {dir}. You can only read files")),
        Check::new("read/not-utf-8", "text in another encoding is an error", "file-editor 1.3")
            .file("latin", b"caf\xe9\n".repeat(3))
            .act(read("{dir}/latin", &json!({})), Expect::error("File could not be decoded as utf-8: {dir}/latin.")),
        Check::new("read/binary", "a binary file is an error, for both ways to read", "file-editor 5")
            .file("b", b"\x00\x01\x02\x03\xff\xfe\x00".repeat(100))
            .file("b.txt", b"\x00\x01\x02\x03text".repeat(100))
            .act(read("{dir}/b", &json!({})), Expect::error("ERROR_BINARY_FILE"))
            .act(read("{dir}/b", &json!({"impl_source": "oh_aci"})), Expect::error("ERROR_BINARY_FILE"))
            .act(read("{dir}/b.txt", &json!({})), Expect::error("ERROR_BINARY_FILE")),
        Check::new("read/not-a-directory", "a path through a file is an error of the server", "file-editor 1.3")
            .file("f", "x")
            .act(
                read("{dir}/f/x", &json!({})),
                Expect::detail(500, "Internal server error: [Errno 20] Not a directory: '{dir}/f/x'"),
            ),
    ]
}

const WRITE_SLICES: [(i64, i64, &str); 11] = [
    (0, -1, "X"),
    (1, -1, "1X"),
    (1, 2, "1X3"),
    (0, 1, "X23"),
    (2, 2, "12X3"),
    (0, 0, "X123"),
    (5, 5, "123X"),
    (-1, -1, "12X"),
    (1, 1, "1X23"),
    (0, -2, "X23"),
    (-9, 1, "X23"),
];

fn write_slices() -> Check {
    let check = Check::new("write/lines", "a range of lines is replaced as the table says", WRITE);
    let check = WRITE_SLICES.iter().fold(check, |check, (start, end, expected)| {
        check
            .file("n", lines("123"))
            .act(write("{dir}/n", "X", &json!({"start": start, "end": end})), wrote("{dir}/n"))
            .act(read("{dir}/n", &json!({})), got("{dir}/n", &lines(expected)))
    });
    // Nothing else is left.
    check.run("ls -A {dir}", Expect::ran(".keep  n", 0))
}

fn writes() -> Vec<Check> {
    vec![
        Check::new("write/newline", "every piece of the content ends with a newline", WRITE)
            .act(write("{dir}/a", "a\nb", &json!({})), wrote("{dir}/a"))
            .act(read("{dir}/a", &json!({})), got("{dir}/a", "a\nb\n"))
            .act(write("{dir}/b", "", &json!({})), wrote("{dir}/b"))
            .act(read("{dir}/b", &json!({})), got("{dir}/b", "\n"))
            .act(write("{dir}/c", "a\n", &json!({})), wrote("{dir}/c"))
            .act(read("{dir}/c", &json!({})), got("{dir}/c", "a\n\n"))
            .act(write("{dir}/d", "a", &json!({"start": 5})), wrote("{dir}/d"))
            .act(read("{dir}/d", &json!({})), got("{dir}/d", "a\n"))
            .act(write("{dir}/c", "é漢😀", &json!({})), wrote("{dir}/c"))
            .run("cat {dir}/c | od -An -tx1 | tr -d ' \\n'", Expect::ran("c3a9e6bca2f09f98800a", 0)),
        Check::new("write/parents", "missing directories are made", WRITE)
            .act(write("{dir}/x/y/z.txt", "x", &json!({})), wrote("{dir}/x/y/z.txt"))
            .act(read("{dir}/x/y/z.txt", &json!({})), got("{dir}/x/y/z.txt", "x\n")),
        Check::new("write/relative", "a relative path belongs to the directory of the shell", WRITE)
            .run("cd {dir}", Expect::ended(0))
            .act(write("rel.txt", "x", &json!({})), wrote("{dir}/rel.txt"))
            .act(write("./s/rel.txt", "x", &json!({})), wrote("{dir}/s/rel.txt"))
            .run("cd {workspace}; cat {dir}/rel.txt {dir}/s/rel.txt", Expect::ran("x\nx", 0)),
        Check::new("write/mode", "a new file gets mode 0664, one that is there keeps its own", WRITE)
            .act(write("{dir}/new", "x", &json!({})), wrote("{dir}/new"))
            .file("old", "x")
            .prepare("chmod 751 {dir}/old")
            .act(write("{dir}/old", "y", &json!({})), wrote("{dir}/old"))
            .run("stat -c %a {dir}/new {dir}/old", Expect::ran("664\n751", 0)),
        Check::new("write/link", "a link stays, and its target is written", WRITE)
            .file("target", "x\n")
            .prepare("ln -s target {dir}/link")
            .act(write("{dir}/link", "y", &json!({})), wrote("{dir}/link"))
            .run("readlink {dir}/link; cat {dir}/target", Expect::ran("target\ny", 0)),
        Check::new("write/crlf", "line ends of the rest become newlines", "file-editor, preamble")
            .file("f", "a\r\nb\r\n")
            .act(write("{dir}/f", "X", &json!({"start": 0, "end": 1})), wrote("{dir}/f"))
            .act(read("{dir}/f", &json!({})), got("{dir}/f", "X\nb\n"))
            .file("open", "1\n2")
            .act(write("{dir}/open", "X", &json!({"start": 9})), wrote("{dir}/open"))
            .act(read("{dir}/open", &json!({})), got("{dir}/open", "1\n2X\n")),
    ]
}

fn write_errors() -> Vec<Check> {
    vec![
        Check::new("write/directory", "a directory is an error", WRITE).act(
            write("{dir}", "x", &json!({})),
            Expect::error("Path is a directory: {dir}. You can only write to files"),
        ),
        Check::new("write/not-utf-8", "a file in another encoding is an error and stays as it is", WRITE)
            .file("latin", b"caf\xe9\n")
            .act(
                write("{dir}/latin", "x", &json!({"start": 1})),
                Expect::error("File could not be decoded as utf-8: {dir}/latin"),
            )
            .run("od -An -tx1 {dir}/latin | tr -d ' \\n'", Expect::ran("636166e90a", 0)),
        Check::new("write/not-a-directory", "a path through a file is an error of the server", WRITE)
            .file("f", "x")
            .act(
                write("{dir}/f/x", "x", &json!({})),
                Expect::status(500).starts("/detail", "Internal server error: [Errno "),
            )
            .run("cat {dir}/f", Expect::ran("x", 0)),
    ]
}
