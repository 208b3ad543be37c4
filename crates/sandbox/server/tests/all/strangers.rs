//! Connections of those who do not have the key: what they cost, and that others are served beside them.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::time::{Duration, Instant};

use crate::common::{Server, request, within};
use gloveport_server::{ServerOptions, SessionKey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Connections of each kind that are made one after the other; the bound on open files stands in the way of more at once.
const CONNECTIONS: usize = 1500;
/// What they may make the process hold, the test's own sockets and the code of the server included.
const MEMORY: f64 = 64.0 * 1024.0 * 1024.0;

fn keyed(strangers: usize) -> ServerOptions {
    let mut options = ServerOptions { session_key: Some(SessionKey::new("k")), ..ServerOptions::default() };
    options.limits.strangers = strangers;
    options
}

fn with_key(path: &str) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let mut asked = request("GET", path, "");
    asked.headers_mut().insert("x-session-api-key", "k".parse().unwrap());
    asked
}

async fn resident(server: &Server) -> f64 {
    let text = server.connect().await.request(with_key("/metrics")).await.text();
    let line = text.lines().find_map(|line| line.strip_prefix("gloveport_process_resident_bytes ")).unwrap();
    line.parse().unwrap()
}

/// Sends the same on many connections that stay open, and looks at what the server has become.
async fn flood(bytes: &[u8]) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let server = Server::with(keyed(ServerOptions::default().limits.strangers)).await;
    let before = resident(&server).await;
    let mut open = Vec::new();
    for count in 0..CONNECTIONS {
        let stream = TcpStream::connect(server.address).await.unwrap();
        // As much as the server takes; it may have closed the connection already.
        let mut rest = bytes;
        while let Ok(written) = stream.try_write(rest) {
            rest = &rest[written..];
            if rest.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
        open.push(stream);
        if count % 250 == 249 {
            let now = resident(&server).await;
            assert!(now - before < MEMORY, "{before} became {now} with {count} connections");
        }
    }
    let asked = Instant::now();
    assert_eq!(server.connect().await.request(with_key("/ready")).await.status, 200);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    drop(open);
    server.stop().await;
}

macro_rules! floods {
    ($($name:ident: $bytes:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            within(flood(&$bytes)).await;
        }
    )*};
}

floods! {
    connections_that_say_nothing_cost_little: [];
    unfinished_heads_cost_little: [&b"GET / HTTP/1.1\r\nhost: localhost\r\nx: "[..], &vec![b'x'; 60_000]].concat();
    giant_heads_cost_little: [&b"GET / HTTP/1.1\r\nhost: localhost\r\nx: "[..], &vec![b'x'; 1_000_000]].concat();
    long_whole_heads_cost_little: [&b"GET /alive HTTP/1.1\r\nhost: localhost\r\nx: "[..], &vec![b'x'; 50_000], b"\r\n\r\n"].concat();
    bodies_without_a_key_cost_little:
        [&b"POST /execute_action HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60000000\r\n\r\n"[..], &vec![b'x'; 500_000]].concat();
    requests_in_a_row_without_a_key_cost_little: b"GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
    upgrades_without_a_key_cost_little:
        [&b"GET /v1/terminals/x/attach HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"[..], &vec![b'x'; 60_000]].concat();
}

#[tokio::test]
async fn the_oldest_stranger_makes_room_and_who_has_shown_the_key_stays() {
    within(async {
        let server = Server::with(keyed(2)).await;
        let mut known = server.connect().await;
        assert_eq!(known.request(with_key("/ready")).await.status, 200);
        let mut strangers = Vec::new();
        for _stranger in 0..3 {
            strangers.push(TcpStream::connect(server.address).await.unwrap());
        }
        // The first one is closed, and the third one is served.
        assert_eq!(strangers[0].read(&mut [0; 16]).await.unwrap(), 0);
        let alive = b"GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n";
        strangers[2].write_all(alive).await.unwrap();
        let mut answer = [0; 15];
        strangers[2].read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        assert_eq!(known.request(with_key("/ready")).await.status, 200);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_stranger_gets_no_answer_after_a_refusal_and_few_before() {
    within(async {
        let server = Server::with(keyed(100)).await;
        let (alive, ready) = ("GET /alive HTTP/1.1\r\nhost: a\r\n\r\n", "GET /ready HTTP/1.1\r\nhost: a\r\n\r\n");
        for (requests, answers) in [([ready, alive].concat(), vec!["403"]), (alive.repeat(100), vec!["200"; 32])] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(requests.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
            assert_eq!(statuses, answers);
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_head_of_more_than_128_kib_is_refused() {
    within(async {
        let server = Server::with(ServerOptions::default()).await;
        for (length, status) in [(40_000, "HTTP/1.1 200"), (200_000, "HTTP/1.1 431")] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let head = format!(
                "GET /alive HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: {}\r\n\r\n",
                "x".repeat(length)
            );
            // A server that refuses it does not read it to its end.
            let _written = stream.write_all(head.as_bytes()).await;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&answer), status, "{length}");
        }
        server.stop().await;
    })
    .await;
}
