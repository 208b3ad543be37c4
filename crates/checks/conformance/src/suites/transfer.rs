//! `/upload_file` and `/download_files` (`action-execution-api` 2.7 and 2.8).

use serde_json::json;

use crate::{
    Check,
    bench::{Bench, members_of, zip_of},
    check::{Expect, Problem, Text, Want},
    server::{Answer, Request},
};

const UPLOAD: &str = "action-execution-api 2.7";
const DOWNLOAD: &str = "action-execution-api 2.8";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = uploads();
    checks.extend(bad_uploads());
    checks.extend(zip_uploads());
    checks.extend(downloads());
    checks
}

fn up(destination: &str, name: &str, content: &[u8]) -> Request {
    Request::upload(destination, "file", name, content)
}

fn stored(name: &str, destination: &str, recursive: bool) -> Expect {
    Expect::whole(json!({"filename": name, "destination": destination, "recursive": recursive}))
}

fn uploads() -> Vec<Check> {
    vec![
        Check::new("upload/file", "bytes arrive as they were sent, in a directory that is made", UPLOAD)
            .send(
                up("{dir}/new/deep", "a b.bin", b"\x00\x01\xff\r\n--\r\n\xfe"),
                stored("a b.bin", "{dir}/new/deep", false),
            )
            .run("od -An -tx1 '{dir}/new/deep/a b.bin' | tr -d ' \\n'", Expect::ran("0001ff0d0a2d2d0d0afe", 0)),
        Check::new("upload/empty", "an empty file arrives", UPLOAD)
            .send(up("{dir}", "empty", b""), stored("empty", "{dir}", false))
            .run("stat -c %s {dir}/empty", Expect::ran("0", 0)),
        Check::new("upload/over", "a file that is there keeps its mode and gets the new bytes", UPLOAD)
            .file("a.txt", "a long first text")
            .prepare("chmod 640 {dir}/a.txt")
            .send(up("{dir}", "a.txt", b"short"), stored("a.txt", "{dir}", false))
            .run("cat {dir}/a.txt; stat -c ' %a' {dir}/a.txt", Expect::ran("short 640", 0)),
        Check::new("upload/unicode-name", "a name that is not ASCII arrives", UPLOAD)
            .send(up("{dir}", "é漢😀.txt", b"x"), stored("é漢😀.txt", "{dir}", false))
            .run("cat {dir}/é漢😀.txt", Expect::ran("x", 0)),
        Check::new("upload/large", "ten megabytes arrive", UPLOAD).code(|bench| Box::pin(large(bench))),
        Check::new("upload/recursive-words", "all words for yes and no are understood", UPLOAD)
            .send(up("{dir}", "a", b"x").query("recursive", "false"), stored("a", "{dir}", false))
            .send(up("{dir}", "a", b"x").query("recursive", "0"), stored("a", "{dir}", false))
            .send(up("{dir}", "a", b"x").query("recursive", "no"), stored("a", "{dir}", false))
            .send(up("{dir}", "a", b"x").query("recursive", "OFF"), stored("a", "{dir}", false))
            .send(up("{dir}", "z.zip", &one()).query("recursive", "yes"), stored("z.zip", "{dir}", true))
            .send(up("{dir}", "z.zip", &one()).query("recursive", "On"), stored("z.zip", "{dir}", true))
            .send(up("{dir}", "z.zip", &one()).query("recursive", "1"), stored("z.zip", "{dir}", true)),
    ]
}

fn one() -> Vec<u8> {
    zip_of(&[("one", b"1")])
}

