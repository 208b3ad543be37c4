//! Files (`swe-rex-api` 2 and 3).

use serde_json::{Value, json};

use super::calls::raised_as;
use crate::{
    Check,
    bench::{Bench, zip_of},
    check::{Expect, Problem},
    ground::swerex_upload,
    server::{Part, Request},
};

const SPEC: &str = "swe-rex-api 3";

fn read(path: &str) -> Request {
    Request::json("/read_file", &json!({"path": path}))
}

fn read_as(path: &str, encoding: &str, errors: Option<&str>) -> Request {
    Request::json("/read_file", &json!({"path": path, "encoding": encoding, "errors": errors}))
}

fn write(path: &str, content: &str) -> Request {
    Request::json("/write_file", &json!({"path": path, "content": content}))
}

fn content(text: &str) -> Expect {
    Expect::whole(json!({"content": text}))
}

fn done() -> Expect {
    Expect::whole(json!({}))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = texts();
    checks.extend(encodings());
    checks.extend(uploads());
    checks
}

fn texts() -> Vec<Check> {
    vec![
        Check::new("files/write", "what was written is read", SPEC)
            .send(write("{dir}/file", "grün 😀\n"), done())
            .send(read("{dir}/file"), content("grün 😀\n")),
        Check::new("files/parents", "missing directories are made", SPEC)
            .send(write("{dir}/a/b c/file", "x"), done())
            .send(read("{dir}/a/b c/file"), content("x")),
        Check::new("files/replace", "a file is replaced", SPEC)
            .send(write("{dir}/file", "a long text"), done())
            .send(write("{dir}/file", ""), done())
            .send(read("{dir}/file"), content("")),
        Check::new("files/line-ends", "line ends of other systems are read as those of this one", SPEC)
            .file("lines", "a\r\nb\rc\n")
            .send(read("{dir}/lines"), content("a\nb\nc\n")),
        Check::new("files/missing", "a file that is not there is an error of Python", SPEC).send(
            read("{dir}/no such"),
            raised_as("builtins.FileNotFoundError")
                .is("/swerexception/message", "[Errno 2] No such file or directory: '{dir}/no such'"),
        ),
        Check::new("files/directory", "a directory is no file", SPEC).send(
            read("{dir}"),
            raised_as("builtins.IsADirectoryError").is("/swerexception/message", "[Errno 21] Is a directory: '{dir}'"),
        ),
        Check::new("files/large", "a file of a megabyte is whole", SPEC).code(|bench| Box::pin(large(bench))),
    ]
}

fn encodings() -> Vec<Check> {
    vec![
        Check::new("files/encoding", "a file is read in another encoding", SPEC)
            .file("file", "grün\n")
            .send(read_as("{dir}/file", "latin-1", None), content("grÃ¼n\n"))
            .send(read_as("{dir}/file", "utf-8", Some("strict")), content("grün\n")),
        Check::new("files/errors", "what cannot be read is replaced, ignored or shown by its number", SPEC)
            .file("bytes", b"a\xffb".to_vec())
            .send(read_as("{dir}/bytes", "utf-8", Some("replace")), content("a\u{fffd}b"))
            .send(read_as("{dir}/bytes", "utf-8", Some("ignore")), content("ab"))
            .send(read_as("{dir}/bytes", "utf-8", Some("backslashreplace")), content("a\\xffb"))
            .send(read_as("{dir}/bytes", "ascii", Some("ignore")), content("ab")),
        Check::new("files/not-text", "a file that is no text is an error of Python", SPEC)
            .file("bytes", b"a\xffb".to_vec())
            .send(read("{dir}/bytes"), raised_as("builtins.UnicodeDecodeError")),
    ]
}

fn uploads() -> Vec<Check> {
    vec![
        Check::new("upload/file", "a file is stored as it is, with the directories above it", SPEC)
            .code(|bench| Box::pin(file(bench))),
        Check::new("upload/replace", "an upload replaces a file", SPEC)
            .file("file", "a long text")
            .send(swerex_upload("{dir}/file", b"new", false), done())
            .send(read("{dir}/file"), content("new")),
        Check::new("upload/default", "nothing is unpacked unless that is wanted", SPEC)
            .send(
                Request::form(
                    "/upload",
                    &[Part::file("file", "a.zip", b"PK"), Part::field("target_path", "{dir}/a.zip")],
                ),
                done(),
            )
            .send(read("{dir}/a.zip"), content("PK")),
        Check::new("upload/unzip", "a tree comes as an archive, and goes into what is there", SPEC)
            .code(|bench| Box::pin(tree(bench))),
        Check::new("upload/invalid", "an upload without a file or a target is refused", SPEC)
            .send(Request::form("/upload", &[Part::field("target_path", "{dir}/x")]), Expect::status(422))
            .send(Request::form("/upload", &[Part::file("file", "x", b"x")]), Expect::status(422)),
    ]
}

async fn judged(bench: &Bench, request: &Request, expect: &Expect) -> Result<(), Problem> {
    let answer = bench.send(request).await?;
    expect.judge(&format!("{} {}", request.method, request.path), &answer, bench).map(drop)
}

async fn large(bench: &Bench) -> Result<(), Problem> {
    let text = "0123456789abcde\n".repeat(65_536);
    judged(bench, &write("{dir}/large", &text), &done()).await?;
    let answer = bench.send(&read("{dir}/large")).await?.value();
    let got = answer.get("content").and_then(Value::as_str).unwrap_or_default();
    Problem::unless(got == text, "POST /read_file", "the text that was written", &format!("{} bytes", got.len()))
}

async fn file(bench: &Bench) -> Result<(), Problem> {
    let bytes: Vec<u8> = (0..=255).collect();
    let target = format!("{}/a/b/file", bench.dir);
    judged(bench, &swerex_upload(&target, &bytes, false), &done()).await?;
    let printed = bench.shell("od -An -v -tu1 '{dir}/a/b/file'").await?;
    let expected: Vec<String> = bytes.iter().map(u8::to_string).collect();
    let got: Vec<&str> = printed.split_whitespace().collect();
    Problem::unless(got == expected, "POST /upload", "256 bytes, from 0 to 255", &printed)
}

async fn tree(bench: &Bench) -> Result<(), Problem> {
    let target = format!("{}/c/tree", bench.dir);
    let archives = [
        zip_of(&[("one", b"one".as_slice()), ("below/two", b"two".as_slice())]),
        zip_of(&[("below/three", b"three".as_slice()), ("one", b"new".as_slice())]),
    ];
    for archive in archives {
        judged(bench, &swerex_upload(&target, &archive, true), &done()).await?;
    }
    let found = bench.shell("cd '{dir}/c/tree' && cat one below/two below/three && find . -type f | wc -l").await?;
    let plain: String = found.split_whitespace().collect::<Vec<_>>().join(" ");
    Problem::unless(plain == "newtwothree3" || plain == "newtwothree 3", "two archives", "newtwothree3", &plain)
}
