//! WebSockets and whatever else a connection is upgraded to.

use std::time::Duration;

use crate::support::{Front, LONG, raw_service, read_all, read_to};
use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_plugin::Endpoint;
use gloveport_proxy::ProxyLimits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixListener},
    time::timeout,
};
use tokio_tungstenite::{accept_async, client_async, tungstenite::Message};

const ASK: &[u8] = b"GET /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
const AGREE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";

/// A service that agrees to everything and then does this with the connection.
async fn raw_upgrade<F, R>(then: F) -> Endpoint
where
    F: Fn(TcpStream) -> R + Send + Sync + Copy + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    raw_service(move |mut stream| async move {
        read_to(&mut stream, "\r\n\r\n").await;
        stream.write_all(AGREE).await.unwrap();
        then(stream).await;
    })
    .await
}

async fn upgraded(front: &Front) -> TcpStream {
    let mut stream = front.connect().await;
    stream.write_all(ASK).await.unwrap();
    let head = read_to(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n") && head.contains("upgrade: raw\r\n"), "{head}");
    stream
}

#[tokio::test]
async fn a_websocket_echoes_through_a_port_and_a_socket() {
    async fn echo<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(stream: S) {
        let mut socket = accept_async(stream).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() || message.is_binary() {
                socket.send(message).await.unwrap();
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        loop {
            tokio::spawn(echo(listener.accept().await.unwrap().0));
        }
    });
    for endpoint in [raw_service(echo).await, Endpoint::Socket(path)] {
        let front = Front::start(endpoint, "/plugins/a", ProxyLimits::default()).await;
        let (mut socket, _) = client_async("ws://a/plugins/a/x?y=z", front.connect().await).await.unwrap();
        for message in [Message::text("hello"), Message::binary(vec![1; 3 << 20]), Message::text("")] {
            socket.send(message.clone()).await.unwrap();
            let echoed = timeout(LONG, socket.next()).await.expect("no echo").unwrap().unwrap();
            assert_eq!(echoed, message);
        }
        assert_eq!(front.uses(), 1);
        socket.close(None).await.unwrap();
        while let Some(Ok(_)) = timeout(LONG, socket.next()).await.expect("no end") {}
        drop(socket);
        front.unused().await;
    }
}

#[tokio::test]
async fn a_refused_upgrade_is_an_answer_like_any_other() {
    let endpoint = raw_service(async |mut stream| {
        let head = read_to(&mut stream, "\r\n\r\n").await;
        assert!(head.contains("\r\nupgrade: raw\r\n"), "{head}");
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let mut stream = front.connect().await;
    stream.write_all(ASK).await.unwrap();
    let answer = read_to(&mut stream, "no").await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    front.unused().await;
}

#[tokio::test]
async fn each_side_can_end_its_direction_and_still_hear_the_other() {
    // The client ends first, and gets the sum of what it said.
    let endpoint = raw_upgrade(async |mut stream| {
        let said = read_all(&mut stream).await;
        stream.write_all(format!("{} bytes", said.len()).as_bytes()).await.unwrap();
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let mut stream = upgraded(&front).await;
    stream.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(read_all(&mut stream).await, "1048576 bytes");
    front.unused().await;

    // The service ends first, and still reads all.
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let endpoint = raw_service(move |mut stream| {
        let sender = sender.clone();
        async move {
            read_to(&mut stream, "\r\n\r\n").await;
            stream.write_all(AGREE).await.unwrap();
            stream.write_all(b"bye").await.unwrap();
            stream.shutdown().await.unwrap();
            sender.send(read_all(&mut stream).await).await.unwrap();
        }
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    let mut stream = upgraded(&front).await;
    assert_eq!(read_all(&mut stream).await, "bye");
    stream.write_all(b"wait, one more thing").await.unwrap();
    drop(stream);
    assert_eq!(timeout(LONG, receiver.recv()).await.expect("nothing came").unwrap(), "wait, one more thing");
    front.unused().await;
}

#[tokio::test]
async fn a_half_closed_connection_in_which_nothing_moves_is_ended() {
    let endpoint = raw_upgrade(async |stream| {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let limits = ProxyLimits { half_closed: Duration::from_millis(300), ..ProxyLimits::default() };
    let front = Front::start(endpoint, "", limits).await;
    let mut stream = upgraded(&front).await;
    stream.shutdown().await.unwrap();
    assert_eq!(read_all(&mut stream).await, "");
    front.unused().await;
}

#[tokio::test]
async fn an_idle_connection_stays_and_ends_with_the_server() {
    let endpoint = raw_upgrade(async |mut stream| {
        let mut buffer = [0; 4];
        while stream.read_exact(&mut buffer).await.is_ok() {
            stream.write_all(b"pong").await.unwrap();
        }
    })
    .await;
    let limits = ProxyLimits {
        head: Duration::from_millis(100),
        half_closed: Duration::from_millis(100),
        ..ProxyLimits::default()
    };
    let front = Front::start(endpoint, "", limits).await;
    let mut stream = upgraded(&front).await;
    // Longer than every other limit.
    tokio::time::sleep(Duration::from_millis(500)).await;
    stream.write_all(b"ping").await.unwrap();
    assert_eq!(read_to(&mut stream, "pong").await, "pong");
    assert_eq!(front.uses(), 1);
    front.stop.cancel();
    assert_eq!(read_all(&mut stream).await, "");
    front.unused().await;
}

#[tokio::test]
async fn the_end_of_one_side_ends_the_other() {
    let endpoint = raw_upgrade(async |stream| drop(stream)).await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    assert_eq!(read_all(&mut upgraded(&front).await).await, "");
    front.unused().await;

    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let endpoint = raw_service(move |mut stream| {
        let sender = sender.clone();
        async move {
            read_to(&mut stream, "\r\n\r\n").await;
            stream.write_all(AGREE).await.unwrap();
            let _ended = stream.read(&mut [0]).await;
            sender.send(()).await.unwrap();
        }
    })
    .await;
    let front = Front::start(endpoint, "", ProxyLimits::default()).await;
    drop(upgraded(&front).await);
    timeout(LONG, receiver.recv()).await.expect("the service was not told").unwrap();
    front.unused().await;
}