fn bad_uploads() -> Vec<Check> {
    vec![
        Check::new("upload/relative", "a relative destination is refused", UPLOAD)
            .send(up("relative/x", "a", b"x"), Expect::detail(500, "400: Destination must be an absolute path")),
        Check::new("upload/recursive-not-zip", "a recursive upload must be a zip file", UPLOAD).send(
            up("{dir}", "a.txt", b"x").query("recursive", "true"),
            Expect::detail(500, "400: Recursive uploads must be zip files"),
        ),
        Check::new("upload/recursive-nonsense", "another word than yes or no is refused", UPLOAD).send(
            up("{dir}", "a", b"x").query("recursive", "perhaps"),
            Expect::status(422).at("/detail", "Invalid request parameters"),
        ),
        Check::new("upload/no-file", "a body without the file is refused", UPLOAD)
            .send(
                Request::upload("{dir}", "other", "a", b"x"),
                Expect::status(422).at("/detail", "Invalid request parameters"),
            )
            .send(
                Request::post("/upload_file", "{}").query("destination", "{dir}"),
                Expect::status(422).at("/detail", "Invalid request parameters"),
            ),
        Check::new("upload/bad-zip", "a zip file that is none is an error", UPLOAD)
            .send(up("{dir}/z", "bad.zip", b"no zip"), Expect::status(500).has("/detail", "is not a zip file")),
        Check::new("upload/destination-is-a-file", "a destination that is a file is an error", UPLOAD)
            .file("f", "x")
            .send(up("{dir}/f", "a", b"x"), Expect::status(500))
            .run("cat {dir}/f", Expect::ran("x", 0)),
    ]
}

fn zip_uploads() -> Vec<Check> {
    let tree = zip_of(&[("top/a.txt", b"a"), ("top/sub/b.txt", b"b"), ("c.txt", b"c")]);
    let evil = zip_of(&[
        ("../escaped", b"x"),
        ("/tmp/gloveport-conformance-absolute", b"x"),
        ("d/../../escaped", b"x"),
        ("good", b"g"),
    ]);
    let list = "cd {dir}/z; find . -type f | sort | tr '\\n' ' '; cd - >/dev/null";
    vec![
        Check::new("upload/zip", "a zip file is unpacked and removed, recursive or not", UPLOAD)
            .file("z/c.txt", "old and longer")
            .send(up("{dir}/z", "t.zip", &tree), stored("t.zip", "{dir}/z", false))
            .run(list, Expect::ran("./c.txt ./top/a.txt ./top/sub/b.txt", 0))
            .run("cat {dir}/z/c.txt {dir}/z/top/sub/b.txt", Expect::ran("cb", 0))
            .send(up("{dir}/z", "u.zip", &one()).query("recursive", "true"), stored("u.zip", "{dir}/z", true))
            .run(list, Expect::ran("./c.txt ./one ./top/a.txt ./top/sub/b.txt", 0)),
        Check::new("upload/zip-empty", "an empty zip file is unpacked to nothing", UPLOAD)
            .send(up("{dir}/z", "e.zip", &zip_of(&[])), stored("e.zip", "{dir}/z", false))
            .run("ls -A {dir}/z", Expect::ran("", 0)),
        Check::new("upload/zip-upper-case", "another case of the ending is an ordinary file", UPLOAD)
            .send(up("{dir}/z", "T.ZIP", &tree), stored("T.ZIP", "{dir}/z", false))
            .run(list, Expect::ran("./T.ZIP", 0)),
        Check::new("upload/zip-escape", "members that lead out of the destination are left out", UPLOAD)
            .prepare("rm -f /tmp/gloveport-conformance-absolute")
            .send(up("{dir}/z", "evil.zip", &evil), stored("evil.zip", "{dir}/z", false))
            .run(list, Expect::ran("./good", 0))
            .run(
                "ls -d {dir}/escaped {dir}/../escaped /tmp/gloveport-conformance-absolute 2>/dev/null | wc -l",
                Expect::ran("0", 0),
            ),
    ]
}

