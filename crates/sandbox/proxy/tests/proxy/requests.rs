//! Requests and answers of any size, form and end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use crate::support::{Body, Front, LONG, full, http_service, http_service_at, raw_service, read_all, read_to, until};
use bytes::Bytes;
use gloveport_plugin::Endpoint;
use gloveport_proxy::ProxyLimits;
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixListener,
    time::timeout,
};

/// An answer that does not end, and a count of what was taken of it.
fn endless(taken: Arc<AtomicU64>) -> Response<Body> {
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let pieces = futures_util::stream::repeat_with(move || {
        taken.fetch_add(piece.len() as u64, SeqCst);
        Ok(Frame::data(piece.clone()))
    });
    Response::new(StreamBody::new(pieces).boxed_unsync())
}

/// Waits until a number has stopped to grow, and gives it.
async fn at_rest(number: &AtomicU64) -> u64 {
    let mut last = number.load(SeqCst);
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = number.load(SeqCst);
        if now == last && now > 0 {
            return now;
        }
        last = now;
    }
}

/// Answers with the request, as lines in their order, and the body.
async fn show(request: http::Request<hyper::body::Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut lines = vec![format!("{} {} {:?}", parts.method, parts.uri, parts.version)];
    lines.extend(parts.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())));
    lines.sort();
    lines.push(String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap());
    Response::builder()
        .status(201)
        .header("location", "/made?x#y")
        .header("set-cookie", "a=b; Path=/; Domain=localhost")
        .header("keep-alive", "timeout=1")
        .body(full(lines.join("\n")))
        .unwrap()
}

