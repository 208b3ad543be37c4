//! Clients that mean harm: what they send reaches no sandbox in another form, and nobody else notices.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use gloveport_gateway::{TlsFiles, TlsSource};

use crate::{
    gateway::{KEY, Running},
    gateway_wire::{connect, echoing, exchange, request},
    sandboxes::{LIMIT, run, spec},
};

/// What the server in the sandbox was asked.
async fn log(address: SocketAddr) -> Vec<String> {
    let log = request(address, "GET /a/work-1/log", &[("Host", "gateway")]).await.json();
    log.as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_smuggled_behind_a_body() {
    let running = Running::start().await;
    let address = running.address;
    echoing(&running, "a").await;
    let post = |headers: &str, body: &str| format!("POST /a/work-1/x HTTP/1.1\r\nHost: gateway\r\n{headers}\r\n{body}");
    let hidden = "GET /a/work-1/smuggled HTTP/1.1\r\nHost: gateway\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (headers, body) in [
        ("Content-Length: 1\r\nContent-Length: 60\r\n".to_owned(), format!("x{hidden}")),
        ("Content-Length: 1, 60\r\n".to_owned(), format!("x{hidden}")),
        ("Content-Length: 0x10\r\n".to_owned(), hidden.to_owned()),
        ("Content-Length: -1\r\n".to_owned(), hidden.to_owned()),
        ("Content-Length: 99999999999999999999999\r\n".to_owned(), hidden.to_owned()),
        ("Transfer-Encoding: identity\r\n".to_owned(), hidden.to_owned()),
        ("Transfer-Encoding: chunked, identity\r\n".to_owned(), format!("0\r\n\r\n{hidden}")),
        ("Transfer-Encoding : chunked\r\n".to_owned(), format!("0\r\n\r\n{hidden}")),
        ("Transfer-Encoding: xchunked\r\n".to_owned(), format!("0\r\n\r\n{hidden}")),
        (chunked.to_owned(), format!("+0\r\n\r\n{hidden}")),
        (chunked.to_owned(), format!("0x0\r\n\r\n{hidden}")),
        (chunked.to_owned(), format!("fffffffffffffffff\r\n{hidden}")),
        (chunked.to_owned(), format!("1\r\nxy\r\n0\r\n\r\n{hidden}")),
        (chunked.to_owned(), format!("0;a\n\r\n\r\n{hidden}")),
        (chunked.to_owned(), format!("-1\r\n\r\n{hidden}")),
    ] {
        let answer = exchange(address, post(&headers, &body)).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{headers:?} {body:?}: {answer}");
        assert!(!log(address).await.contains(&"/smuggled".to_owned()), "{headers:?} {body:?}");
    }
    // With both, the chunks count, and the sandbox is told of them alone.
    let both = post(&format!("Content-Length: 60\r\n{chunked}Connection: close\r\n"), "1\r\nx\r\n0\r\n\r\n");
    let answer = exchange(address, both).await;
    let answer = String::from_utf8_lossy(&answer);
    if answer.starts_with("HTTP/1.1 200") {
        assert!(answer.contains("\"body\": \"x\"") && !answer.contains("\"content-length\": \"60\""), "{answer}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_carry_no_headers_and_ids_no_paths() {
    let running = Running::with(|options| options.domain = Some("example.org".to_owned())).await;
    let address = running.address;
    echoing(&running, "a").await;
    let path = "/x%0d%0aX-Evil:%20yes%0d%0a%0d%0aGET%20/smuggled";
    let told = request(address, &format!("GET /a/work-1{path}"), &[("Host", "gateway")]).await.json();
    assert_eq!((told["path"].as_str(), told["headers"].get("x-evil")), (Some(path), None));
    for id in ["..", "%2e%2e", "a%2f..", "..%2fa", "a%00", "a%0d%0a", ".a", "%61", "a;b", "a b"] {
        let answer = request(address, &format!("GET /{id}/alive"), &[("Host", "gateway")]).await;
        assert!([400, 404].contains(&answer.status), "{id}: {answer:?}");
        let host = format!("{id}.example.org");
        let answer = request(address, "GET /alive", &[("Host", &host)]).await;
        assert!([400, 404].contains(&answer.status), "{host}: {answer:?}");
    }
    for path in ["/%2e%2e/b", "/x/..%5c", "/x/%2E./y", "*"] {
        let line = if path == "*" { "OPTIONS *".to_owned() } else { format!("GET {path}") };
        let answer = request(address, &line, &[("Host", "work-1-a.example.org")]).await;
        let is_sent = answer.status == 200 && answer.json()["path"] == path;
        assert!(answer.status == 400 || (path.ends_with("%5c") && is_sent), "{path}: {answer:?}");
    }
    assert!(!log(address).await.contains(&"/smuggled".to_owned()));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_answer_leads_is_never_made_of_what_a_client_says() {
    let running = Running::start().await;
    let address = running.address;
    echoing(&running, "a").await;
    let evil =
        [("Host", "evil.example"), ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Prefix", "//evil.example")];
    for (path, expected) in [("/a/work-1/here", "/a/work-1/login"), ("/a/work-1/away", "http://elsewhere.example/a")] {
        let answer = request(address, &format!("GET {path}"), &evil).await;
        assert_eq!(answer.all("location"), [expected]);
    }
    // The page of a port is under its slash, as its links begin there; the rest of what is asked for stays a query.
    let answer = request(address, "GET /a/work-1?tkn=1&//evil.example", &evil).await;
    assert_eq!((answer.status, answer.all("location")), (307, vec!["work-1/?tkn=1&//evil.example".to_owned()]));
    let answer = request(address, "POST /a/work-1", &evil).await;
    assert_eq!((answer.status, answer.all("location").len()), (200, 0));
    for path in ["//evil.example/", "/\\evil.example", "/a", "/a//evil.example/..", "/http://evil.example"] {
        let answer = request(address, &format!("GET {path}"), &evil).await;
        assert_eq!(answer.all("location"), [] as [&str; 0], "{path}: {answer:?}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_end_with_their_time_and_floods_of_headers_at_once() {
    let running = Running::with(|options| options.patience = Duration::from_secs(1)).await;
    let address = running.address;
    // Nothing, a part of a head, a part of HTTP/2, all of it and then nothing, and the begin of a header.
    let frames = [PREFACE, &frame(4, 0, 0, &[])].concat();
    let half = [&*frames, &frame(1, 0, 1, &head("/"))].concat();
    for sent in [&b""[..], b"GET / HTTP/1.1\r\nHost: ", &PREFACE[..10], &frames, &half] {
        let (began, sent) = (Instant::now(), sent.to_vec());
        let answer = exchange(address, sent.clone()).await;
        assert!(began.elapsed() < Duration::from_secs(20), "{sent:?}: {answer:?}");
    }
    let mut flood = String::from("GET /healthz HTTP/1.1\r\nHost: a\r\n");
    for number in 0..100_000 {
        write!(flood, "X-{number}: y\r\n").unwrap();
    }
    let answer = exchange(address, flood).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{:?}", answer.get(..20));
    // The same by HTTP/2, where a head has no end.
    let mut flood = frames.clone();
    flood.extend(frame(1, 0, 1, &head("/")));
    for _ in 0..2000 {
        flood.extend(frame(9, 0, 1, &[&[0, 1, b'x', 127, 0][..], &[b'y'; 127]].concat().repeat(30)));
    }
    let began = Instant::now();
    exchange(address, flood).await;
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(running.raw("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()).await.contains(" 200 "));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_holds_nobody_up() {
    let running = Running::start().await;
    let sandbox = running.alive(&running.backend(), &spec("a")).await;
    let slow = |path: &str, key: &str| {
        let mut stream = connect(running.address);
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{key}Content-Length: 9\r\n\r\n{{");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let key = format!("X-API-Key: {KEY}\r\n");
    let mut streams: Vec<TcpStream> = (0..100).map(|_| slow("/start", &key)).collect();
    streams.extend((0..50).map(|_| slow("/a/execute_action", "")));
    assert_eq!(run(&sandbox, "echo here").await, "here");
    assert_eq!(running.ask("GET", "/list", Some(KEY), None).await.0, 200);
    // Those of the interface end with their time.
    let first = streams.swap_remove(0);
    first.set_read_timeout(Some(LIMIT * 2)).unwrap();
    let told = tokio::task::spawn_blocking(move || {
        let (mut first, mut head) = (first, [0; 12]);
        first.read_exact(&mut head).unwrap();
        String::from_utf8_lossy(&head).into_owned()
    });
    assert_eq!(told.await.unwrap(), "HTTP/1.1 408");
    drop(streams);
    running.end().await;
}

/// How a connection by HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of `GET` with a path of at most 126 bytes.
fn head(path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).unwrap();
    [&[0x82, 0x86, 0x01, 7][..], b"gateway", &[0x04, length], path.as_bytes()].concat()
}

/// The frames of an answer: kind, stream, payload.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some((payload, next)) = rest.split_at_checked(length) else { break };
        frames.push((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload.to_vec()));
        bytes = next;
    }
    frames
}

const RESET: u8 = 3;
const GO_AWAY: u8 = 7;
const REFUSED: u32 = 7;
const CALM: u32 = 11;

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_resets_ends_its_connection_alone() {
    let running = Running::start().await;
    let mut flood = [PREFACE, &frame(4, 0, 0, &[]), &frame(4, 1, 0, &[])].concat();
    for stream in (1..20_001).step_by(2) {
        flood.extend(frame(1, 5, stream, &head("/healthz")));
        flood.extend(frame(RESET, 0, stream, &8_u32.to_be_bytes()));
    }
    let began = Instant::now();
    let answer = exchange(running.address, flood).await;
    assert!(began.elapsed() < Duration::from_secs(20), "the connection was not ended");
    let away = frames(&answer).into_iter().find(|(kind, ..)| *kind == GO_AWAY);
    // It may be lost with the connection.
    if let Some((_, _, payload)) = away {
        assert_eq!(payload[4..8], CALM.to_be_bytes());
    }
    assert!(running.raw("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()).await.contains(" 200 "));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_at_a_time_than_a_connection_may_have_are_refused() {
    let running = Running::start().await;
    let address = running.address;
    echoing(&running, "a").await;
    let refused = tokio::task::spawn_blocking(move || {
        let mut stream = connect(address);
        stream.write_all(&[PREFACE, &frame(4, 0, 0, &[]), &frame(4, 1, 0, &[])].concat()).unwrap();
        // Its settings hold when they are known.
        let mut seen = vec![0; 9];
        stream.read_exact(&mut seen).unwrap();
        let mut many = Vec::new();
        for stream in (1..401).step_by(2) {
            many.extend(frame(1, 5, stream, &head("/a/work-1/slow")));
        }
        stream.write_all(&many).unwrap();
        let mut part = [0; 4096];
        let is_refused =
            |(kind, _, payload): &&(u8, u32, Vec<u8>)| *kind == RESET && payload[..] == REFUSED.to_be_bytes();
        let began = Instant::now();
        loop {
            let count = stream.read(&mut part).unwrap();
            seen.extend_from_slice(&part[..count]);
            let refused = frames(&seen).iter().filter(is_refused).count();
            if refused >= 72 || count == 0 || began.elapsed() > LIMIT {
                return refused;
            }
        }
    });
    assert_eq!(refused.await.unwrap(), 72);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn web_sockets_are_bounded_and_their_places_come_back() {
    let running = Running::with(|options| options.websockets = 8).await;
    let address = running.address;
    echoing(&running, "a").await;
    let seen = tokio::task::spawn_blocking(move || {
        let open = || {
            let mut stream = connect(address);
            let ask = "GET /a/work-1/socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
            stream.write_all(ask.as_bytes()).unwrap();
            let mut head = [0; 12];
            stream.read_exact(&mut head).unwrap();
            (stream, String::from_utf8_lossy(&head).into_owned())
        };
        let mut sockets: Vec<TcpStream> = Vec::new();
        for _ in 0..8 {
            let (stream, status) = open();
            assert_eq!(status, "HTTP/1.1 101");
            sockets.push(stream);
        }
        for _ in 0..50 {
            assert_eq!(open().1, "HTTP/1.1 503");
        }
        sockets.pop();
        let began = Instant::now();
        while open().1 != "HTTP/1.1 101" {
            assert!(began.elapsed() < LIMIT, "the place did not come back");
        }
    });
    seen.await.unwrap();
    // Other requests pass meanwhile.
    assert_eq!(running.ask("GET", "/a/alive", None, None).await.0, 200);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_tls_ends_and_a_client_that_says_nothing_has_ten_seconds() {
    let home = tempfile::tempdir().unwrap();
    let files = TlsFiles { certificate: home.path().join("cert.pem"), key: home.path().join("key.pem") };
    let mut openssl = Command::new("openssl");
    openssl.args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost".split(' '));
    openssl.arg("-keyout").arg(&files.key).arg("-out").arg(&files.certificate);
    assert!(openssl.output().unwrap().status.success());
    let running = Running::with(|options| options.tls = Some(TlsSource::Files(files))).await;
    let hello = |length: u16| [&[0x16, 3, 1][..], &length.to_be_bytes(), &[1, 0, 0xff, 0xff, 3, 3]].concat();
    for (sent, is_at_once) in [
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), true),
        (vec![0xff; 100_000], true),
        ([hello(6), vec![0x16, 3, 1, 0xff, 0xff]].concat(), true),
        // SSL 3 and TLS 1.0 with one old cipher.
        ([&[0x16, 3, 0, 0, 45, 1, 0, 0, 41, 3, 0][..], &[7; 32], &[0, 0, 2, 0, 10, 1, 0]].concat(), true),
        (hello(500), false),
        (Vec::new(), false),
    ] {
        let began = Instant::now();
        let answer = exchange(running.address, sent.clone()).await;
        let took = began.elapsed();
        assert!(!answer.starts_with(b"HTTP"), "{:?}", sent.get(..20));
        assert!(took < Duration::from_secs(if is_at_once { 8 } else { 20 }), "{:?} took {took:?}", sent.get(..20));
    }
    running.end().await;
}
