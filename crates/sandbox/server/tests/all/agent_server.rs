//! The API of the agent-server of OpenHands' SDK 1.x over HTTP. What the unmodified SDK makes of it is tested by `tests/sdk`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{io::Write as _, path::Path, time::Duration};

use crate::common::{Answer, Server, request, within};
use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_server::{AgentServerOptions, EditorPlace, HostedAgent, ServerOptions, SessionKey, Wire};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _},
};

fn options(events: &Path, key: Option<&str>) -> ServerOptions {
    let wire = AgentServerOptions {
        shell: vec!["/bin/sh".into(), "-c".into()],
        events: events.to_owned(),
        retention: None,
        origins: vec!["https://allowed.example".to_owned()],
        agent: None,
        editor: None,
    };
    let other_keys = key.map(|_| SessionKey::new("other")).into_iter().collect();
    ServerOptions {
        session_key: key.map(SessionKey::new),
        other_keys,
        wire: Wire::AgentServer(wire),
        ..ServerOptions::default()
    }
}

pub(crate) async fn asked(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&'static str, &str)],
    body: &Value,
) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut asked = request(method, path, body);
    for (name, value) in headers {
        asked.headers_mut().insert(*name, value.parse().unwrap());
    }
    server.connect().await.request(asked).await
}

/// What somebody gets who asks for this.
pub(crate) async fn socket(
    server: &Server,
    path: &str,
    first: Option<Value>,
) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    let (mut socket, _) = client_async(request, stream).await?;
    if let Some(first) = first {
        socket.send(Message::text(first.to_string())).await?;
    }
    Ok(socket)
}

