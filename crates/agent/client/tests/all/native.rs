//! The native interface: what is asked, and streams that are taken up again.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use crate::common::{Peer, Reply, within};
use gloveport_archive::ArchiveLimits;
use gloveport_client::{ExecEvent, ListOptions, PutOptions, Range, TreeForm, WatchEvent};
use gloveport_protocol::{
    exec::{ExecRequest, Session},
    files::{FileChange, FileEvent, RemoveRequest},
};
use serde_json::{Value, json};

fn request(command: &str) -> ExecRequest {
    ExecRequest { id: None, command: command.into(), session: Session::Main, cwd: None, env: [].into(), timeout: None }
}

fn event(name: &str, id: u64, data: &Value) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}

fn end() -> Value {
    json!({"exit_code": 3, "reason": "exited", "message": null, "start": 0, "end": 4, "cwd": "/", "usage": null})
}

#[tokio::test]
async fn a_lost_stream_of_a_command_goes_on_behind_its_last_event() {
    within(async {
        let start = event("start", 0, &json!({"id": "x", "offset": 0, "repeated": false}));
        let first = event("output", 2, &json!({"offset": 0, "text": "ab"}));
        let again = event("start", 2, &json!({"id": "x", "offset": 2, "repeated": true}));
        let second = event("output", 4, &json!({"offset": 2, "base64": "AP8="}));
        let exit = event("exit", 4, &end());
        let peer = Peer::start([
            Reply::stream(&format!("{start}{first}event: output\nid: 4\ndata: {{\"off")),
            Reply::Close,
            Reply::stream(&format!("{again}: comment\n\n{second}{exit}")),
        ])
        .await;
        let stream = peer.client().exec(request("c")).await.unwrap();
        let id = stream.id().to_owned();
        let mut output = Vec::new();
        let end = stream
            .finish(|bytes| {
                output.extend_from_slice(bytes);
                Ok::<(), gloveport_client::ClientError>(())
            })
            .await
            .unwrap();
        assert_eq!((output.as_slice(), end.exit_code), (&b"ab\x00\xff"[..], Some(3)));
        let asked = peer.asked();
        let last: Vec<_> = asked.iter().map(|asked| asked.header("last-event-id")).collect();
        assert_eq!(last, [None, Some("2"), Some("2")]);
        assert!(asked.iter().all(|asked| asked.line == "POST /v1/exec" && asked.json()["id"] == id), "{asked:?}");
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_never_gets_further_is_given_up() {
    within(async {
        let start = event("start", 0, &json!({"id": "x", "offset": 0, "repeated": false}));
        let peer = Peer::start(std::iter::repeat_n(Reply::stream(&start), 50)).await;
        let mut stream = peer.client().exec(request("c")).await.unwrap();
        let error = stream.next().await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the connection to {0}/ was lost and could not be taken up again: {0}/v1/exec answered something that \
                 cannot be understood: the stream ended too early",
                peer.url
            )
        );
        // The first event of the first stream is progress.
        assert_eq!(peer.lines().len(), 11);
    })
    .await;
}

#[tokio::test]
async fn what_the_server_refuses_is_not_tried_again() {
    within(async {
        let body = r#"{"error": {"code": "id_conflict", "message": "the id is taken", "hint": "choose another id"}}"#;
        let peer = Peer::start([Reply::json("409 Conflict", body)]).await;
        let error = peer.client().exec(request("c")).await.unwrap_err();
        assert_eq!(error.status().unwrap(), 409);
        assert_eq!(peer.lines().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn waits_and_gaps_are_told() {
    within(async {
        let events = [
            event("gap", 5, &json!({"from": 0, "to": 5})),
            event("waiting", 5, &json!({"waiting_for_input": true, "hides_input": true})),
            event("waiting", 5, &json!({"waiting_for_input": true})),
            event("exit", 5, &end()),
        ];
        let peer = Peer::start([Reply::stream(&events.concat())]).await;
        let mut stream = peer.client().exec(request("c")).await.unwrap();
        assert_eq!(stream.next().await.unwrap(), Some(ExecEvent::Gap { from: 0, to: 5 }));
        assert_eq!(stream.next().await.unwrap(), Some(ExecEvent::WaitingForSecret));
        assert_eq!(stream.next().await.unwrap(), Some(ExecEvent::Waiting(true)));
        assert!(matches!(stream.next().await.unwrap(), Some(ExecEvent::Ended(_))));
        assert_eq!(stream.next().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn files_are_asked_for_as_the_interface_says() {
    within(async {
        let entry =
            json!({"path": "/a", "kind": "file", "size": 1, "mode": "0644", "uid": 0, "gid": 0, "modified": 1.5});
        let list = json!({"entries": [entry], "truncated": false}).to_string();
        let stored = json!({"path": "/a", "files": 1, "bytes": 2}).to_string();
        let part = b"HTTP/1.1 206 Partial Content\r\netag: \"e\"\r\nlast-modified: then\r\nx-file-mode: 0640\r\n\
                     content-length: 2\r\nconnection: close\r\n\r\nbc";
        let changes = format!(
            "event: ready\ndata: {{}}\n\n: comment\n\nevent: change\ndata: {}\n\n",
            json!({"change": "modified", "path": "/a", "is_directory": false})
        );
        let peer = Peer::start([
            Reply::ok(&entry.to_string()),
            Reply::ok(&list),
            Reply::Bytes(part.to_vec()),
            Reply::ok(&stored),
            Reply::ok("{}"),
            Reply::stream(&changes),
        ])
        .await;
        let files = peer.client().files();
        let odd = OsStr::from_bytes(b"/a\xff");
        assert_eq!(files.stat(odd, true).await.unwrap().size, 1);
        let options = ListOptions { depth: Some(2), hidden: true, limit: Some(9) };
        assert_eq!(files.list("/d e", &options).await.unwrap().entries.len(), 1);
        let mut content = files.read("/a", Some(Range::Between(1, 3))).await.unwrap();
        assert_eq!((content.info.etag.as_deref(), content.info.mode), (Some("\"e\""), Some(0o640)));
        assert_eq!((content.info.length, content.info.partial), (Some(2), true));
        assert_eq!(content.bytes.next().await.unwrap().unwrap(), "bc");
        assert_eq!(content.bytes.next().await.unwrap(), None);
        let options = PutOptions { mode: Some(0o600), parents: true, exclusive: true, if_match: Some("\"e\"".into()) };
        assert_eq!(files.write("/a", "hi", &options).await.unwrap().bytes, 2);
        files.remove(&RemoveRequest { path: "/a".into(), recursive: true, missing_ok: false }).await.unwrap();
        let mut watch = files.watch("/a", true).await.unwrap();
        assert_eq!(watch.next().await.unwrap(), Some(WatchEvent::Ready));
        let change = FileEvent { change: FileChange::Modified, path: "/a".into(), is_directory: false };
        assert_eq!(watch.next().await.unwrap(), Some(WatchEvent::Change(change)));
        assert_eq!(watch.next().await.unwrap(), None);

        let expected = [
            "GET /v1/files/stat?path_base64=L2H%2F&follow=true",
            "GET /v1/files/list?path=%2Fd+e&hidden=true&depth=2&limit=9",
            "GET /v1/files/content?path=%2Fa",
            "PUT /v1/files/content?path=%2Fa&mode=0600&parents=true&exclusive=true",
            "POST /v1/files/remove",
            "GET /v1/files/watch?path=%2Fa&recursive=true",
        ];
        assert_eq!(peer.lines(), expected);
        let asked = peer.asked();
        assert_eq!(asked[2].header("range"), Some("bytes=1-2"));
        assert_eq!((asked[3].header("if-match"), asked[3].body.as_slice()), (Some("\"e\""), &b"hi"[..]));
        assert_eq!(asked[4].json(), json!({"path": "/a", "recursive": true, "missing_ok": false}));
    })
    .await;
}

#[tokio::test]
async fn a_tree_travels_as_tar_where_the_server_knows_it() {
    within(async {
        let there =
            Reply::json("400 Bad Request", r#"{"error": {"code": "invalid_query", "message": "no path", "hint": ""}}"#);
        let source = tempfile::tempdir().unwrap();
        std::fs::write(source.path().join("a"), "hello").unwrap();
        std::fs::create_dir(source.path().join("empty")).unwrap();
        let mut tar = Vec::new();
        gloveport_archive::tar::pack(source.path(), &mut tar).unwrap();
        let stored = json!({"path": "/to", "files": 1, "bytes": 5}).to_string();
        let short = &tar[..700];
        let archive = |bytes: &[u8]| Reply::with("application/x-tar", "200 OK", bytes);
        let peer = Peer::start([there, Reply::ok(&stored), archive(&tar), archive(short)]).await;
        let client = peer.client();
        let copy = client.upload_tree(source.path(), "/to", |_| {}).await.unwrap();
        assert_eq!((copy.files, copy.bytes, copy.form, copy.form.lost()), (1, 5, TreeForm::Tar, None));
        let destination = tempfile::tempdir().unwrap();
        let target = destination.path().join("new");
        client.download_tree("/from", &target, &ArchiveLimits::default(), |_| {}).await.unwrap();
        assert_eq!(std::fs::read(target.join("a")).unwrap(), b"hello");
        assert!(target.join("empty").is_dir());
        // An archive without its end is an error.
        assert!(client.download_tree("/from", &target, &ArchiveLimits::default(), |_| {}).await.is_err());
        let expected = [
            "GET /v1/files/archive",
            "PUT /v1/files/archive?path=%2Fto&parents=true",
            "GET /v1/files/archive?path=%2Ffrom",
            "GET /v1/files/archive?path=%2Ffrom",
        ];
        assert_eq!(peer.lines(), expected);
    })
    .await;
}

#[tokio::test]
async fn a_tree_travels_as_zip_where_the_server_does_not_know_tar() {
    within(async {
        let missing = Reply::json("404 Not Found", r#"{"detail": "Not Found"}"#);
        let source = tempfile::tempdir().unwrap();
        std::fs::write(source.path().join("a"), "hello").unwrap();
        let mut zip = Vec::new();
        gloveport_archive::zip::Plan::of_contents(source.path()).unwrap().write_to(&mut zip).unwrap();
        let peer = Peer::start([missing, Reply::ok("{}"), Reply::with("application/zip", "200 OK", &zip)]).await;
        let client = peer.client();
        let copy = client.upload_tree(source.path(), "/to", |_| {}).await.unwrap();
        assert_eq!((copy.files, copy.bytes, copy.form), (1, 5, TreeForm::Zip));
        assert_eq!(copy.form.lost(), Some("modes, owners, times, links and empty directories"));
        let destination = tempfile::tempdir().unwrap();
        client.download_tree("/from", destination.path(), &ArchiveLimits::default(), |_| {}).await.unwrap();
        assert_eq!(std::fs::read(destination.path().join("a")).unwrap(), b"hello");
        let expected = [
            "GET /v1/files/archive",
            "POST /upload_file?destination=%2Fto&recursive=true",
            "GET /download_files?path=%2Ffrom",
        ];
        assert_eq!(peer.lines(), expected);
    })
    .await;
}
