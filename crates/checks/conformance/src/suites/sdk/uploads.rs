//! Files that are stored (`agent-server-workspace-api` 5).

use serde_json::{Value, json};

use super::calls::judged;
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem},
    ground::sdk_upload as upload,
    server::{Part, Request},
};

const SPEC: &str = "agent-server-workspace-api 5";
const PATH: &str = "/api/file/upload";

fn stored(size: u64) -> Expect {
    Expect::whole(json!({"success": true, "file_size": size}))
}

fn refused(detail: &str) -> Expect {
    Expect::detail(400, detail)
}

/// A refusal that names what is missing.
fn misses(loc: Value) -> Expect {
    Expect::status(422).at("/detail/0/type", "missing").at("/detail/0/loc", loc)
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = stores();
    checks.extend(refusals());
    checks
}

fn stores() -> Vec<Check> {
    vec![
        Check::new("upload/new", "a file is stored, with the directories above it", SPEC)
            .send(upload("{dir}/a/b c/ü+&%20#?", b"12345"), stored(5))
            .prepare("test \"$(cat '{dir}/a/b c/ü+&%20#?')\" = 12345"),
        Check::new("upload/bytes", "all bytes are stored as they are", SPEC).code(|bench| Box::pin(bytes(bench))),
        Check::new("upload/replace", "a file is replaced", SPEC)
            .file("file", "a long text")
            .send(upload("{dir}/file", b"new"), stored(3))
            .prepare("test \"$(cat '{dir}/file')\" = new"),
        Check::new("upload/empty", "a file may be empty", SPEC)
            .send(upload("{dir}/empty", b""), stored(0))
            .prepare("test -f '{dir}/empty' && test ! -s '{dir}/empty'"),
        Check::new("upload/large", "a file of five megabytes is stored", SPEC)
            .send(upload("{dir}/large", &vec![b'x'; 5_000_000]), stored(5_000_000))
            .prepare("test \"$(wc -c < '{dir}/large')\" -eq 5000000"),
        Check::new("upload/dots", "a path leads where the system says", SPEC)
            .prepare("mkdir '{dir}/directory'")
            .send(upload("{dir}/directory/../through", b"1"), stored(1))
            .prepare("test -f '{dir}/through'"),
        Check::new("upload/nothing-else", "nothing else is left beside a file", SPEC)
            .send(upload("{dir}/only/file", b"1"), stored(1))
            .prepare("test \"$(ls -A '{dir}/only')\" = file"),
    ]
}

fn refusals() -> Vec<Check> {
    let path = |request: Request| request.query("path", "{dir}/x");
    vec![
        Check::new("upload/relative", "a path has to be absolute", SPEC)
            .send(upload("relative", b"1"), refused("Path must be absolute"))
            .send(upload("", b"1"), refused("Path must be absolute")),
        Check::new("upload/directory", "a directory is not replaced by a file", SPEC)
            .send(upload("{dir}", b"1"), refused("Path is a directory"))
            .prepare("test -d '{dir}'"),
        Check::new("upload/below-a-file", "nothing is stored below a file", SPEC)
            .file("file", "text")
            .send(upload("{dir}/file/below", b"1"), refused("A parent of the path is not a directory"))
            .prepare("test \"$(cat '{dir}/file')\" = text"),
        Check::new("upload/no-path", "a path is needed", SPEC)
            .send(Request::form(PATH, &[Part::file("file", "name", b"1")]), misses(json!(["query", "path"]))),
        Check::new("upload/no-file", "a file is needed, and it has a name", SPEC)
            .send(path(Request::form(PATH, &[Part::file("other", "name", b"1")])), misses(json!(["body", "file"])))
            .send(path(Request::form(PATH, &[Part::field("file", "1")])), Expect::status(422))
            .send(path(Request::json(PATH, &json!({"file": "1"}))), Expect::status(422))
            .prepare("test ! -e '{dir}/x'"),
    ]
}

async fn bytes(bench: &Bench) -> Result<(), Problem> {
    let bytes: Vec<u8> = (0..=255).collect();
    judged(bench, &upload("{dir}/bytes", &bytes), &stored(256)).await?;
    let printed = bench.shell("od -An -v -tu1 '{dir}/bytes'").await?;
    let expected: Vec<String> = bytes.iter().map(u8::to_string).collect();
    let got: Vec<&str> = printed.split_whitespace().collect();
    Problem::unless(got == expected, "an upload", "256 bytes, from 0 to 255", &printed)
}
