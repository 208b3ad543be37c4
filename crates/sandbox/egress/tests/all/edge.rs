//! Secrets at the edge, on the way out.

use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_egress::EgressLimits;
use http::{Request, Response, Version};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::support::{
    LOOPBACK, Origin, send, soon, status,
    tls::{
        BOTH, Body, Client, Gate, H1, H2, OTHER_PLACEHOLDER, OTHER_VALUE, PLACEHOLDER, Seen, TlsOrigin, VALUE, World,
        all_of, empty, full,
    },
    tunnel,
};

const COMBINATIONS: [(&[&str], &[&str]); 4] = [(H1, H1), (H1, H2), (H2, H1), (H2, H2)];

fn fine(_: &Seen) -> Response<Body> {
    Response::new(full("fine"))
}

fn basic(password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("me:{password}")))
}

#[tokio::test]
async fn a_placeholder_becomes_the_value_in_the_head_of_a_request_and_nowhere_else() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        let mut origin = TlsOrigin::start(&world, outside, fine).await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let body = format!("{{\"token\": \"{PLACEHOLDER}\"}}");
        let (half, rest) = PLACEHOLDER.split_at(9);
        let request = Request::post(format!("/bot{PLACEHOLDER}/x?key={PLACEHOLDER}&o={OTHER_PLACEHOLDER}"))
            .header("authorization", basic(PLACEHOLDER))
            .header("x-key", format!("token {PLACEHOLDER}, {PLACEHOLDER}; {OTHER_PLACEHOLDER}"))
            .header("x-half", half)
            .header("x-half", rest)
            .header("accept-encoding", "gzip, br")
            .header("sec-websocket-extensions", "permessage-deflate")
            .header("content-length", body.len());
        let (head, answer) = all_of(client.send(request, full(body.clone())).await).await;
        assert_eq!((head.status.as_u16(), answer.as_str()), (200, "fine"), "{inside:?} {outside:?}");
        let seen = origin.seen().await;
        assert_eq!(seen.version, if outside == H2 { Version::HTTP_2 } else { Version::HTTP_11 });
        assert_eq!(seen.uri, format!("/bots3cr%22t%2Fvalue+1/x?key=s3cr%22t/value%2B1&o={OTHER_PLACEHOLDER}"));
        assert_eq!(seen.header("authorization"), basic(VALUE));
        assert_eq!(seen.header("x-key"), format!("token {VALUE}, {VALUE}; {OTHER_PLACEHOLDER}"));
        let halves: Vec<_> = seen.headers.get_all("x-half").iter().collect();
        assert_eq!(halves, [half, rest]);
        assert_eq!(seen.header("accept-encoding"), "identity");
        assert!(!seen.headers.contains_key("sec-websocket-extensions") && !seen.headers.contains_key("via"));
        assert_eq!(seen.body, body.as_bytes());
        let host = format!("api.test:{}", origin.port);
        assert_eq!(seen.header("host"), if outside == H2 { "" } else { host.as_str() });
    }
}

