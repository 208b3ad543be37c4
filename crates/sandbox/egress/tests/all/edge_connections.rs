//! Secrets at the edge: connections, and what becomes of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _, future::join_all};
use gloveport_egress::EgressLimits;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest as _};

use crate::support::{
    LOOPBACK, soon, status,
    tls::{BOTH, Body, Gate, H1, H2, PLACEHOLDER, Seen, TlsOrigin, VALUE, World, all_of, body_of_frames, empty, full},
    tunnel,
};

const COMBINATIONS: [(&[&str], &[&str]); 4] = [(H1, H1), (H1, H2), (H2, H1), (H2, H2)];
const CHUNK: usize = 64 * 1024;
/// Chunks of a large body.
const MANY: usize = 300;

fn fine(_: &Seen) -> Response<Body> {
    Response::new(full("fine"))
}

#[tokio::test]
async fn a_server_whose_certificate_nobody_trusts_gets_nothing_and_the_client_is_told() {
    let (world, other) = (World::new(), World::new());
    for versions in [H1, H2] {
        let mut origin = TlsOrigin::start(&other, BOTH, fine).await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), versions).await;
        // The second asks anew.
        for _ in 0..2 {
            let request = Request::get("/").header("x-key", PLACEHOLDER);
            let (head, text) = all_of(client.send(request, empty()).await).await;
            assert_eq!(head.status, 502, "{text}");
            assert!(text.starts_with("gloveport: ") && text.contains("cannot be trusted"), "{text}");
            assert_eq!(head.headers["proxy-status"], "gloveport; error=tls_certificate_error");
        }
        assert!(origin.seen.try_recv().is_err());
    }
    // A certificate of another name is none either.
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    let mut other = gate.client(&format!("api.test:{}", origin.port), H1).await;
    assert_eq!(other.get("/").await.1, "fine");
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = world.server(&["elsewhere.test"], BOTH);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(acceptor.accept(stream).await);
        }
    });
    let gate = Gate::start(&world, port).await;
    let (head, text) = gate.client(&format!("api.test:{port}"), H1).await.get("/").await;
    assert!(head.status == 502 && text.contains("cannot be trusted"), "{text}");
    task.abort();
}

#[tokio::test]
async fn a_server_without_tls_is_told_of() {
    let world = World::new();
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let gate = Gate::start(&world, port).await;
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"SSH-2.0-OpenSSH\r\n").await.ok();
        }
    });
    let (head, text) = gate.client(&format!("api.test:{port}"), H1).await.get("/").await;
    assert!(head.status == 502 && text.contains("over TLS"), "{text}");
    assert_eq!(head.headers["proxy-status"], "gloveport; error=tls_protocol_error");
    task.abort();
}

#[tokio::test]
async fn a_client_that_stalls_in_the_handshake_is_ended() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let limits = EgressLimits { header_time: Duration::from_millis(200), ..EgressLimits::default() };
    let gate = Gate::with(&world, origin.port, VALUE, limits, |edge| edge).await;
    let mut stream = tunnel(gate.proxy, &format!("api.test:{}", origin.port)).await.unwrap();
    stream.write_all(&[22, 3, 1]).await.unwrap();
    let mut rest = Vec::new();
    soon("the end", stream.read_to_end(&mut rest)).await.ok();
    // One that has shaken hands may rest between requests.
    let mut client = gate.client(&format!("api.test:{}", origin.port), H1).await;
    assert_eq!(client.get("/").await.1, "fine");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(client.get("/").await.1, "fine");
}

#[tokio::test]
async fn an_idle_tunnel_ends() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    let limits = EgressLimits { idle: Duration::from_millis(300), ..EgressLimits::default() };
    let gate = Gate::with(&world, origin.port, VALUE, limits, |edge| edge).await;
    for versions in [H1, H2] {
        let mut stream = gate.connect(&format!("api.test:{}", origin.port), versions).await;
        let mut rest = Vec::new();
        soon("the end", stream.read_to_end(&mut rest)).await.ok();
    }
}

#[tokio::test]
async fn connections_to_the_target_are_kept_and_made_anew_when_it_has_closed_them() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let (close, closes) = tokio::sync::watch::channel(0);
        let origin = TlsOrigin::raw(&world, outside, move |stream, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut closes = closes.clone();
            closes.mark_unchanged();
            Box::pin(async move {
                tokio::select! {
                    () = TlsOrigin::serve(stream, |_| Box::pin(async { Response::new(full("fine")) })) => {}
                    _ = closes.changed() => {}
                }
            })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        for round in 1..=3 {
            for _ in 0..5 {
                assert_eq!(client.get("/").await.1, "fine");
            }
            assert_eq!(connections.load(Ordering::SeqCst), round, "{inside:?} {outside:?}");
            close.send_modify(|count| *count += 1);
        }
    }
}