#[tokio::test]
async fn a_request_reaches_a_port_and_a_socket_with_all_that_a_proxy_says() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(http_service_at(listener, show));
    for endpoint in [http_service(show).await, Endpoint::Socket(socket)] {
        let front = Front::start(endpoint, "/plugins/a", ProxyLimits::default()).await;
        for (framing, sent) in
            [("content-length: 5", "hello"), ("transfer-encoding: chunked", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")]
        {
            let answer = front
                .exchange(&format!(
                    "PUT /plugins/a/x%2Fy?q=1 HTTP/1.1\r\nHost: box.example:8000\r\nConnection: close, x-hop\r\n\
                     X-Hop: 1\r\nCookie: gloveport-a-12345678=secret; c=d\r\nX-Session-API-Key: secret\r\n\
                     Origin: http://box.example:8000\r\n{framing}\r\n\r\n{sent}"
                ))
                .await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let expected = [
                "PUT /x%2Fy?q=1 HTTP/1.1",
                framing,
                "cookie: c=d",
                "host: box.example:8000",
                "origin: http://box.example:8000",
                "x-forwarded-for: 127.0.0.1",
                "x-forwarded-host: box.example:8000",
                "x-forwarded-prefix: /plugins/a",
                "x-forwarded-proto: http",
            ];
            let mut lines: Vec<_> = body.lines().collect();
            assert_eq!(lines.pop(), Some("hello"));
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(lines, expected);
            let mut head: Vec<_> = head.lines().filter(|line| !line.starts_with("date: ")).collect();
            head.sort_unstable();
            let length = format!("content-length: {}", body.len());
            let expected = [
                "HTTP/1.1 201 Created",
                "connection: close",
                &length,
                "location: /plugins/a/made?x#y",
                "set-cookie: a=b; Path=/plugins/a/",
            ];
            assert_eq!(head, expected);
        }
        front.unused().await;
    }
}

#[tokio::test]
async fn answers_without_a_body_stay_as_they_are() {
    let endpoint = http_service(async |request: http::Request<_>| {
        let status = request.uri().path().trim_start_matches('/').parse::<u16>().unwrap();
        let body = if status == 200 { full("hello") } else { full("") };
        Response::builder().status(status).header("etag", "\"1\"").body(body).unwrap()
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    for (line, status, length) in [
        ("HEAD /200 HTTP/1.1", "HTTP/1.1 200 OK", Some("5")),
        ("GET /304 HTTP/1.1", "HTTP/1.1 304 Not Modified", None),
        ("GET /204 HTTP/1.1", "HTTP/1.1 204 No Content", None),
        ("DELETE /200 HTTP/1.1", "HTTP/1.1 200 OK", Some("5")),
        ("GET /200 HTTP/1.0", "HTTP/1.0 200 OK", Some("5")),
    ] {
        let answer = front.exchange(&format!("{line}\r\nhost: a\r\nconnection: close\r\n\r\n")).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.lines().next().unwrap(), status, "{line}");
        assert_eq!(head.lines().find_map(|line| line.strip_prefix("content-length: ")), length, "{line} {head}");
        assert_eq!(body, if length.is_some() && !line.starts_with("HEAD") { "hello" } else { "" }, "{line}");
    }
}

#[tokio::test]
async fn a_client_that_reads_slowly_slows_the_service_down() {
    let taken = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&taken);
    let endpoint = http_service(move |_| std::future::ready(endless(Arc::clone(&counted)))).await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let mut stream = front.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let first = timeout(LONG, at_rest(&taken)).await.expect("the service is never slowed down");
    assert!(first < 32 << 20, "{first} bytes are on their way to a client that reads nothing");
    // Whoever reads gets on.
    let mut waste = vec![0; 1 << 20];
    for _ in 0..64 {
        stream.read_exact(&mut waste).await.unwrap();
    }
    assert!(taken.load(SeqCst) > first);
    assert_eq!(front.uses(), 1);
    drop(stream);
    front.unused().await;
}

#[tokio::test]
async fn a_service_that_reads_slowly_slows_the_client_down() {
    let endpoint = raw_service(async |stream| {
        // It accepts, reads nothing, and does not go away.
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let front =
        Front::start(endpoint, "", ProxyLimits { head: Duration::from_secs(3), ..ProxyLimits::default() }).await;
    let stream = front.connect().await;
    let (mut input, mut output) = stream.into_split();
    output.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n").await.unwrap();
    let sent = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        let piece = vec![0; 64 * 1024];
        while output.write_all(&piece).await.is_ok() {
            counted.fetch_add(piece.len() as u64, SeqCst);
        }
    });
    let mut answer = vec![0; 4096];
    let count = timeout(LONG, input.read(&mut answer)).await.expect("there is no time limit").unwrap();
    let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{answer}");
    assert!(
        answer.ends_with("{\"detail\":\"no answer came for 3 s; the service may hang, look into its log\"}"),
        "{answer}"
    );
    assert!(sent.load(SeqCst) < 32 << 20, "{} bytes are on their way", sent.load(SeqCst));
    front.unused().await;
}

#[tokio::test]
async fn a_gigabyte_travels_both_ways() {
    const SIZE: u64 = 1 << 30;
    let endpoint = http_service(async |request: http::Request<hyper::body::Incoming>| {
        Response::new(request.into_body().map_err(std::io::Error::other).boxed_unsync())
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let (mut input, mut output) = front.connect().await.into_split();
    tokio::spawn(async move {
        output
            .write_all(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {SIZE}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let piece = vec![7; 1 << 20];
        for _ in 0..SIZE >> 20 {
            output.write_all(&piece).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let head = read_to(&mut input, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("content-length: {SIZE}\r\n")), "{head}");
    let mut rest = SIZE;
    let mut buffer = vec![0; 1 << 20];
    while rest > 0 {
        let count = timeout(LONG, input.read(&mut buffer)).await.expect("it stands still").unwrap();
        assert!(count > 0 && buffer[..count].iter().all(|byte| *byte == 7));
        rest -= count as u64;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100 * 1024, "client, proxy and service took up {peak} KiB together");
}

#[tokio::test]
async fn a_service_that_ends_early_is_told_apart_from_one_that_is_done() {
    for (said, expected) in [
        ("", "HTTP/1.1 502 Bad Gateway"),
        ("HTTP/1.1 200 OK\r\ncontent-le", "HTTP/1.1 502 Bad Gateway"),
        ("nonsense\r\n\r\n", "HTTP/1.1 502 Bad Gateway"),
        ("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "HTTP/1.1 502 Bad Gateway"),
        ("HTTP/1.1 200 OK\r\n\r\nall until the end", "HTTP/1.1 200 OK"),
    ] {
        let endpoint = raw_service(async move |mut stream| {
            read_to(&mut stream, "\r\n\r\n").await;
            stream.write_all(said.as_bytes()).await.unwrap();
        })
        .await;
        let front = Front::start(endpoint, "", ProxyLimits::default()).await;
        let answer = front.exchange("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        assert_eq!(answer.lines().next().unwrap_or_default(), expected, "{said:?}: {answer}");
        if expected.contains("200") {
            assert!(answer.contains("all until the end"), "{answer}");
        }
        front.unused().await;
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_taken_for_a_whole_one() {
    for said in [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly a part",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\nonly a part\r\n",
    ] {
        let endpoint = raw_service(async move |mut stream| {
            read_to(&mut stream, "\r\n\r\n").await;
            stream.write_all(said.as_bytes()).await.unwrap();
        })
        .await;
        let front = Front::start(endpoint, "", ProxyLimits::default()).await;
        let answer = front.exchange("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        let complete = answer.ends_with("0\r\n\r\n");
        assert!(answer.contains("only a part") && !complete, "{answer}");
        front.unused().await;
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_request_arrives() {
    let endpoint = raw_service(async |mut stream| {
        read_to(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig").await.unwrap();
        // It reads on, so that its answer is not lost with the connection.
        let mut waste = vec![0; 1 << 16];
        while stream.read(&mut waste).await.is_ok_and(|count| count > 0) {}
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let mut stream = front.connect().await;
    stream.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\npart").await.unwrap();
    let answer = read_to(&mut stream, "big").await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    drop(stream);
    front.unused().await;
}

#[tokio::test]
async fn what_does_not_come_in_time_is_given_up() {
    let limits = ProxyLimits { head: Duration::from_millis(400), ..ProxyLimits::default() };
    let endpoint = http_service(async |request: http::Request<hyper::body::Incoming>| {
        let _all = request.into_body().collect().await;
        std::future::pending().await
    })
    .await;
    let front = Front::start(endpoint, "", limits).await;
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", "HTTP/1.1 504 Gateway Timeout"),
        (
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 9\r\n\r\npart",
            "HTTP/1.1 408 Request Timeout",
        ),
    ] {
        let answer = front.exchange(request).await;
        assert_eq!(answer.lines().next().unwrap_or_default(), expected, "{answer}");
        front.unused().await;
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for (endpoint, place, reason) in [
        (Endpoint::Port(port), format!("port {port}"), "Connection refused (os error 111)"),
        (
            Endpoint::Socket("/no/such/socket".into()),
            "/no/such/socket".into(),
            "No such file or directory (os error 2)",
        ),
    ] {
        let front = Front::start(endpoint, "", ProxyLimits::default()).await;
        let answer = front.exchange("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{head}");
        let text = format!("cannot connect to {place}: {reason}; it may just have ended, so try again");
        assert_eq!(body, format!("{{\"detail\":\"{text}\"}}"));
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_request_at_the_service() {
    let (open, counted) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (opened, ended) = (Arc::clone(&open), Arc::clone(&counted));
    let endpoint = raw_service(move |mut stream| {
        let (opened, ended) = (Arc::clone(&opened), Arc::clone(&ended));
        async move {
            read_to(&mut stream, "\r\n\r\n").await;
            opened.fetch_add(1, SeqCst);
            assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
            ended.fetch_add(1, SeqCst);
        }
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let mut stream = front.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    until(|| open.load(SeqCst) == 1).await;
    drop(stream);
    until(|| counted.load(SeqCst) == 1).await;
    front.unused().await;
}

#[tokio::test]
async fn methods_that_are_not_for_a_service_do_not_reach_it() {
    let front = Front::start(Endpoint::Socket("/no/such".into()), "", ProxyLimits::default()).await;
    let mut stream = front.connect().await;
    stream.write_all(b"TRACE / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{answer}");
}
