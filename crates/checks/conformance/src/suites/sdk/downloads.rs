//! Files that are read (`agent-server-workspace-api` 5).

use serde_json::json;

use super::calls::judged;
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Text, Want},
    server::{Answer, Request},
};

const SPEC: &str = "agent-server-workspace-api 5";

fn get(path: &str) -> Request {
    Request::get("/api/file/download").query("path", path)
}

fn header(name: &'static str, value: &str) -> Want {
    Want::Header(name, Text::Is(value.to_owned()))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = wholes();
    checks.extend(parts());
    checks.extend(refusals());
    checks
}

fn wholes() -> Vec<Check> {
    vec![
        Check::new("download/file", "a file comes with what a client needs to store it", SPEC)
            .file("file", "0123456789")
            .send(
                get("{dir}/file"),
                Expect::status(200)
                    .want(Want::Body(b"0123456789"))
                    .want(header("content-type", "application/octet-stream"))
                    .want(header("content-length", "10"))
                    .want(header("accept-ranges", "bytes"))
                    .want(header("content-disposition", "attachment; filename=\"file\""))
                    .want(Want::Header("last-modified", Text::Ends(" GMT".to_owned())))
                    .want(Want::Header("etag", Text::Starts("\"".to_owned()))),
            ),
        Check::new("download/bytes", "all bytes come as they are", SPEC)
            .file("bytes", (0..=255).collect::<Vec<u8>>())
            .code(|bench| Box::pin(bytes(bench))),
        Check::new("download/empty", "a file may be empty", SPEC)
            .file("empty", "")
            .send(get("{dir}/empty"), Expect::status(200).want(Want::Body(b"")).want(header("content-length", "0"))),
        Check::new("download/names", "a name that is more than letters is encoded", SPEC)
            .file("a b", "1")
            .file("ü.txt", "2")
            .send(
                get("{dir}/a b"),
                Expect::status(200)
                    .want(Want::Body(b"1"))
                    .want(header("content-disposition", "attachment; filename*=utf-8''a%20b")),
            )
            .send(
                get("{dir}/ü.txt"),
                Expect::status(200)
                    .want(Want::Body(b"2"))
                    .want(header("content-disposition", "attachment; filename*=utf-8''%C3%BC.txt")),
            ),
        Check::new("download/link", "links are followed", SPEC)
            .file("file", "text")
            .prepare("ln -s file '{dir}/link'")
            .send(get("{dir}/link"), Expect::status(200).want(Want::Body(b"text")))
            .send(get("{dir}/./link"), Expect::status(200).want(Want::Body(b"text"))),
        Check::new("download/large", "a file of five megabytes is whole", SPEC)
            .prepare("head -c 5000000 /dev/zero > '{dir}/large'")
            .code(|bench| Box::pin(large(bench))),
    ]
}

fn parts() -> Vec<Check> {
    let ranges = [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=9-9", "9", "bytes 9-9/10"),
        ("bytes=5-", "56789", "bytes 5-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=5-100", "56789", "bytes 5-9/10"),
    ];
    let parts = ranges.into_iter().fold(
        Check::new("download/range", "a part of a file can be asked for", SPEC).file("file", "0123456789"),
        |check, (range, content, told)| {
            let expect = Expect::status(206)
                .want(Want::Body(content.as_bytes()))
                .want(header("content-range", told))
                .want(header("content-length", &content.len().to_string()));
            check.send(get("{dir}/file").header("range", range), expect)
        },
    );
    vec![
        parts,
        Check::new("download/range-behind", "a part behind the end is refused", SPEC)
            .file("file", "0123456789")
            .send(get("{dir}/file").header("range", "bytes=10-20"), Expect::status(416)),
        Check::new("download/if-range", "a part of a file that has changed is the whole file", SPEC)
            .file("file", "0123456789")
            .code(|bench| Box::pin(if_range(bench))),
    ]
}

fn refusals() -> Vec<Check> {
    vec![
        Check::new("download/missing", "a file that is not there is not found", SPEC)
            .file("file", "")
            .prepare("ln -s nowhere '{dir}/dangling'")
            .send(get("{dir}/no such"), Expect::detail(404, "File not found"))
            .send(get("{dir}/file/below"), Expect::detail(404, "File not found"))
            .send(get("{dir}/dangling"), Expect::detail(404, "File not found")),
        Check::new("download/not-a-file", "directories and devices are no files", SPEC)
            .send(get("{dir}"), Expect::detail(400, "Path is not a file"))
            .send(get("/dev/null"), Expect::detail(400, "Path is not a file")),
        Check::new("download/relative", "a path has to be absolute", SPEC)
            .send(get("relative"), Expect::detail(400, "Path must be absolute"))
            .send(get("~/file"), Expect::detail(400, "Path must be absolute"))
            .send(get(""), Expect::detail(400, "Path must be absolute")),
        Check::new("download/no-path", "a path is needed", SPEC).send(
            Request::get("/api/file/download"),
            Expect::status(422).at("/detail/0/type", "missing").at("/detail/0/loc", json!(["query", "path"])),
        ),
    ]
}

async fn whole(bench: &Bench, path: &str) -> Result<Answer, Problem> {
    judged(bench, &get(path), &Expect::status(200)).await
}

async fn bytes(bench: &Bench) -> Result<(), Problem> {
    let expected: Vec<u8> = (0..=255).collect();
    let got = whole(bench, "{dir}/bytes").await?.body;
    Problem::unless(got == expected, "a download", "256 bytes, from 0 to 255", &format!("{got:?}"))
}

async fn large(bench: &Bench) -> Result<(), Problem> {
    let got = whole(bench, "{dir}/large").await?.body;
    let is_whole = got.len() == 5_000_000 && got.iter().all(|byte| *byte == 0);
    Problem::unless(is_whole, "a download", "5,000,000 bytes of zero", &format!("{} bytes", got.len()))
}

async fn if_range(bench: &Bench) -> Result<(), Problem> {
    let etag = whole(bench, "{dir}/file").await?.header("etag").unwrap_or_default();
    let again = whole(bench, "{dir}/file").await?.header("etag").unwrap_or_default();
    Problem::unless(etag == again, "the same file again", &etag, &again)?;
    let part = |condition: &str| get("{dir}/file").header("range", "bytes=0-3").header("if-range", condition);
    judged(bench, &part(&etag), &Expect::status(206).want(Want::Body(b"0123"))).await?;
    judged(bench, &part("\"other\""), &Expect::status(200).want(Want::Body(b"0123456789"))).await.map(drop)
}