#[tokio::test]
async fn a_request_that_waits_does_not_hold_up_others_of_the_same_connection() {
    let world = World::new();
    for outside in [H1, H2] {
        let origin = TlsOrigin::streaming(&world, outside, |request, _| {
            Box::pin(async move {
                if request.uri().path() == "/waits" {
                    let (frames, body) = body_of_frames();
                    tokio::spawn(async move {
                        frames.send(Frame::data(Bytes::from_static(b"data: 1\n\n"))).await.ok();
                        frames.closed().await;
                    });
                    return Response::new(body);
                }
                Response::new(full("fine"))
            })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), H2).await;
        let mut waits = client.send(Request::get("/waits"), empty()).await.into_body();
        let first = soon("an event", waits.frame()).await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "data: 1\n\n");
        let asked = (0..100).map(|_| client.begin(Request::get("/").body(empty()).unwrap()));
        for answer in soon("the answers", join_all(asked.collect::<Vec<_>>())).await {
            assert_eq!(all_of(answer.unwrap()).await.1, "fine", "{outside:?}");
        }
        drop(waits);
    }
}

#[tokio::test]
async fn many_connections_at_once_are_served() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, |seen| Response::new(full(seen.uri.clone()))).await;
    let gate = Gate::start(&world, origin.port).await;
    let target = format!("api.test:{}", origin.port);
    let clients = (0..60).map(|number| {
        let (gate, target) = (&gate, &target);
        async move {
            let mut client = gate.client(target, if number % 2 == 0 { H1 } else { H2 }).await;
            for round in 0..5 {
                let path = format!("/{number}/{round}");
                assert_eq!(client.get(&path).await.1, path);
            }
        }
    });
    join_all(clients).await;
}

#[tokio::test]
async fn a_gate_that_is_stopped_ends_what_it_reads() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, fine).await;
    for versions in [H1, H2] {
        let mut gate = Gate::start(&world, origin.port).await;
        let mut stream = gate.connect(&format!("api.test:{}", origin.port), versions).await;
        gate.running.stop.cancel();
        soon("the gate", &mut gate.running.task).await.unwrap();
        let mut rest = Vec::new();
        soon("the tunnel", stream.read_to_end(&mut rest)).await.ok();
    }
}

