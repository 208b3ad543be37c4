//! Files up and down over real connections.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fs::{self, File},
    io::{Cursor, Read as _, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    time::Duration,
};

use crate::common::{Answer, Server, request, within};
use bytes::Bytes;
use gloveport_archive::zip::Plan;
use gloveport_server::{ServerLimits, ServerOptions};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const FORM: &str = "multipart/form-data; boundary=limit";

/// A form with one part.
fn form(disposition: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--limit\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
    [head.as_bytes(), content, b"\r\n--limit--\r\n"].concat()
}

fn file_form(filename: &str, content: &[u8]) -> Vec<u8> {
    form(&format!("name=\"file\"; filename=\"{filename}\""), content)
}

async fn upload(server: &Server, query: &str, body: Vec<u8>) -> Answer {
    let mut post = request("POST", &format!("/upload_file{query}"), body);
    post.headers_mut().insert("content-type", FORM.parse().unwrap());
    server.connect().await.request(post).await
}

/// Everything below a directory, sorted.
fn names(root: &Path) -> Vec<String> {
    let (mut names, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            }
            names.push(entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        }
    }
    names.sort();
    names
}

fn zip_of(root: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    Plan::of_directory(root).unwrap().write_to(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn every_upload_is_answered_with_its_status_and_its_whole_body() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path().join("up");
        let up = root.to_str().unwrap();
        fs::create_dir(&root).unwrap();
        fs::write(root.join("plain file"), "").unwrap();
        let stored = |filename: &str, destination: &str, recursive: bool| json!({"filename": filename, "destination": destination, "recursive": recursive});
        let detail = |text: String| json!({"detail": text});
        let invalid = |text: &str| json!({"detail": "Invalid request parameters", "errors": text});
        let field = "name=\"file\"; filename*=utf-8''na%C3%AFve.txt";
        for (case, query, body, status, answer) in [
            ("a file", format!("?destination={up}"), file_form("a.txt", b"one"), 200, stored("a.txt", up, false)),
            ("again", format!("?destination={up}"), file_form("a.txt", b"2"), 200, stored("a.txt", up, false)),
            ("new directories", format!("?destination={up}/x/y"), file_form("b", b""), 200, stored("b", &format!("{up}/x/y"), false)),
            ("a name with a path", format!("?destination={up}"), file_form("../../c.txt", b"c"), 200, stored("c.txt", up, false)),
            ("an extended name", format!("?destination={up}"), form(field, b"n"), 200, stored("naïve.txt", up, false)),
            ("relative", "?destination=up".into(), file_form("a", b""), 500, detail("400: Destination must be an absolute path".into())),
            ("recursive", format!("?destination={up}&recursive=true"), file_form("a.ZIP", b""), 500, detail("400: Recursive uploads must be zip files".into())),
            ("no zip", format!("?destination={up}"), file_form("a.zip", b"no"), 500, detail(format!("{up}/a.zip is not a zip file"))),
            ("no zip, with a slash", format!("?destination={up}/"), file_form("a.zip", b""), 500, detail(format!("{up}/a.zip is not a zip file"))),
            ("a file as directory", format!("?destination={up}/plain%20file"), file_form("a", b""), 500, detail(format!("[Errno 17] File exists: '{up}/plain file'"))),
            ("a directory as file", format!("?destination={up}"), file_form("x", b""), 500, detail(format!("[Errno 21] Is a directory: '{up}/x'"))),
            ("no boolean", "?recursive=perhaps".into(), file_form("a", b""), 422, invalid("`recursive` must be a boolean, and is \"perhaps\"")),
            ("another part", format!("?destination={up}"), form("name=\"data\"; filename=\"a\"", b""), 422, invalid("the form has no part `file`")),
            ("no filename", format!("?destination={up}"), form("name=\"file\"", b"text"), 422, invalid("the part `file` has no filename")),
            ("an empty filename", format!("?destination={up}"), file_form("", b"text"), 422, invalid("\"\" is no name for a file")),
            ("only dots", format!("?destination={up}"), file_form("a/..", b"text"), 422, invalid("\"a/..\" is no name for a file")),
        ] {
            let found = upload(&server, &query, body).await;
            assert_eq!((found.status.as_u16(), found.json()), (status, answer), "{case}");
        }
        let found = server.post("/upload_file", "text").await;
        let answer = invalid("the body must be multipart/form-data with a part `file`");
        assert_eq!((found.status.as_u16(), found.json()), (422, answer));
        assert_eq!(names(&root), ["a.txt", "c.txt", "naïve.txt", "plain file", "x", "x/y", "x/y/b"]);
        assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "2");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_upload_keeps_the_mode_of_the_file_and_other_parts_are_passed_over() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        let path = root.join("secret");
        fs::write(&path, "old and longer").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let body = b"--limit\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n\
            --limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"secret\"\r\n\
            Content-Type: text/plain\r\n\r\nn\r\new\r\n\
            --limit\r\nContent-Disposition: form-data; name=\"after\"\r\n\r\nbye\r\n--limit--\r\n";
        let found = upload(&server, &format!("?destination={}", root.display()), body.to_vec()).await;
        assert_eq!(found.status, 200, "{found:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "n\r\new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn zips_are_unpacked_and_do_not_leave_the_destination() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        let source = tempfile::tempdir().unwrap();
        let project = source.path().join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join("src/main.rs"), "fn main() {}").unwrap();
        fs::write(project.join("README"), "read").unwrap();
        for (destination, recursive) in [("one", "true"), ("two", "false")] {
            let to = root.join(destination);
            let query = format!("?destination={}&recursive={recursive}", to.display());
            let found = upload(&server, &query, file_form("tmp123.zip", &zip_of(&project))).await;
            assert_eq!(found.status, 200, "{found:?}");
            assert_eq!(names(&to), ["project", "project/README", "project/src", "project/src/main.rs"]);
        }
        let outside = tempfile::tempdir().unwrap();
        let to = root.join("three");
        fs::create_dir(&to).unwrap();
        symlink(outside.path(), to.join("project")).unwrap();
        let query = format!("?destination={}", to.display());
        let found = upload(&server, &query, file_form("x.zip", &zip_of(&project))).await;
        let text = "`project` would be written outside of the destination (stopped after 0 files with 0 bytes)";
        assert_eq!((found.status.as_u16(), found.json()), (500, json!({"detail": text})));
        assert_eq!(names(outside.path()), Vec::<String>::new());
        assert_eq!(names(&to), ["project"]);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_upload_onto_a_link_replaces_the_link_and_never_what_it_leads_to() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, root.join("link")).unwrap();
        symlink(outside.path().join("missing"), root.join("dangling")).unwrap();
        fs::hard_link(&secret, root.join("hard")).unwrap();
        for name in ["link", "dangling", "hard"] {
            let found = upload(&server, &format!("?destination={}", root.display()), file_form(name, b"new")).await;
            assert_eq!(found.status, 200, "{name}: {found:?}");
            assert!(fs::symlink_metadata(root.join(name)).unwrap().is_file(), "{name}");
            assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "new", "{name}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(names(outside.path()), ["secret"]);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_upload_of_a_root_server_goes_through_no_link_of_another_user() {
    within(async {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: it needs root");
            return;
        }
        let server = Server::start().await;
        let root = server.directory.path();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.join("link")).unwrap();
        std::os::unix::fs::lchown(root.join("link"), Some(4_242), None).unwrap();
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("f"), "f").unwrap();
        for (name, content) in [("a", b"new".to_vec()), ("a.zip", zip_of(project.path()))] {
            for destination in ["link", "link/deeper"] {
                let query = format!("?destination={}/{destination}", root.display());
                let found = upload(&server, &query, file_form(name, &content)).await;
                assert_eq!(found.status, 500, "{found:?}");
                let detail = found.json()["detail"].as_str().unwrap().to_owned();
                assert!(detail.contains("belongs to the user 4242"), "{detail}");
            }
        }
        assert_eq!(names(outside.path()), Vec::<String>::new());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_changes_nothing() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        fs::write(root.join("a.bin"), "old").unwrap();
        for name in ["a.bin", "a.zip"] {
            let body = file_form(name, &vec![b'x'; 1_000_000]);
            let head = format!(
                "POST /upload_file?destination={} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {FORM}\r\ncontent-length: {}\r\n\r\n",
                root.display(),
                body.len()
            );
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&body[..700_000]).await.unwrap();
            server.until_metric("gloveport_requests_in_flight", 2.0).await;
            drop(stream);
            // The request is one of two until its work has ended.
            server.until_metric("gloveport_requests_in_flight", 1.0).await;
        }
        // Threads end a moment after their requests; an upload that waits for all of their turns comes behind them.
        while names(root) != ["a.bin"] {
            tokio::task::yield_now().await;
        }
        assert_eq!(fs::read_to_string(root.join("a.bin")).unwrap(), "old");
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_form_without_its_end_is_refused_and_changes_nothing() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        let mut body = file_form("new", b"content");
        body.truncate(body.len() - 8);
        let found = upload(&server, &format!("?destination={}", root.display()), body).await;
        assert_eq!(found.status, 400, "{found:?}");
        assert!(found.text().starts_with("{\"detail\":\"There was an error parsing the body: "), "{found:?}");
        assert_eq!(names(root), Vec::<String>::new());
        server.stop().await;
    })
    .await;
}

