//! Who is let in: every route, every method, every form of the key, and pages of browsers; and HTTP that two readers would
//! understand differently.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::collections::BTreeSet;

use crate::common::{Server, within};
use gloveport_server::{Origins, ServerOptions, SessionKey, StrangeNames};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];

const BEARER: &str = "authorization: Bearer s3cret\r\n";

fn keyed() -> ServerOptions {
    ServerOptions { session_key: Some(SessionKey::new("s3cret")), ..ServerOptions::default() }
}

/// Every path of the document, which a test of the server compares with its router, those of plugins, and some that there
/// are not; with ids filled in.
async fn paths(server: &Server, key: &str) -> Vec<String> {
    let head = format!("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n{key}connection: close\r\n\r\n");
    let answer = exchange(server, head.as_bytes()).await;
    let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let known = document["paths"].as_object().unwrap().keys().cloned();
    let others = [
        "/",
        "/nowhere",
        "/v1",
        "/v1/",
        "/mcp/sse",
        "/mcp/messages/",
        "/mcp",
        "/plugins/none/",
        "/plugins/none",
        "/plugins/",
        "/plugins//",
        "/plugins//none/",
        "//plugins/none/",
        "/plugins",
        "/ALIVE",
        "/alive/",
        "//alive",
        "/./alive",
        "/alive/../ready",
        "/%61live",
        "/alive%2f",
        "/alive;x",
        "/server_info/",
        "//server_info",
        "/favicon.ico",
        "/robots.txt",
        "/.well-known/x",
        "/alive%00",
        "/ready?x=/alive",
        "/ready#/alive",
        "/%2e%2e/alive",
    ];
    let all: BTreeSet<String> = known.chain(others.map(str::to_owned)).collect();
    all.into_iter().map(|path| path.replace(['{', '}'], "")).collect()
}

/// Sends bytes, ends the direction, and gives all that comes back.
async fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let _refused = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn request(method: &str, path: &str, headers: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: 2\r\n\r\n{{}}"
    )
}