#[tokio::test]
async fn each_secret_goes_to_its_own_hosts_alone() {
    let world = World::new();
    let mut origin = TlsOrigin::start(&world, BOTH, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    for (host, api, other) in [
        ("api.test", VALUE, OTHER_PLACEHOLDER),
        ("127.0.0.1", VALUE, OTHER_PLACEHOLDER),
        ("other.test", PLACEHOLDER, OTHER_VALUE),
    ] {
        let mut client = gate.client(&format!("{host}:{}", origin.port), H1).await;
        let request = Request::get("/").header("x-api", PLACEHOLDER).header("x-other", OTHER_PLACEHOLDER);
        client.send(request, empty()).await;
        let seen = origin.seen().await;
        assert_eq!((seen.header("x-api"), seen.header("x-other")), (api, other), "{host}");
    }
}

#[tokio::test]
async fn tunnels_to_other_hosts_and_ports_pass_unread() {
    let world = World::new();
    // Two servers of the same names: the gate knows only the port of the first.
    let bound = TlsOrigin::start(&world, H1, fine).await;
    let mut unbound = TlsOrigin::start(&world, H1, |seen| Response::new(full(format!("{:?}", seen.headers)))).await;
    let gate = Gate::start(&world, bound.port).await;
    let target = format!("api.test:{}", unbound.port);
    let untrusted = gate.try_connect(&target, Some("api.test"), H1, &gate.authority).await;
    assert!(untrusted.is_err(), "the gate stands in for a port that no secret goes to");
    let stream = gate.try_connect(&target, Some("api.test"), H1, &world.pem()).await.unwrap();
    let mut client = Client::on(stream, &target).await;
    let request = Request::get("/").header("x-key", PLACEHOLDER).header("accept-encoding", "br");
    let (_, answer) = all_of(client.send(request, empty()).await).await;
    assert!(answer.contains(PLACEHOLDER) && !answer.contains("s3cr"), "{answer}");
    let seen = unbound.seen().await;
    assert_eq!((seen.header("x-key"), seen.header("accept-encoding")), (PLACEHOLDER, "br"));

    // Bytes of a tunnel to an unbound host are the very same.
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let target = format!("unbound.test:{}", listener.local_addr().unwrap().port());
    let mut client = tunnel(gate.proxy, &target).await.unwrap();
    let (mut server, _) = soon("the connection", listener.accept()).await.unwrap();
    client.write_all(PLACEHOLDER.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = String::new();
    soon("the bytes", server.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, PLACEHOLDER);
}

#[tokio::test]
async fn plain_http_is_not_changed() {
    let world = World::new();
    let origin = Origin::start(LOOPBACK).await;
    let gate = Gate::start(&world, origin.port()).await;
    let host = format!("api.test:{}", origin.port());
    let head = format!("Host: {host}\r\nAuthorization: {}\r\nX-Key: {PLACEHOLDER}", basic(PLACEHOLDER));
    let text = format!("GET http://{host}/?key={PLACEHOLDER} HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n");
    let answer = send(gate.proxy, &text).await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.contains(&format!("x-key: {PLACEHOLDER}")) && answer.contains(&basic(PLACEHOLDER)), "{answer}");
    assert!(answer.contains(&format!("GET /?key={PLACEHOLDER}")) && !answer.contains("s3cr"), "{answer}");
}

#[tokio::test]
async fn a_value_that_a_header_cannot_have_is_refused_and_named() {
    let world = World::new();
    let mut origin = TlsOrigin::start(&world, BOTH, fine).await;
    let value = "first line\r\nx-injected: 1";
    let gate = Gate::with(&world, origin.port, value, EgressLimits::default(), |edge| edge).await;
    for versions in [H1, H2] {
        let mut client = gate.client(&format!("api.test:{}", origin.port), versions).await;
        let request = Request::get("/").header("x-key", PLACEHOLDER);
        let (head, text) = all_of(client.send(request, empty()).await).await;
        assert_eq!(head.status, 400, "{text}");
        assert!(text.contains("header `x-key`") && text.contains("API") && !text.contains("first line"), "{text}");
        assert_eq!(head.headers["proxy-status"], "gloveport; error=http_request_error");
        // Where it is encoded it does no harm.
        let request = Request::get(format!("/?{PLACEHOLDER}")).header("authorization", basic(PLACEHOLDER));
        client.send(request, empty()).await;
        let seen = origin.seen().await;
        assert_eq!(seen.uri, "/?first%20line%0D%0Ax-injected:%201");
        assert_eq!(seen.header("authorization"), basic(value));
    }
}

#[tokio::test]
async fn a_head_that_grows_too_much_is_refused() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let gate = Gate::with(&world, origin.port, &"v".repeat(20_000), EgressLimits::default(), |edge| edge).await;
    let mut client = gate.client(&format!("api.test:{}", origin.port), H2).await;
    let key = PLACEHOLDER;
    let (head, text) =
        all_of(client.send(Request::get("/").header("x-key", format!("{key}{key}{key}{key}")), empty()).await).await;
    assert_eq!(head.status, 431, "{text}");
    let (head, _) = client.get(&format!("/{key}/{key}/{key}/{key}")).await;
    assert_eq!(head.status, 431);
    assert_eq!(client.get("/").await.1, "fine");
}