fn limits(change: impl FnOnce(&mut ServerLimits)) -> ServerOptions {
    let mut options = ServerOptions::default();
    change(&mut options.limits);
    options
}

#[tokio::test]
async fn a_slow_upload_is_taken_and_one_that_stands_still_is_not() {
    within(async {
        let server = Server::with(limits(|limits| limits.upload_pause = Duration::from_millis(300))).await;
        let root = server.directory.path();
        let body = file_form("slow", &[b's'; 20]);
        let head = format!(
            "POST /upload_file?destination={} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {FORM}\r\ncontent-length: {}\r\n\r\n",
            root.display(),
            body.len()
        );
        // In all it takes longer than a pause may.
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        for piece in body.chunks(body.len() / 6 + 1) {
            ticks.tick().await;
            stream.write_all(piece).await.unwrap();
        }
        let mut answer = vec![0; 1000];
        let length = stream.read(&mut answer).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(fs::read(root.join("slow")).unwrap(), [b's'; 20]);

        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body[..50]).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert!(answer.ends_with("{\"detail\":\"The request body stood still for 0 seconds (50 bytes of it arrived)\"}"));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn uploads_beyond_the_bound_are_refused() {
    within(async {
        let server = Server::with(limits(|limits| limits.upload_body = 1000)).await;
        let found = upload(&server, "?destination=/tmp", file_form("large", &[0; 1000])).await;
        let text = "The request body is larger than 1000 bytes";
        assert_eq!((found.status.as_u16(), found.json()), (413, json!({"detail": text})));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn transfers_wait_for_their_turn_and_not_without_end() {
    within(async {
        let options = limits(|limits| {
            limits.transfers = 1;
            limits.transfer_wait = Duration::from_millis(50);
        });
        let server = Server::with(options).await;
        let root = server.directory.path();
        fs::write(root.join("large"), vec![1; 50_000_000]).unwrap();
        let path = format!("/download_files?path={}", root.display());
        // Its body is not read, so it keeps its turn.
        let mut first = server.connect().await;
        let response = first.sender.send_request(request("GET", &path, Bytes::new())).await.unwrap();
        let busy = "Too many files are transferred; try again later";
        let found = server.get(&path).await;
        assert_eq!((found.status.as_u16(), found.json()), (503, json!({"detail": busy})));
        let found = upload(&server, "?destination=/tmp", file_form("x", b"")).await;
        assert_eq!((found.status.as_u16(), found.json()), (503, json!({"detail": busy})));
        let found = server.get("/v1/files/archive?path=.").await;
        assert_eq!(found.json()["error"]["code"], "too_many_transfers");
        // Actions do not wait for transfers.
        assert_eq!(server.run("echo hi").await["content"], "hi");
        drop((response, first));
        while server.get(&path).await.status != 200 {
            tokio::task::yield_now().await;
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn every_download_is_answered_with_its_status_its_headers_and_its_body() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path().join("my project");
        fs::create_dir_all(root.join("deep/empty")).unwrap();
        fs::write(root.join("deep/file"), "content").unwrap();
        symlink("deep/file", root.join("link")).unwrap();
        symlink("/etc", root.join("directory")).unwrap();
        let shown = root.display().to_string();
        let path = shown.replace(' ', "%20");
        let found = server.get(&format!("/download_files?path={path}")).await;
        assert_eq!(found.status, 200);
        assert_eq!(found.header("content-type"), Some("application/zip"));
        assert_eq!(found.header("content-disposition"), Some("attachment; filename*=utf-8''my%20project.zip"));
        assert_eq!(found.header("content-length"), Some(found.body.len().to_string().as_str()));
        let mut archive = Vec::new();
        Plan::of_contents(&root).unwrap().write_to(&mut archive).unwrap();
        assert_eq!(found.body, archive);
        let unpacked = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&found.body).unwrap();
        gloveport_archive::zip::unpack(&file, unpacked.path(), &gloveport_archive::ArchiveLimits::default()).unwrap();
        assert_eq!(names(unpacked.path()), ["deep", "deep/file", "link"]);
        assert_eq!(fs::read_to_string(unpacked.path().join("link")).unwrap(), "content");

        let found = server.get(&format!("/download_files?path={path}/deep/file")).await;
        assert_eq!((found.status.as_u16(), found.body.len()), (200, 22));
        assert_eq!(found.header("content-disposition"), Some("attachment; filename=\"file.zip\""));
        let found = server.get(&format!("/download_files?path={path}/deep/")).await;
        assert_eq!(found.header("content-disposition"), Some("attachment; filename=\".zip\""));

        let missing = json!({"detail": "Invalid request parameters", "errors": "the query has no `path`"});
        for (query, status, answer) in [
            ("", 422, missing.clone()),
            ("?other=1", 422, missing),
            ("?path=relative", 500, json!({"detail": "400: Path must be an absolute path"})),
            ("?path=", 500, json!({"detail": "400: Path must be an absolute path"})),
            ("?path=/no/where", 500, json!({"detail": "404: File not found"})),
            ("?path=/a%00b", 500, json!({"detail": "404: File not found"})),
        ] {
            let found = server.get(&format!("/download_files{query}")).await;
            assert_eq!((found.status.as_u16(), found.json()), (status, answer), "{query}");
        }
        server.stop().await;
    })
    .await;
}

/// Gives a hanging test a name; making tens of thousands of files takes a minute on a busy machine.
async fn within_minutes<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(150), test).await.unwrap()
}

/// Ten thousand files of 1 KiB in ten directories.
fn many_files(root: &Path) {
    for directory in 0..10_u8 {
        fs::create_dir_all(root.join(directory.to_string())).unwrap();
        for file in 0..1000 {
            fs::write(root.join(format!("{directory}/{file}")), [directory; 1024]).unwrap();
        }
    }
}

#[tokio::test]
async fn ten_thousand_small_files_go_up_and_come_down_as_a_zip() {
    within_minutes(async {
        let server = Server::start().await;
        let source = tempfile::tempdir().unwrap();
        let project = source.path().join("many");
        many_files(&project);
        let to = server.directory.path().join("to");
        let query = format!("?destination={}&recursive=true", to.display());
        let sent = zip_of(&project);
        let found = upload(&server, &query, file_form("many.zip", &sent)).await;
        assert_eq!(found.status, 200, "{found:?}");
        assert_eq!(names(&to.join("many")), names(&project));
        assert_eq!(fs::read(to.join("many/7/999")).unwrap(), [7; 1024]);
        let found = server.get(&format!("/download_files?path={}", to.display())).await;
        assert_eq!(found.body, zip_of_contents(&to));
        assert_eq!(found.body.len(), sent.len());
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_small_files_go_up_and_come_down_as_a_tar_stream() {
    within_minutes(async {
        let server = Server::start().await;
        let source = tempfile::tempdir().unwrap();
        let project = source.path().join("many");
        many_files(&project);
        let stream = server.get(&format!("/v1/files/archive?path={}", project.display())).await;
        let to = server.directory.path().join("to");
        let put = request("PUT", &format!("/v1/files/archive?path={}&parents=true", to.display()), stream.body);
        let found = server.connect().await.request(put).await;
        let stored = json!({"path": to.display().to_string(), "files": 10_000, "bytes": 10_240_000});
        assert_eq!((found.status.as_u16(), found.json()), (200, stored));
        assert_eq!(names(&to), names(&project));
        assert_eq!(fs::read(to.join("7/999")).unwrap(), [7; 1024]);
        server.stop().await;
    })
    .await;
}

fn zip_of_contents(root: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    Plan::of_contents(root).unwrap().write_to(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_download_that_fails_on_the_way_breaks_the_connection() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        let file = File::create(root.join("large")).unwrap();
        file.set_len(60_000_000).unwrap();
        for path in ["/download_files?path=", "/v1/files/archive?path="] {
            file.set_len(60_000_000).unwrap();
            let mut client = server.connect().await;
            let get = request("GET", &format!("{path}{}", root.display()), Bytes::new());
            let response = client.sender.send_request(get).await.unwrap();
            assert_eq!(response.status(), 200);
            file.set_len(1000).unwrap();
            assert!(response.into_body().collect().await.is_err(), "{path}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn tar_streams_are_answered_in_the_native_form() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        fs::create_dir_all(root.join("tree/empty")).unwrap();
        fs::write(root.join("tree/script"), "#!/bin/sh").unwrap();
        fs::set_permissions(root.join("tree/script"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("script", root.join("tree/link")).unwrap();
        // Relative to the working directory, as text and as base64.
        let found = server.get("/v1/files/archive?path=tree").await;
        assert_eq!((found.status.as_u16(), found.header("content-type")), (200, Some("application/x-tar")));
        assert_eq!(server.get("/v1/files/archive?path_base64=dHJlZQ").await.body, found.body);
        let mut archive = tar::Archive::new(Cursor::new(found.body.to_vec()));
        let entries: Vec<String> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(entries, ["./", "empty/", "link", "script"]);
        let single = server.get("/v1/files/archive?path=tree/script").await;
        let mut archive = tar::Archive::new(Cursor::new(single.body.to_vec()));
        let mut text = String::new();
        let mut entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap(), Path::new("script"));
        entry.read_to_string(&mut text).unwrap();
        assert_eq!(text, "#!/bin/sh");
        drop(entry);

        let put = async |query: &str, body: Bytes| {
            let put = request("PUT", &format!("/v1/files/archive{query}"), body);
            let found = server.connect().await.request(put).await;
            (found.status.as_u16(), found.json())
        };
        let stored = json!({"path": root.join("copy/of").display().to_string(), "files": 2, "bytes": 9});
        assert_eq!(put("?path=copy/of&parents=true", found.body.clone()).await, (200, stored));
        assert_eq!(names(&root.join("copy/of")), ["empty", "link", "script"]);
        assert_eq!(fs::metadata(root.join("copy/of/script")).unwrap().permissions().mode() & 0o777, 0o755);

        let shown = |path: &str| root.join(path).display().to_string();
        let error = |code: &str, message: String, hint: &str| json!({"error": {"code": code, "message": message, "hint": hint}});
        let not_found = format!("cannot unpack into `{}`: No such file or directory (os error 2)", shown("no/where"));
        let directory_hint = "make the directory first, or give parents=true";
        let damaged = "the archive is damaged: it ends too early (stopped after 0 files with 0 bytes)";
        let damaged_hint = "the body must be a whole tar stream without compression";
        let path_hint = "give one path, as text or as base64";
        let cut = found.body.slice(..700);
        for (query, body, status, answer) in [
            ("?path=no/where", found.body.clone(), 404, error("no_such_path", not_found, directory_hint)),
            ("?path=.", Bytes::new(), 400, error("damaged_archive", damaged.into(), damaged_hint)),
            ("?path=.", cut, 400, error("damaged_archive", damaged.into(), damaged_hint)),
            ("", Bytes::new(), 400, error("invalid_path", "the request has no `path`".into(), path_hint)),
            ("?path=", Bytes::new(), 400, error("invalid_path", "the path is empty".into(), path_hint)),
        ] {
            assert_eq!(put(query, body).await, (status, answer), "{query}");
        }
        let missing = server.get("/v1/files/archive?path=nothing").await;
        let text = format!("cannot read `{}`: No such file or directory (os error 2)", shown("nothing"));
        assert_eq!((missing.status.as_u16(), missing.json()), (404, error("no_such_path", text, directory_hint)));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_leaves_nothing() {
    within(async {
        let server = Server::start().await;
        let small = server.directory.path().join("small");
        fs::create_dir(&small).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-osize=256k", "none"]).arg(&small).output();
        if !mount.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: this user may not mount a small file system");
            server.stop().await;
            return;
        }
        let source = tempfile::tempdir().unwrap();
        let project = source.path().join("p");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("file"), vec![1; 150_000]).unwrap();
        let query = format!("?destination={}", small.display());
        let plain = upload(&server, &query, file_form("large", &vec![1; 1_000_000])).await;
        let zip = upload(&server, &query, file_form("large.zip", &zip_of(&project))).await;
        let mut stream = Vec::new();
        fs::write(project.join("more"), vec![1; 150_000]).unwrap();
        gloveport_archive::tar::pack(&project, &mut stream).unwrap();
        let put = request("PUT", &format!("/v1/files/archive?path={}", small.display()), stream);
        let tar = server.connect().await.request(put).await;
        let left = names(&small);
        assert!(Command::new("umount").arg(&small).status().unwrap().success());
        let text = format!("[Errno 28] No space left on device: '{}/large'", small.display());
        assert_eq!((plain.status.as_u16(), plain.json()), (500, json!({"detail": text})));
        let text = "cannot write `p/file`: No space left on device (os error 28) (stopped after 0 files with 0 bytes)";
        assert_eq!((zip.status.as_u16(), zip.json()), (500, json!({"detail": text})));
        assert_eq!((tar.status.as_u16(), &tar.json()["error"]["code"]), (507, &json!("storage_full")));
        assert_eq!(left, ["file", "p"]);
        server.stop().await;
    })
    .await;
}