/// What every answer of the server itself says to browsers.
fn assert_shown_alone(answer: &str, what: &str) {
    let head = answer.split("\r\n\r\n").next().unwrap();
    for line in [
        "x-content-type-options: nosniff",
        "content-security-policy: default-src 'none'; ",
        "cross-origin-resource-policy: same-origin",
        "referrer-policy: no-referrer",
        "x-frame-options: DENY",
    ] {
        assert!(head.contains(line), "{what}: {line} is not in\n{head}");
    }
    assert!(!head.to_ascii_lowercase().contains("access-control-allow"), "{what}\n{head}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_key_nothing_but_two_paths_is_answered() {
    within(async {
        let server = Server::with(keyed()).await;
        let forms = [
            String::new(),
            "x-session-api-key: \r\n".into(),
            "x-session-api-key: S3CRET\r\n".into(),
            "x-session-api-key: s3cre\r\n".into(),
            "x-session-api-key: s3crets\r\n".into(),
            "x-session-api-key: \"s3cret\"\r\n".into(),
            "x-session-api-key: s3cret, s3cret\r\n".into(),
            "x-session-api-key: wrong\r\nx-session-api-key: s3cret\r\n".into(),
            "x-session-api-key:\tx\r\n".into(),
            "x_session_api_key: s3cret\r\n".into(),
            BEARER.into(),
            "authorization: Bearer wrong\r\n".into(),
            "authorization: s3cret\r\n".into(),
            "cookie: x-session-api-key=s3cret; gloveport-none-00000000=s3cret\r\n".into(),
            "sec-websocket-protocol: gloveport.key.czNjcmV0\r\n".into(),
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: gloveport.key.d3Jvbmc\r\n".into(),
        ];
        let (mut asked, paths) = (0, paths(&server, "x-session-api-key: s3cret\r\n").await);
        assert!(paths.len() > 40, "{paths:?}");
        for path in &paths {
            for method in METHODS {
                // One after the other on a connection each; all forms for the two most used methods.
                let some = if matches!(method, "GET" | "POST") { forms.len() } else { 2 };
                for form in &forms[..some] {
                    // MCP's clients send keys as bearer tokens.
                    if form == BEARER && (path == "/mcp" || path == "/mcp/proxy") {
                        continue;
                    }
                    let answer = exchange(&server, request(method, path, form).as_bytes()).await;
                    let expected: &[u16] = match path.as_str() {
                        "/alive" | "/server_info" => &[200, 405],
                        // No path at all: refused by the parser.
                        _ if path.contains('#') => &[400, 403],
                        _ => &[403],
                    };
                    assert!(expected.contains(&status(&answer)), "{method} {path} {form:?}\n{answer}");
                    if status(&answer) != 400 {
                        assert_shown_alone(&answer, &format!("{method} {path}"));
                    }
                    asked += 1;
                }
            }
        }
        assert!(asked > 1500, "{asked}");
        for query in ["x-session-api-key=s3cret", "key=s3cret", "tkn=s3cret", "session_api_key=s3cret"] {
            let answer = exchange(&server, request("GET", &format!("/ready?{query}"), "").as_bytes()).await;
            assert_eq!(status(&answer), 403, "{query}");
        }
        for (path, let_in) in [("/mcp", 406), ("/mcp/proxy", 404)] {
            let answer = exchange(&server, request("GET", path, BEARER).as_bytes()).await;
            assert_eq!(status(&answer), let_in, "{path}\n{answer}");
        }
        for right in ["x-session-api-key: s3cret\r\n", "X-SESSION-API-KEY:   s3cret  \r\n"] {
            assert_eq!(status(&exchange(&server, request("GET", "/ready", right).as_bytes()).await), 200, "{right}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_no_route_answers_a_page() {
    within(async {
        let strict = Server::start().await;
        let lenient =
            Server::with(ServerOptions { strange_names: StrangeNames::OfPrograms, ..ServerOptions::default() }).await;
        let pages = [
            "origin: http://localhost\r\n",
            "origin: http://evil.test\r\n",
            "origin: null\r\n",
            "sec-fetch-site: same-origin\r\nsec-fetch-mode: cors\r\nsec-fetch-dest: empty\r\n",
            "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: script\r\n",
            "sec-fetch-site: same-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n",
            "accept-language: en\r\n",
            "referer: http://evil.test/\r\n",
        ];
        for server in [&strict, &lenient] {
            for path in paths(server, "").await.iter().filter(|path| *path != "/alive" && !path.contains('#')) {
                for method in ["GET", "POST", "OPTIONS"] {
                    for page in pages {
                        let answer = exchange(server, request(method, path, page).as_bytes()).await;
                        assert_eq!(status(&answer), 403, "{method} {path} {page}\n{answer}");
                        assert_shown_alone(&answer, &format!("{method} {path}"));
                    }
                }
                let rebound = format!("GET {path} HTTP/1.1\r\nhost: evil.test\r\nconnection: close\r\naccept-language: en\r\n\r\n");
                assert_eq!(status(&exchange(server, rebound.as_bytes()).await), 403, "{path}");
            }
        }
        let made = json!({"action": {"action": "run", "args": {"command": "touch made"}}}).to_string();
        for (host, status_of_strict, status_of_lenient) in
            [("localhost", 200, 200), ("127.0.0.1:1", 200, 200), ("[::1]", 200, 200), ("box.example", 403, 200)]
        {
            for (server, expected) in [(&strict, status_of_strict), (&lenient, status_of_lenient)] {
                let text = format!(
                    "POST /execute_action HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{made}",
                    made.len()
                );
                assert_eq!(status(&exchange(server, text.as_bytes()).await), expected, "{host}");
            }
        }
        strict.stop().await;
        lenient.stop().await;
    })
    .await;
}

#[tokio::test]
async fn what_is_answered_is_shown_alone_whatever_it_is() {
    within(async {
        let server = Server::start().await;
        std::fs::write(server.directory.path().join("page.html"), "<script>alert(1)</script>").unwrap();
        for path in
            ["/alive", "/docs", "/openapi.json", "/metrics", "/v1/files/content?path=page.html", "/nowhere", "/v1/exec"]
        {
            assert_shown_alone(&exchange(&server, request("GET", path, "").as_bytes()).await, path);
        }
        let content = server.get("/v1/files/content?path=page.html").await;
        assert_eq!(
            (content.header("content-type"), content.header("content-disposition")),
            (Some("application/octet-stream"), Some("attachment"))
        );
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn http_that_two_readers_would_understand_differently_is_not_answered_twice_or_with_less_than_the_key() {
    within(async {
        let server = Server::with(keyed()).await;
        let alive = "GET /alive HTTP/1.1\r\nhost: a\r\n";
        let hidden = "GET /ready HTTP/1.1\r\nhost: a\r\nx-session-api-key: s3cret\r\n\r\n";
        for (what, text, expected) in [
            ("two hosts", "GET /alive HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned(), vec![400]),
            ("no host", "GET /alive HTTP/1.1\r\n\r\n".to_owned(), vec![400]),
            ("no host in HTTP/1.0", "GET /alive HTTP/1.0\r\n\r\n".to_owned(), vec![200]),
            ("an empty host", "GET /alive HTTP/1.1\r\nhost:\r\n\r\n".to_owned(), vec![400]),
            (
                "an absolute target",
                "GET http://b/ready HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_owned(),
                vec![403],
            ),
            (
                "an absolute target that is open",
                "GET http://b/alive HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_owned(),
                vec![200],
            ),
            ("a tunnel", "CONNECT a:80 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_owned(), vec![403]),
            ("a folded header", format!("{alive}x: a\r\n b\r\n\r\n"), vec![400]),
            ("a blank before the colon", format!("{alive}x : a\r\n\r\n"), vec![400]),
            ("a header without a name", format!("{alive}: a\r\n\r\n"), vec![400]),
            ("a null in a header", format!("{alive}x: a\0b\r\n\r\n"), vec![400]),
            ("a lone carriage return", format!("{alive}x: a\rb: c\r\n\r\n"), vec![400]),
            (
                "two lengths",
                format!("{alive}content-length: 0\r\ncontent-length: {}\r\n\r\n{hidden}", hidden.len()),
                vec![400],
            ),
            ("a length with a sign", format!("{alive}content-length: +0\r\n\r\n"), vec![400]),
            ("a negative length", format!("{alive}content-length: -1\r\n\r\n"), vec![400]),
            ("a length beyond all", format!("{alive}content-length: 99999999999999999999999\r\n\r\n"), vec![400]),
            (
                "an encoding that does not end in chunks",
                format!("{alive}transfer-encoding: chunked, x\r\n\r\n"),
                vec![400],
            ),
            ("an unknown encoding", format!("{alive}transfer-encoding: xchunked\r\n\r\n"), vec![400]),
            (
                "chunks in HTTP/1.0",
                format!("GET /alive HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
                vec![400],
            ),
            ("an unknown version", "GET /alive HTTP/3.0\r\nhost: a\r\n\r\n".to_owned(), vec![400]),
            ("HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), vec![]),
            ("no method", " /alive HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), vec![400]),
            ("a blank in the path", "GET /alive /x HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), vec![400]),
        ] {
            let answer = exchange(&server, text.as_bytes()).await;
            let statuses: Vec<u16> = answer.split("HTTP/1.").skip(1).map(|one| one[2..5].parse().unwrap()).collect();
            assert_eq!(statuses, expected, "{what}\n{answer}");
        }
        // Both a length and chunks: the chunks count, and what is behind them on the connection is not another request.
        let both = format!(
            "{alive}content-length: {}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
            5 + hidden.len()
        );
        let answer = exchange(&server, both.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        server.stop().await;
    })
    .await;
}

/// The values of a header in an answer.
fn values<'a>(answer: &'a str, name: &str) -> Vec<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_origins_that_were_named_use_the_native_interface_with_the_key_and_no_others() {
    const ALLOWED: &str = "access-control-allow-origin";
    const KEY: &str = "x-session-api-key: s3cret\r\n";
    const APP: &str = "https://app.example";
    within(async {
        let allowing = |origin: &str| Origins::new(&[origin.to_owned()]).unwrap();
        let none = Server::with(keyed()).await;
        let one = Server::with(ServerOptions { origins: allowing(APP), ..keyed() }).await;
        let all = Server::with(ServerOptions { origins: allowing("*"), ..keyed() }).await;
        // Without a key there is nothing that a page would have to bring, so origins count for nothing.
        let open = Server::with(ServerOptions { origins: allowing("*"), ..ServerOptions::default() }).await;
        for (server, origin, path, expected) in [
            (&none, APP, "/v1/sandbox", None),
            (&one, APP, "/v1/sandbox", Some(APP)),
            (&one, APP, "/v1/exec", Some(APP)),
            (&one, APP, "/alive", Some(APP)),
            (&one, APP, "/mcp", Some(APP)),
            (&one, "https://evil.example", "/v1/sandbox", None),
            (&one, "null", "/v1/sandbox", None),
            (&all, "https://evil.example", "/v1/sandbox", Some("*")),
            (&all, "null", "/v1/sandbox", Some("*")),
            // The wire of OpenHands, programs behind ports and the view have no such pages.
            (&all, APP, "/execute_action", None),
            (&all, APP, "/v1/ports/1/", None),
            (&all, APP, "/v1/browser/view", None),
            (&all, APP, "/plugins/none/", None),
            (&open, APP, "/v1/sandbox", None),
        ] {
            let what = format!("{origin} {path} {expected:?}");
            let expected: Vec<_> = expected.into_iter().collect();
            let origin = format!("origin: {origin}\r\n");
            let asks = format!(
                "{origin}access-control-request-method: POST\r\naccess-control-request-headers: x-session-api-key\r\n\
                 access-control-request-private-network: true\r\n"
            );
            let preflight = exchange(server, request("OPTIONS", path, &asks).as_bytes()).await;
            assert_eq!(values(&preflight, ALLOWED), expected, "{what}\n{preflight}");
            assert_eq!(status(&preflight) == 200, !expected.is_empty() || path == "/alive", "{what}\n{preflight}");
            if !expected.is_empty() {
                assert!(
                    values(&preflight, "access-control-allow-headers")[0].starts_with("X-Session-API-Key, "),
                    "{what}"
                );
                assert_eq!(
                    values(&preflight, "access-control-allow-methods"),
                    ["DELETE, GET, HEAD, POST, PUT"],
                    "{what}"
                );
                assert_eq!(values(&preflight, "access-control-allow-private-network"), ["true"], "{what}");
            }
            // A page reads why it is refused, and gets no further without the key.
            for (key, admitted) in [("", false), (KEY, true), ("cookie: key=s3cret\r\n", false)] {
                let answer = exchange(server, request("GET", path, &format!("{origin}{key}")).as_bytes()).await;
                assert_eq!(values(&answer, ALLOWED), expected, "{what}\n{answer}");
                assert!(path == "/alive" || admitted || status(&answer) == 403, "{what}\n{answer}");
                assert!(values(&answer, "access-control-allow-credentials").is_empty(), "{what}\n{answer}");
                assert_eq!(values(&answer, "access-control-expose-headers").len(), expected.len(), "{what}\n{answer}");
                if expected.is_empty() {
                    assert_shown_alone(&answer, &what);
                }
            }
        }
        let varies = exchange(&one, request("GET", "/v1/sandbox", KEY).as_bytes()).await;
        assert_eq!((status(&varies), values(&varies, "vary")), (200, vec!["Origin"]), "{varies}");
    })
    .await;
}
