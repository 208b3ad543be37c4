//! The way in, with real sockets.

use std::{net::SocketAddr, time::Duration};

use crate::support::{Dns, LOOPBACK, Origin, forward, options, run, send, soon, status};
use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_egress::{EgressLimits, EgressOptions, Forward};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::tungstenite::Message;

/// A port that nobody listens on.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
async fn free() -> SocketAddr {
    TcpListener::bind((LOOPBACK, 0)).await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn requests_reach_the_sandbox_as_they_are() {
    let origin = Origin::start(LOOPBACK).await;
    let gate = forward(&origin.address.to_string(), EgressLimits::default()).await;
    let answer = send(gate.forwards[0], "GET /a HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n").await;
    assert_eq!(status(&answer), "200");
    assert!(answer.ends_with("GET /a HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_web_socket_goes_through() {
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let gate = forward(&listener.local_addr().unwrap().to_string(), EgressLimits::default()).await;
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let stream = TcpStream::connect(gate.forwards[0]).await.unwrap();
    let client = tokio_tungstenite::client_async(format!("ws://{}/", gate.forwards[0]), stream);
    let (mut client, _) = soon("the handshake", client).await.unwrap();
    for size in [1, 100_000] {
        let message = Message::text("x".repeat(size));
        client.send(message.clone()).await.unwrap();
        assert_eq!(soon("the echo", client.next()).await.unwrap().unwrap(), message);
    }
    client.close(None).await.unwrap();
    soon("the server", server).await.unwrap();
}

#[tokio::test]
async fn a_sandbox_that_starts_late_is_waited_for_and_one_that_has_ended_is_not() {
    let target = free().await;
    let gate = forward(&target.to_string(), EgressLimits::default()).await;
    let early = tokio::spawn(send_owned(gate.forwards[0], "GET /early HTTP/1.1\r\n\r\n"));
    // The gate has tried and failed by now, or will find the server there; both must end in an answer.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let listener = TcpListener::bind(target).await.unwrap();
    let (mut server, _) = soon("the early request", listener.accept()).await.unwrap();
    let mut request = [0; 10];
    server.read_exact(&mut request).await.unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    drop((server, listener));
    assert_eq!(status(&soon("the early answer", early).await.unwrap()), "200");

    let mut late = TcpStream::connect(gate.forwards[0]).await.unwrap();
    let mut text = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), late.read_to_end(&mut text)).await;
    assert!(ended.is_ok() && text.is_empty(), "a sandbox that has ended is waited for");
}

async fn send_owned(to: SocketAddr, text: &'static str) -> String {
    send(to, text).await
}

#[tokio::test]
async fn a_sandbox_that_never_starts_is_given_up() {
    let limits = EgressLimits { start: Duration::from_millis(100), ..EgressLimits::default() };
    let gate = forward(&free().await.to_string(), limits).await;
    let mut client = TcpStream::connect(gate.forwards[0]).await.unwrap();
    let mut text = Vec::new();
    soon("the end", client.read_to_end(&mut text)).await.ok();
    assert!(text.is_empty());
}

#[tokio::test]
async fn a_sandbox_is_found_by_its_name() {
    let origin = Origin::start(LOOPBACK).await;
    let dns = Dns::start(&[("sandbox", "127.0.0.1")]).await;
    let to: Forward = format!("0=sandbox:{}", origin.port()).parse().unwrap();
    let gate = run(EgressOptions { forwards: vec![to], dns: Some(dns.address), ..options() }).await;
    assert_eq!(status(&send(gate.forwards[0], "GET / HTTP/1.1\r\n\r\n").await), "200");
}

#[tokio::test]
async fn each_end_is_passed_on_by_itself() {
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let gate = forward(&listener.local_addr().unwrap().to_string(), EgressLimits::default()).await;
    let mut client = TcpStream::connect(gate.forwards[0]).await.unwrap();
    let (mut server, _) = soon("the connection", listener.accept()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = String::new();
    assert_eq!(soon("the end", server.read_to_string(&mut text)).await.unwrap(), 0);
    server.write_all(b"still here").await.unwrap();
    drop(server);
    soon("the answer", client.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "still here");
}

#[tokio::test]
async fn many_bytes_pass_both_ways_at_once() {
    const SIZE: usize = 8 * 1024 * 1024;
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let gate = forward(&listener.local_addr().unwrap().to_string(), EgressLimits::default()).await;
    let client = TcpStream::connect(gate.forwards[0]).await.unwrap();
    let (server, _) = soon("the connection", listener.accept()).await.unwrap();
    let both = |stream: TcpStream, fill: u8| async move {
        let (mut read, mut write) = stream.into_split();
        let writing = tokio::spawn(async move {
            write.write_all(&vec![fill; SIZE]).await.unwrap();
            write.shutdown().await.unwrap();
        });
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.unwrap();
        writing.await.unwrap();
        got
    };
    let (of_server, of_client) = soon("all bytes", async { tokio::join!(both(client, 1), both(server, 2)) }).await;
    assert!(of_server == vec![2; SIZE] && of_client == vec![1; SIZE]);
}

#[tokio::test]
async fn the_sandbox_itself_cannot_take_the_places_of_the_way_in() {
    let origin = Origin::start(LOOPBACK).await;
    let to: Forward = format!("0={}", origin.address).parse().unwrap();
    let gate = run(EgressOptions { forwards: vec![to], sandbox: Some(LOOPBACK), ..options() }).await;
    let mut client = TcpStream::connect(gate.forwards[0]).await.unwrap();
    let mut text = Vec::new();
    soon("the end", client.read_to_end(&mut text)).await.ok();
    assert!(text.is_empty());
}