pub(crate) async fn next(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        match within(socket.next()).await {
            Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
            Some(Ok(Message::Close(frame))) => return json!({"close": frame.map(|frame| u16::from(frame.code))}),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn every_call_of_an_agent_server_needs_a_key_but_those_that_say_that_it_lives() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), Some("key"))).await;
    for path in ["/", "/alive", "/health", "/ready", "/server_info"] {
        assert_eq!(asked(&server, "GET", path, &[], &Value::Null).await.status, 200, "{path}");
    }
    for (method, path, open) in [
        ("POST", "/api/bash/start_bash_command", 422),
        ("POST", "/api/bash/execute_bash_command", 422),
        ("GET", "/api/bash/bash_events/search", 200),
        ("GET", "/api/bash/bash_events/", 422),
        ("GET", "/api/bash/bash_events/x", 404),
        ("DELETE", "/api/bash/bash_events", 200),
        ("POST", "/api/bash/bash_commands/x/stop", 422),
        ("POST", "/api/file/upload", 422),
        ("POST", "/api/file/upload//x/y", 422),
        ("GET", "/api/file/download", 422),
        ("GET", "/api/file/download//nothing/here", 404),
        ("POST", "/api/file/create_directory", 422),
        ("GET", "/api/file/home", 200),
        ("GET", "/api/file/search_subdirs", 422),
        ("GET", "/api/file/download-trajectory/x", 422),
        ("GET", "/api/file/archive", 422),
        ("GET", "/api/file/archive?path=x", 400),
        ("GET", "/api/file/archive?path=/no/such", 404),
        ("GET", "/api/file/archive?path=/etc/passwd", 400),
        ("GET", "/api/file/archive?path=/&format=zip", 422),
        ("GET", "/api/git/changes", 422),
        ("GET", "/api/git/diff", 422),
        ("GET", "/api/git/commits", 422),
        ("GET", "/api/git/commits/xyz/changes", 422),
        ("POST", "/api/hooks", 422),
        ("GET", "/api/vscode/status", 200),
        ("GET", "/api/vscode/url", 503),
        ("GET", "/api/tools/", 200),
        ("POST", "/api/conversations", 501),
        ("GET", "/api/conversations/x/events/search", 501),
        ("POST", "/v1/chat/completions", 501),
    ] {
        for (key, status) in
            [(None, 401), (Some("KEY"), 401), (Some(""), 401), (Some("key"), open), (Some("other"), open)]
        {
            let headers: Vec<_> = key.into_iter().map(|key| ("x-session-api-key", key)).collect();
            let answer = asked(&server, method, path, &headers, &Value::Null).await;
            assert_eq!(answer.status, status, "{method} {path} {key:?}: {}", answer.text());
            if status == 401 {
                assert_eq!(answer.text(), r#"{"detail":"Unauthorized"}"#, "{method} {path}");
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn without_a_key_no_page_asks_an_agent_server() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let command = json!({"command": "true"});
    for (headers, status) in [
        (vec![], 200),
        (vec![("origin", "http://evil.test")], 403),
        (vec![("sec-fetch-site", "cross-site")], 403),
        (vec![("host", "evil.test"), ("accept-language", "en")], 403),
    ] {
        let answer = asked(&server, "POST", "/api/bash/execute_bash_command", &headers, &command).await;
        assert_eq!(answer.status, status, "{headers:?}");
        assert_eq!(asked(&server, "GET", "/server_info", &headers, &Value::Null).await.status, status, "{headers:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_that_may_ask_are_told_so_and_need_the_key_all_the_same() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), Some("key"))).await;
    for (origin, is_allowed) in
        [("http://localhost:3000", true), ("https://allowed.example", true), ("http://evil.test", false)]
    {
        let asks = [("origin", origin), ("access-control-request-method", "POST")];
        let before = asked(&server, "OPTIONS", "/api/bash/start_bash_command", &asks, &Value::Null).await;
        assert_eq!(before.status, if is_allowed { 200 } else { 400 }, "{origin}");
        let headers = [("origin", origin), ("x-session-api-key", "key")];
        let search = "/api/bash/bash_events/search";
        for answer in [&before, &asked(&server, "GET", search, &headers, &Value::Null).await] {
            assert_eq!(answer.header("access-control-allow-origin"), is_allowed.then_some(origin));
        }
        assert_eq!(asked(&server, "GET", search, &headers[..1], &Value::Null).await.status, 401, "{origin}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_path_with_a_slash_more_leads_to_the_other_and_what_an_agent_has_says_so() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    for (method, path, status, text) in [
        ("GET", "/health/", 307, "/health"),
        ("GET", "/api/bash/bash_events/search/?limit=1", 307, "/api/bash/bash_events/search?limit=1"),
        ("GET", "//evil.test/health/", 404, "Not Found"),
        ("GET", "/api/nothing", 404, "Not Found"),
        ("GET", "/api/skills", 404, "a part of an agent"),
        ("PUT", "/health", 405, "GET"),
        ("GET", "/api/file/upload", 405, "POST"),
        ("GET", "/execute_action", 404, "Not Found"),
        ("GET", "/v1/files/list", 501, "no agent"),
    ] {
        let answer = asked(&server, method, path, &[], &Value::Null).await;
        let told = answer.header("location").or(answer.header("allow")).map_or_else(|| answer.text(), str::to_owned);
        assert_eq!(answer.status, status, "{method} {path}: {told}");
        assert!(told.contains(text), "{method} {path}: {told}");
    }
    server.stop().await;
}

#[tokio::test]
async fn events_come_over_a_socket_to_whoever_shows_the_key_in_one_of_three_ways() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), Some("key"))).await;
    let auth = |key: &str| Some(json!({"type": "auth", "session_api_key": key}));
    let path = "/sockets/bash-events";
    for (path, first) in [(format!("{path}?session_api_key=key"), None), (path.to_owned(), auth("other"))] {
        let mut client = socket(&server, &path, first).await.unwrap();
        for text in ["{", r#"{"command": 5}"#] {
            client.send(Message::text(text)).await.unwrap();
            assert_eq!(next(&mut client).await["kind"], "BashError", "{text}");
        }
        client.send(Message::text(r#"{"command": "echo here"}"#)).await.unwrap();
        assert_eq!(next(&mut client).await["command"], "echo here");
        let output = next(&mut client).await;
        assert_eq!((&output["stdout"], &output["exit_code"]), (&"here\n".into(), &0.into()));
    }
    let mut all = socket(&server, &format!("{path}?session_api_key=key&resend_mode=all"), None).await.unwrap();
    for kind in ["BashCommand", "BashOutput", "BashCommand", "BashOutput"] {
        assert_eq!(next(&mut all).await["kind"], kind);
    }
    for first in [auth("wrong"), Some(json!({"type": "other"})), Some(json!(5))] {
        let mut refused = socket(&server, path, first).await.unwrap();
        assert_eq!(next(&mut refused).await["close"], 4001);
    }
    let Err(Error::Http(refused)) = socket(&server, &format!("{path}?session_api_key=wrong"), None).await else {
        panic!()
    };
    assert_eq!(refused.status(), 403);
    let mut agent = socket(&server, "/sockets/events/x", auth("key")).await.unwrap();
    assert_eq!(next(&mut agent).await["close"], 4004);
    server.stop().await;
}

#[tokio::test]
async fn what_follows_events_is_bounded_and_a_slow_one_holds_up_nobody() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let mut followers = Vec::new();
    for _ in 0..50 {
        followers.push(socket(&server, "/sockets/bash-events", None).await.unwrap());
    }
    let mut more = socket(&server, "/sockets/bash-events", None).await.unwrap();
    assert_eq!(next(&mut more).await["close"], 1013);
    let large = json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x", "timeout": 60});
    for _ in 0..2 {
        let answer = within(asked(&server, "POST", "/api/bash/execute_bash_command", &[], &large)).await;
        assert_eq!(answer.json()["stdout"].as_str().unwrap().len(), 3_000_000);
    }
    drop(followers);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut again = socket(&server, "/sockets/bash-events", None).await.unwrap();
    again.send(Message::text(r#"{"command": "true"}"#)).await.unwrap();
    assert_eq!(next(&mut again).await["kind"], "BashCommand");
    server.stop().await;
}

#[tokio::test]
async fn what_a_client_asked_for_is_done_even_if_it_went_before_anybody_looked() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    for number in 0..40 {
        let body = json!({"command": format!("touch done-{number}")}).to_string();
        let head = format!(
            "POST /api/bash/execute_bash_command HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let mut client = std::net::TcpStream::connect(server.address).unwrap();
        client.write_all((head + &body).as_bytes()).unwrap();
        // The server shares this thread: it is as far as it gets in so many turns.
        for _turn in 0..number / 2 {
            tokio::task::yield_now().await;
        }
        drop(client);
    }
    let is_done = || (0..40).all(|number| server.directory.path().join(format!("done-{number}")).exists());
    within(async {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_file_is_stored_whole_or_not_at_all_and_given_in_parts() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let file = server.directory.path().join("deep/file");
    let form = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n0123456789\r\n";
    for (body, status) in [(form.to_owned(), 400), (format!("{form}--b--\r\n"), 200)] {
        let mut upload = request("POST", &format!("/api/file/upload?path={}", file.display()), body);
        upload.headers_mut().insert("content-type", "multipart/form-data; boundary=b".parse().unwrap());
        let answer = server.connect().await.request(upload).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(file.exists(), status == 200);
    }
    let path = format!("/api/file/download?path={}", file.display());
    let part = asked(&server, "GET", &path, &[("range", "bytes=2-4")], &Value::Null).await;
    assert_eq!((part.status.as_u16(), part.text().as_str()), (206, "234"));
    assert_eq!(part.header("content-disposition"), Some("attachment; filename=\"file\""));
    let pipe = server.directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let path = format!("/api/file/download?path={}", pipe.display());
    assert_eq!(within(asked(&server, "GET", &path, &[], &Value::Null)).await.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn an_archive_is_a_file_that_says_what_it_is_of() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("a b");
    std::fs::create_dir(&work).unwrap();
    let git = |words: &[&str]| {
        let settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let done = std::process::Command::new("git").args(settings).args(words).current_dir(&work).output().unwrap();
        assert!(done.status.success(), "{words:?}");
    };
    std::fs::write(work.join("file"), "one\n").unwrap();
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    std::fs::write(work.join("file"), "two\n").unwrap();
    let path = work.to_string_lossy().replace(' ', "%20");
    let delta = asked(&server, "GET", &format!("/api/file/archive?path={path}&base_ref=HEAD"), &[], &Value::Null).await;
    assert_eq!((delta.status.as_u16(), delta.header("content-type")), (200, Some("text/x-patch; charset=utf-8")));
    assert!(delta.text().contains("-one\n+two\n"), "{}", delta.text());
    assert_eq!((delta.header("x-archive-branch"), delta.header("x-archive-base-ref")), (Some("main"), Some("HEAD")));
    assert!(delta.header("x-archive-repo-root").unwrap().ends_with("%2Fa%20b"));
    assert_eq!(delta.header("content-length").unwrap(), delta.text().len().to_string());
    let tar = asked(&server, "GET", &format!("/api/file/archive?path={path}&format=tar.gz"), &[], &Value::Null).await;
    assert_eq!((tar.status.as_u16(), tar.header("content-type")), (200, Some("application/gzip")));
    assert!(
        tar.header("content-disposition").unwrap().contains("a b.tar.gz")
            || tar.header("content-disposition").unwrap().contains("a%20b.tar.gz")
    );
    server.stop().await;
}

/// A server in Python that answers each request with what it was asked, behind the key of its environment.
const AGENT: &str = r#"
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self):
        if self.path.endswith("/die"): os._exit(3)
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        is_known = self.headers.get("x-session-api-key") == os.environ["OH_SESSION_API_KEYS_0"]
        if self.path == "/server_info": told = {"title": "an agent", "idle_time": 3.0}
        else: told = {"method": self.command, "path": self.path, "body": body, "known": is_known, "more": os.environ.get("MORE")}
        data = json.dumps(told).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_POST = do_DELETE = do_PATCH = answer
assert sys.argv[1:4] == ["--host", "127.0.0.1", "--port"], sys.argv
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[4])), Handler).serve_forever()
"#;

fn with_agent(events: &Path, command: &[&str]) -> ServerOptions {
    let mut options = options(events, Some("key"));
    if let Wire::AgentServer(wire) = &mut options.wire {
        wire.agent = Some(HostedAgent {
            command: command.iter().map(Into::into).collect(),
            environment: vec![("MORE".into(), "{port} more".into())],
        });
        wire.editor = Some(EditorPlace { port: 8001, base_path: String::new() });
    }
    options
}

#[tokio::test]
async fn what_is_an_agents_is_passed_on_with_a_key_of_its_own() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(with_agent(events.path(), &["python3", "-c", AGENT])).await;
    let key = [("x-session-api-key", "key")];
    // Nobody but who has the key starts it.
    for headers in [&[][..], &[("x-session-api-key", "wrong")]] {
        for path in ["/api/conversations", "/api/settings", "/v1/models", "/api/tools/"] {
            assert_eq!(asked(&server, "GET", path, headers, &Value::Null).await.status, 401, "{path}");
        }
    }
    let own = asked(&server, "GET", "/server_info", &[], &Value::Null).await.json();
    assert_eq!(own["title"], "gloveport");
    let editor = asked(&server, "GET", "/api/vscode/status", &key, &Value::Null).await.json();
    assert_eq!(editor, json!({"running": false, "enabled": true}));
    assert_eq!(asked(&server, "GET", "/api/vscode/url", &key, &Value::Null).await.json(), json!({"url": null}));
    for (method, path, status) in [
        ("POST", "/api/conversations", 201),
        ("GET", "/api/conversations/x/events/search?limit=100&page_id=", 200),
        ("DELETE", "/api/conversations/x", 200),
        ("PATCH", "/api/settings", 200),
        ("GET", "/api/no-such-thing", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/app-backends/a/b", 200),
        ("GET", "/api/tools/", 200),
        ("GET", "/api/file/download-trajectory/x", 200),
    ] {
        let body = if method == "POST" { json!({"a": 1}) } else { Value::Null };
        let answer = asked(&server, method, path, &key, &body).await;
        let told = answer.json();
        assert_eq!(answer.status, status, "{method} {path}: {told}");
        assert_eq!((&told["method"], &told["path"]), (&method.into(), &path.into()));
        assert_eq!((&told["known"], &told["more"]), (&true.into(), &"{port} more".into()));
        assert_eq!(told["body"], if method == "POST" { "{\"a\":1}" } else { "" });
    }
    let hidden = asked(&server, "GET", "/api/x?session_api_key=key&a=1", &key, &Value::Null).await.json();
    assert_eq!(hidden["path"], "/api/x?a=1");
    // Commands, files and git stay here.
    let ran = asked(&server, "POST", "/api/bash/execute_bash_command", &key, &json!({"command": "env"})).await.json();
    assert!(!ran["stdout"].as_str().unwrap().contains("OH_SESSION_API_KEYS"), "{ran}");
    let details = asked(&server, "GET", "/server_info", &[], &Value::Null).await.json();
    assert_eq!((&details["title"], details["idle_time"].as_f64().unwrap() < 3.0), (&"an agent".into(), true));
    server.stop().await;
}

#[tokio::test]
async fn an_agent_that_dies_comes_back_and_one_that_does_not_start_says_why() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(with_agent(events.path(), &["python3", "-c", AGENT])).await;
    let key = [("x-session-api-key", "key")];
    let path = "/api/conversations";
    assert_eq!(asked(&server, "GET", path, &key, &Value::Null).await.status, 200);
    for _ in 0..3 {
        // The one that kills it has no answer; those that come next wait for another.
        let killed = asked(&server, "GET", "/app-backends/die", &key, &Value::Null).await;
        assert_eq!(killed.status, 502, "{}", killed.text());
        let mut answered = 0;
        for _ in 0..20 {
            answered = asked(&server, "GET", path, &key, &Value::Null).await.status.as_u16();
            if answered == 200 {
                break;
            }
        }
        assert_eq!(answered, 200);
    }
    server.stop().await;
    let server = Server::with(with_agent(events.path(), &["/no/such/agent-server"])).await;
    let refused = asked(&server, "GET", path, &key, &Value::Null).await;
    assert_eq!(refused.status, 502);
    assert!(refused.text().contains("/no/such/agent-server"), "{}", refused.text());
    let auth = Some(json!({"type": "auth", "session_api_key": "key"}));
    let mut closed = socket(&server, "/sockets/events/x", auth).await.unwrap();
    assert_eq!(next(&mut closed).await["close"], 1013);
    server.stop().await;
}