async fn large(bench: &Bench) -> Result<(), Problem> {
    let content: Vec<u8> =
        (0..10 * 1024 * 1024_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let answer = bench.send(&up("{dir}", "large.bin", &content)).await?;
    Problem::unless(answer.status == 200, "an upload of 10 MiB", "status 200", &answer.value().to_string())?;
    let got = download(bench, "{dir}").await?;
    let same = members_of(&got.body)
        .is_ok_and(|members| members.iter().any(|(name, bytes)| name == "large.bin" && *bytes == content));
    Problem::unless(same, "the download of it", "the same bytes", &format!("{} bytes of zip", got.body.len()))
}

fn downloads() -> Vec<Check> {
    vec![
        Check::new("download/tree", "all regular files below a directory come, links as their targets", DOWNLOAD)
            .code(|bench| Box::pin(tree(bench))),
        Check::new("download/headers", "the answer says what it is", DOWNLOAD)
            .prepare("mkdir {dir}/d; echo x > {dir}/d/x")
            .send(
                Request::get("/download_files").query("path", "{dir}/d"),
                Expect::status(200)
                    .want(Want::Header("content-type", Text::Is("application/zip".to_owned())))
                    .want(Want::Header("content-disposition", Text::Is("attachment; filename=\"d.zip\"".to_owned()))),
            )
            .send(
                Request::get("/download_files").query("path", "{dir}/d/"),
                Expect::status(200)
                    .want(Want::Header("content-disposition", Text::Is("attachment; filename=\".zip\"".to_owned()))),
            ),
        Check::new("download/unicode-name", "a name that is not ASCII is encoded", DOWNLOAD)
            .prepare("mkdir {dir}/é")
            .send(
                Request::get("/download_files").query("path", "{dir}/é"),
                Expect::status(200).want(Want::Header(
                    "content-disposition",
                    Text::Is("attachment; filename*=utf-8''%C3%A9.zip".to_owned()),
                )),
            ),
        Check::new("download/file", "a regular file gives an empty zip file", DOWNLOAD).file("f.txt", "x").code(
            |bench| {
                Box::pin(async {
                    let answer = download(bench, "{dir}/f.txt").await?;
                    let empty = answer.status == 200 && answer.body.len() == 22;
                    Problem::unless(
                        empty,
                        "the download of a file",
                        "22 bytes",
                        &format!("{} {:?}", answer.status, answer.body),
                    )
                })
            },
        ),
        Check::new("download/no-path", "a missing path is refused", DOWNLOAD)
            .send(Request::get("/download_files"), Expect::status(422).at("/detail", "Invalid request parameters")),
        Check::new("download/relative", "a relative path is refused", DOWNLOAD).send(
            Request::get("/download_files").query("path", "relative"),
            Expect::detail(500, "400: Path must be an absolute path"),
        ),
        Check::new("download/missing", "a path that does not exist is an error", DOWNLOAD).send(
            Request::get("/download_files").query("path", "{dir}/missing"),
            Expect::detail(500, "404: File not found"),
        ),
    ]
}

async fn download(bench: &Bench, path: &str) -> Result<Answer, Problem> {
    bench.send(&Request::get("/download_files").query("path", path)).await
}

async fn tree(bench: &Bench) -> Result<(), Problem> {
    bench
        .shell(
            "mkdir -p {dir}/d/sub/deep {dir}/d/empty; cd {dir}/d; printf a > a; printf b > sub/deep/b; printf h > .h; \
             printf '\\0\\377' > bin; ln -s a to-a; ln -s sub to-sub; : > nothing; cd - >/dev/null",
        )
        .await?;
    let answer = download(bench, "{dir}/d").await?;
    let expected: Vec<(&str, &[u8])> =
        vec![(".h", b"h"), ("a", b"a"), ("bin", b"\x00\xff"), ("nothing", b""), ("sub/deep/b", b"b"), ("to-a", b"a")];
    let expected: Vec<(String, Vec<u8>)> =
        expected.into_iter().map(|(name, content)| (name.to_owned(), content.to_vec())).collect();
    let got = members_of(&answer.body);
    Problem::unless(
        got.as_ref() == Ok(&expected),
        "the download of a tree",
        &format!("{expected:?}"),
        &format!("status {}: {got:?}", answer.status),
    )
}