#[tokio::test]
async fn requests_for_others_and_of_other_kinds_are_refused() {
    let world = World::new();
    let mut origin = TlsOrigin::start(&world, BOTH, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    let target = format!("api.test:{}", origin.port);
    let mut other = gate.client(&target, H2).await;
    if let Client::Many(_, named, _) = &mut other {
        *named = format!("other.test:{}", origin.port);
    }
    let (head, text) = other.get("/").await;
    assert_eq!(head.status, 421, "{text}");
    assert!(text.starts_with("gloveport: ") && text.contains(&target), "{text}");
    assert_eq!(head.headers["content-type"], "text/plain; charset=utf-8");
    for (what, text, expected) in [
        ("another host", format!("GET / HTTP/1.1\r\nHost: other.test:{}\r\n\r\n", origin.port), "421"),
        ("another port", "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n".to_owned(), "421"),
        ("another URL", format!("GET https://other.test/ HTTP/1.1\r\nHost: {target}\r\n\r\n"), "421"),
        ("plain http", format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"), "400"),
        ("no host", "GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        ("two hosts", format!("GET / HTTP/1.1\r\nHost: {target}\r\nHost: {target}\r\n\r\n"), "400"),
        ("a tunnel", format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"), "405"),
        ("an echo", format!("TRACE / HTTP/1.1\r\nHost: {target}\r\nX-Key: {PLACEHOLDER}\r\n\r\n"), "405"),
        (
            "two lengths",
            format!("POST / HTTP/1.1\r\nHost: {target}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            "400",
        ),
        (
            "a coding",
            format!("POST / HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            "400",
        ),
        (
            "a coding that is not the last",
            format!("POST / HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked, x\r\n\r\n"),
            "400",
        ),
        ("a folded header", format!("GET / HTTP/1.1\r\nHost: {target}\r\nX-A: b\r\n c\r\n\r\n"), "400"),
    ] {
        let mut stream = gate.connect(&target, H1).await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = soon(what, stream.read(&mut answer)).await.unwrap();
        assert_eq!(status(&String::from_utf8_lossy(&answer[..count])), expected, "{what}");
    }
    assert!(origin.seen.try_recv().is_err(), "a refused request went out");
}

#[tokio::test]
async fn a_request_with_two_framings_goes_out_as_one_request() {
    let world = World::new();
    let mut origin = TlsOrigin::start(&world, H1, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    let target = format!("api.test:{}", origin.port);
    let mut stream = gate.connect(&target, H1).await;
    let hidden = format!("GET /hidden HTTP/1.1\r\nHost: {target}\r\n\r\n");
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {target}\r\nContent-Length: {}\r\nTransfer-Encoding: chunked",
        hidden.len() + 5
    );
    stream.write_all(format!("{head}\r\n\r\n0\r\n\r\n{hidden}").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    soon("the answer", stream.read(&mut answer)).await.unwrap();
    // Whatever is made of it, nothing behind the gate takes the length.
    let seen = origin.seen().await;
    assert_eq!((seen.uri.as_str(), seen.header("content-length"), seen.body.len()), ("/", "", 0));
}

#[tokio::test]
async fn rules_count_before_secrets() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    let refused = tunnel(gate.proxy, &format!("elsewhere.test:{}", origin.port)).await.unwrap_err();
    assert_eq!(status(&refused), "403", "{refused}");
}

#[tokio::test]
async fn uses_are_told_without_values() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let gate = Gate::with(&world, origin.port, VALUE, EgressLimits::default(), |edge| {
        let edge = edge.observed_by(Arc::new(move |used| {
            hears.lock().unwrap().push(format!("{} {} {}", used.secret, used.target, used.method));
        }));
        let shown = format!("{edge:?}");
        assert!(shown.contains("API") && !shown.contains("s3cr") && !shown.contains("PRIVATE"), "{shown}");
        edge
    })
    .await;
    let mut client = gate.client(&format!("api.test:{}", origin.port), H1).await;
    client.get("/").await;
    client.get(&format!("/{PLACEHOLDER}?{PLACEHOLDER}")).await;
    assert_eq!(*told.lock().unwrap(), [format!("API api.test:{} GET", origin.port)]);
}

#[tokio::test]
async fn the_authority_stands_in_for_the_host_alone() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    let target = format!("api.test:{}", origin.port);
    let wrong = gate.try_connect(&target, Some("other.test"), H1, &gate.authority).await.unwrap_err();
    assert!(wrong.to_string().contains("AccessDenied"), "{wrong}");
    let address = format!("127.0.0.1:{}", origin.port);
    assert!(gate.try_connect(&address, Some("api.test"), H1, &gate.authority).await.is_err());
    for versions in [BOTH, &[]] {
        let stream = gate.try_connect(&target, None, versions, &gate.authority).await.unwrap();
        assert_eq!(Client::on(stream, &target).await.get("/").await.1, "fine", "{versions:?}");
    }
}
