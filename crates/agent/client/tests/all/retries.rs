//! Which failures are repeated, how often and after what waits (`action-execution-client` 2).
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{sync::Arc, time::Duration};

use crate::common::{Peer, Reply, within};
use gloveport_client::{ActionExecutionClient, ClientError, ClientOptions, Failure, Recovery, Verdict};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, BoxFuture, ExecuteError, ReadAction};

const LIST: &str = "POST /list_files";

fn too_many() -> Reply {
    Reply::json("429 Too Many Requests", r#"{"detail": "slow down"}"#)
}

fn cut() -> Reply {
    Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[".to_vec())
}

fn read() -> ActionEvent {
    ActionEvent::from(Action::Read(ReadAction::new("/a")))
}

#[tokio::test]
async fn status_429_is_repeated_two_times_after_four_seconds() {
    within(async {
        let peer = Peer::start([too_many(), too_many(), Reply::ok("[]")]).await;
        assert_eq!(peer.client().list_files(None).await.unwrap(), Vec::<String>::new());
        assert_eq!((peer.lines(), peer.waits()), (vec![LIST.to_owned(); 3], vec![4, 4]));

        let peer = Peer::start([too_many(), too_many(), too_many()]).await;
        let error = peer.client().list_files(None).await.unwrap_err();
        let expected = format!(
            "gave up after 3 attempts: Client error '429 Too Many Requests' for url '{}/list_files'\nDetails: slow down",
            peer.url
        );
        assert_eq!(error.to_string(), expected);
        // It is not a status error itself.
        assert_eq!(error.status(), None);
        assert_eq!((peer.lines().len(), peer.waits()), (3, vec![4, 4]));
    })
    .await;
}

#[tokio::test]
async fn a_connection_without_a_whole_answer_is_repeated_four_times() {
    within(async {
        for broken in
            [Reply::Close, cut(), Reply::Bytes(b"HTTP/1.1 200".to_vec()), Reply::Bytes(b"nonsense\r\n\r\n".to_vec())]
        {
            let replies = [&broken, &broken, &broken, &broken].map(Reply::clone);
            let peer = Peer::start(replies.into_iter().chain([Reply::ok(r#"["a"]"#)])).await;
            assert_eq!(peer.client().list_files(Some("/d")).await.unwrap(), ["a"], "{broken:?}");
            assert_eq!(peer.waits(), [4, 4, 4, 8]);
            let bodies: Vec<_> = peer.asked().iter().map(crate::common::Asked::json).collect();
            assert_eq!(bodies, vec![serde_json::json!({"path": "/d"}); 5]);

            let replies = [&broken, &broken, &broken, &broken, &broken].map(Reply::clone);
            let peer = Peer::start(replies).await;
            let error = peer.client().list_files(None).await.unwrap_err();
            let start = format!(
                "gave up after 5 attempts: {}/list_files closed the connection without a whole answer: ",
                peer.url
            );
            assert!(error.to_string().starts_with(&start), "{error}");
            assert_eq!((peer.lines().len(), peer.waits()), (5, vec![4, 4, 4, 8]));
        }
    })
    .await;
}

#[tokio::test]
async fn each_repetition_after_a_broken_connection_may_meet_429_again() {
    within(async {
        let peer = Peer::start([too_many(), Reply::Close, too_many(), too_many(), too_many()]).await;
        let error = peer.client().list_files(None).await.unwrap_err();
        assert!(matches!(error, ClientError::RetriesExhausted { attempts: 3, .. }), "{error}");
        assert_eq!(peer.waits(), [4, 4, 4, 4]);
    })
    .await;
}

#[tokio::test]
async fn other_failures_are_told_at_once_with_their_texts() {
    let cases = [
        (
            Reply::json("500 Internal Server Error", r#"{"detail": "Internal server error: no"}"#),
            "Server error '500 Internal Server Error' for url 'URL/list_files'\nDetails: Internal server error: no",
        ),
        (Reply::json("404 Not Found", "<html>"), "Client error '404 Not Found' for url 'URL/list_files'"),
        (
            Reply::json("422 Unprocessable Entity", r#"{"detail": ["a", 1, null]}"#),
            "Client error '422 Unprocessable Entity' for url 'URL/list_files'\nDetails: ['a', 1, None]",
        ),
        (Reply::json("503 Service Unavailable", "[1]"), "Server error '503 Service Unavailable' for url 'URL/list_files'"),
        (
            Reply::Bytes(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()),
            "Redirect response '307 Temporary Redirect' for url 'URL/list_files'\nRedirect location: '/other'",
        ),
        (
            Reply::json("409 Conflict", r#"{"error": {"code": "c", "message": "it exists", "hint": "choose another"}}"#),
            "Client error '409 Conflict' for url 'URL/list_files'\nDetails: it exists (choose another)",
        ),
        (
            Reply::ok(r#"{"a": 1}"#),
            "URL/list_files answered something that cannot be understood: invalid type: map, expected a sequence at line 1 \
             column 0",
        ),
    ];
    within(async {
        for (reply, expected) in cases {
            let peer = Peer::start([reply]).await;
            let error = peer.client().list_files(None).await.unwrap_err();
            assert_eq!(error.to_string(), expected.replace("URL", &peer.url));
            assert_eq!((peer.lines(), peer.waits()), (vec![LIST.to_owned()], vec![]));
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    within(async {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let client = ActionExecutionClient::new(&ClientOptions::new(free.to_string())).unwrap();
        let error = client.alive().await.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
        let error = client.execute(&read()).await.unwrap_err();
        assert!(
            matches!(&error, ExecuteError::Unreachable(text) if text.starts_with("no connection to http://127.0.0.1:")),
            "{error}"
        );
        assert!(client.wait_until_alive(Duration::from_millis(30)).await.unwrap_err().is_network());
    })
    .await;
}

#[tokio::test]
async fn silence_is_told_in_the_words_of_each_operation() {
    within(async {
        let silent = async || {
            let peer = Peer::start([Reply::Silence]).await;
            (ActionExecutionClient::new(&peer.hasty()).unwrap(), peer)
        };
        let (client, _peer) = silent().await;
        let event = ActionEvent { timeout: Some(0.05), ..read() };
        let error = client.execute(&event).await.unwrap_err();
        assert_eq!(error, ExecuteError::Timeout { limit: Duration::from_millis(50) });
        assert_eq!(error.to_string(), "Runtime failed to return execute_action before the requested timeout of 0.05s");

        let (client, _peer) = silent().await;
        let error = client.list_files(None).await.unwrap_err();
        assert_eq!(error.to_string(), "List files operation timed out");

        let (client, _peer) = silent().await;
        assert_eq!(client.copy_from("/d").await.unwrap_err().to_string(), "Copy operation timed out");

        let (client, peer) = silent().await;
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(client.copy_to(file.path(), "/d", false).await.unwrap_err().to_string(), "Copy operation timed out");
        assert_eq!(peer.waits(), Vec::<u64>::new());
        assert_eq!(
            ExecuteError::Timeout { limit: Duration::from_mins(2) }.to_string(),
            "Runtime failed to return execute_action before the requested timeout of 120.0s"
        );
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_comes_in_pieces_may_take_longer_than_the_limit() {
    within(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = listener.local_addr().unwrap().to_string();
        let sending = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            let _count = stream.read(&mut asked).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n").await.unwrap();
            for byte in b"[\"abcd\"]" {
                tokio::time::sleep(Duration::from_millis(60)).await;
                stream.write_all(&[*byte]).await.unwrap();
            }
        });
        let mut options = ClientOptions::new(url);
        options.limits.list = Duration::from_millis(250);
        let client = ActionExecutionClient::new(&options).unwrap();
        assert_eq!(client.list_files(None).await.unwrap(), ["abcd"]);
        sending.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_ends_the_repetitions() {
    within(async {
        let peer = Peer::start([Reply::Close]).await;
        let options = peer.options();
        options.shutdown.cancel();
        let error = ActionExecutionClient::new(&options).unwrap().list_files(None).await.unwrap_err();
        assert!(matches!(error, ClientError::RetriesExhausted { attempts: 1, .. }), "{error}");
        assert_eq!((peer.lines().len(), peer.waits()), (1, vec![]));
    })
    .await;
}

/// Takes 502 for a proxy that is starting, and 503 for a sandbox that is gone.
struct Proxy;

impl Recovery for Proxy {
    fn recover<'a>(&'a self, failure: Failure<'a>) -> BoxFuture<'a, Verdict> {
        let verdict = match failure.error.status().map(|status| status.as_u16()) {
            Some(502) if failure.count < 3 && !failure.closed => Verdict::Again { after: Duration::from_secs(1) },
            Some(503) => Verdict::Disconnected(format!("the sandbox is gone. Original error: {}", failure.error)),
            _ => Verdict::Fail,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test]
async fn a_recovery_decides_about_what_repeating_did_not_cure() {
    within(async {
        let bad = || Reply::json("502 Bad Gateway", "");
        let with = |peer: &Peer| {
            ActionExecutionClient::new(&ClientOptions { recovery: Some(Arc::new(Proxy)), ..peer.options() }).unwrap()
        };
        let peer = Peer::start([bad(), bad(), Reply::ok("[]")]).await;
        assert!(with(&peer).list_files(None).await.is_ok());
        assert_eq!(peer.waits(), [1, 1]);

        let peer = Peer::start([bad(), bad(), bad()]).await;
        assert_eq!(with(&peer).list_files(None).await.unwrap_err().status().unwrap(), 502);

        let peer = Peer::start([Reply::json("503 Service Unavailable", "")]).await;
        let error = with(&peer).execute(&read()).await.unwrap_err();
        let text = format!(
            "the sandbox is gone. Original error: Server error '503 Service Unavailable' for url '{}/execute_action'",
            peer.url
        );
        assert_eq!(error, ExecuteError::Disconnected(text));
    })
    .await;
}

#[tokio::test]
async fn the_body_of_a_copy_is_sent_anew_with_each_attempt() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("tree/sub")).unwrap();
        std::fs::write(directory.path().join("tree/sub/b.txt"), "b").unwrap();
        std::fs::write(directory.path().join("tree/a.bin"), [0, 255]).unwrap();
        let cases = [("tree", "tree/"), ("tree/", "")];
        for (source, prefix) in cases {
            let peer = Peer::start([Reply::Close, too_many(), Reply::ok("{}")]).await;
            let path = format!("{}/{source}", directory.path().display());
            peer.client().copy_to(path.as_ref(), "/to here", true).await.unwrap();
            let asked = peer.asked();
            assert_eq!(asked.len(), 3);
            assert!(
                asked.iter().all(|one| one.line == "POST /upload_file?destination=%2Fto+here&recursive=true"),
                "{asked:?}"
            );
            assert!(asked.iter().all(|one| members(&one.body) == members(&asked[0].body)));
            let expected = [(format!("{prefix}a.bin"), vec![0, 255]), (format!("{prefix}sub/b.txt"), b"b".to_vec())];
            assert_eq!(members(&asked[0].body), expected);
        }
        let peer = Peer::start([Reply::Close, Reply::ok("{}")]).await;
        let file = directory.path().join("tree/a.bin");
        peer.client().copy_to(&file, "/d", false).await.unwrap();
        let asked = peer.asked();
        assert_eq!(asked[1].line, "POST /upload_file?destination=%2Fd&recursive=false");
        assert_eq!(asked[0].body, asked[1].body);
        let text = String::from_utf8_lossy(&asked[0].body).into_owned();
        assert!(text.contains("form-data; name=\"file\"; filename=\"a.bin\"\r\n"), "{text}");
        let missing = directory.path().join("missing");
        let error = peer.client().copy_to(&missing, "/d", false).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Source file {} does not exist", missing.display()));
    })
    .await;
}

/// The members of the zip file in a multipart body.
fn members(body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let start = body.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let boundary = body.split(|byte| *byte == b'\r').next().unwrap();
    let end = body.windows(boundary.len()).rposition(|window| window == boundary).unwrap() - 2;
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&body[start..end])).unwrap();
    let mut members: Vec<_> = (0..archive.len())
        .map(|index| {
            let mut member = archive.by_index(index).unwrap();
            let mut content = Vec::new();
            std::io::copy(&mut member, &mut content).unwrap();
            (member.name().unwrap().into_owned(), content)
        })
        .collect();
    members.sort();
    members
}