#[tokio::test]
async fn web_sockets_pass_and_values_in_them_are_overwritten() {
    let world = World::new();
    for outside in [H1, BOTH] {
        let origin = TlsOrigin::raw(&world, outside, |stream, _| {
            Box::pin(async move {
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    // The server would rather speak HTTP/2, which does not become a WebSocket.
                    std::future::pending::<()>().await;
                    return;
                }
                #[expect(clippy::result_large_err, reason = "tungstenite's type")]
                let check = |request: &tokio_tungstenite::tungstenite::handshake::server::Request, response| {
                    assert_eq!(request.headers()["x-key"], VALUE);
                    assert!(!request.headers().contains_key("sec-websocket-extensions"));
                    Ok(response)
                };
                let mut socket = tokio_tungstenite::accept_hdr_async(stream, check).await.unwrap();
                while let Some(Ok(message)) = socket.next().await {
                    let Message::Text(text) = message else { break };
                    assert!(!text.contains(VALUE));
                    let echo = text.replace("the value", VALUE);
                    socket.send(Message::text(echo)).await.unwrap();
                }
            })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let target = format!("api.test:{}", origin.port);
        let stream = gate.connect(&target, H1).await;
        let mut request = format!("wss://{target}/socket").into_client_request().unwrap();
        request.headers_mut().insert("x-key", PLACEHOLDER.parse().unwrap());
        request.headers_mut().insert("sec-websocket-extensions", "permessage-deflate".parse().unwrap());
        let connected = Box::pin(tokio_tungstenite::client_async(request, stream));
        let (mut socket, _) = soon("the socket", connected).await.unwrap();
        let covered = "*".repeat(VALUE.len());
        for (sent, expected) in [
            ("hello".to_owned(), "hello".to_owned()),
            (format!("{PLACEHOLDER} and the value."), format!("{PLACEHOLDER} and {covered}.")),
            ("the value".to_owned(), covered.clone()),
            ("x".repeat(300_000) + "the value", "x".repeat(300_000) + &covered),
        ] {
            socket.send(Message::text(sent)).await.unwrap();
            let echo = soon("the echo", socket.next()).await.unwrap().unwrap();
            assert!(echo.into_text().unwrap().as_str() == expected);
        }
        socket.close(None).await.unwrap();
        while let Some(Ok(_)) = soon("the end", socket.next()).await {}
    }
}

#[tokio::test]
async fn an_upgrade_that_is_refused_is_an_answer_and_other_versions_of_http_are_none() {
    let world = World::new();
    let mut origin = TlsOrigin::start(&world, H1, fine).await;
    let gate = Gate::start(&world, origin.port).await;
    let target = format!("api.test:{}", origin.port);
    let mut client = gate.client(&target, H1).await;
    for (upgrade, expected) in [("websocket", "websocket"), ("h2c", ""), ("HTTP/2.0", "")] {
        let request = Request::get("/").header("connection", "upgrade").header("upgrade", upgrade);
        assert_eq!(all_of(client.send(request, empty()).await).await.1, "fine");
        assert_eq!(origin.seen().await.header("upgrade"), expected);
    }
}

#[tokio::test]
async fn a_client_that_expects_100_gets_it() {
    let world = World::new();
    for outside in [H1, H2] {
        let mut origin = TlsOrigin::start(&world, outside, fine).await;
        let gate = Gate::start(&world, origin.port).await;
        let target = format!("api.test:{}", origin.port);
        let mut stream = gate.connect(&target, H1).await;
        let head = format!("PUT / HTTP/1.1\r\nHost: {target}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = soon("100", stream.read(&mut answer)).await.unwrap();
        assert_eq!(status(&String::from_utf8_lossy(&answer[..count])), "100");
        stream.write_all(b"body").await.unwrap();
        let count = soon("200", stream.read(&mut answer)).await.unwrap();
        assert_eq!(status(&String::from_utf8_lossy(&answer[..count])), "200");
        assert_eq!(origin.seen().await.body, "body");
    }
}

/// Sends chunks until nobody takes them for a while; how many bytes were taken.
async fn fill(frames: tokio::sync::mpsc::Sender<Frame<Bytes>>) -> usize {
    let mut sent = 0;
    let chunk = Bytes::from(vec![b'x'; CHUNK]);
    while let Ok(Ok(())) =
        tokio::time::timeout(Duration::from_millis(500), frames.send(Frame::data(chunk.clone()))).await
    {
        sent += CHUNK;
        assert!(sent < 64 << 20, "nothing holds it up");
    }
    sent
}

#[tokio::test]
async fn what_is_not_read_is_not_taken_either_way() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        let (told, mut tell) = tokio::sync::mpsc::channel(1);
        let origin = TlsOrigin::streaming(&world, outside, move |request, _| {
            let told = told.clone();
            Box::pin(async move {
                if request.uri().path() == "/up" {
                    // The body is kept, and nobody reads it.
                    told.send(0).await.ok();
                    std::future::pending::<()>().await;
                    drop(request);
                }
                let (frames, body) = body_of_frames();
                tokio::spawn(async move { told.send(fill(frames).await).await.ok() });
                Response::new(body)
            })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let unread = client.send(Request::get("/down"), empty()).await;
        let sent = soon("a full way down", tell.recv()).await.unwrap();
        assert!(sent < 32 << 20, "{sent} {inside:?} {outside:?}");
        drop(unread);

        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let (frames, body) = body_of_frames();
        let answer = tokio::spawn(client.begin(Request::post("/up").body(body).unwrap()));
        let sent = soon("a full way up", fill(frames)).await;
        assert!(sent < 32 << 20, "{sent} {inside:?} {outside:?}");
        answer.abort();
    }
}

#[tokio::test]
async fn large_bodies_pass_both_ways_at_once() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        // What comes goes back at once.
        let origin = TlsOrigin::streaming(&world, outside, |request, _| {
            Box::pin(async move {
                let (frames, body) = body_of_frames();
                tokio::spawn(async move {
                    let mut up = request.into_body();
                    while let Some(Ok(frame)) = up.frame().await {
                        frames.send(frame).await.unwrap();
                    }
                });
                Response::new(body)
            })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let (frames, body) = body_of_frames();
        tokio::spawn(async move {
            for number in 0..MANY {
                let byte = b'a' + u8::try_from(number % 26).unwrap();
                frames.send(Frame::data(Bytes::from(vec![byte; CHUNK]))).await.unwrap();
            }
        });
        // The answer begins while the question goes on.
        let mut down = client.send(Request::post("/"), body).await.into_body();
        let mut length = 0;
        while let Some(frame) = soon("a frame", down.frame()).await {
            for byte in frame.unwrap().into_data().unwrap() {
                assert_eq!(usize::from(byte - b'a'), length / CHUNK % 26);
                length += 1;
            }
        }
        assert_eq!(length, MANY * CHUNK, "{inside:?} {outside:?}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_wait_for_the_question_comes_through() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        let origin = TlsOrigin::streaming(&world, outside, |_, _| {
            Box::pin(async { Response::builder().status(413).body(full("too large")).unwrap() })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let (frames, body) = body_of_frames();
        frames.send(Frame::data(Bytes::from_static(b"the beginning"))).await.unwrap();
        let (head, text) = all_of(client.send(Request::post("/"), body).await).await;
        assert_eq!((head.status.as_u16(), text.as_str()), (413, "too large"), "{inside:?} {outside:?}");
        drop(frames);
    }
}
