//! Ports of programs in the sandbox.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use gloveport_protocol::PORT_HEADER;
use gloveport_server::{ServerOptions, SessionKey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::common::{Server, request, within};

/// A program on the loopback address that answers each request with its head and the body that came with it, and goes on talking
/// after an upgrade: what it hears, in capitals.
async fn echo() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream));
        }
    });
    (port, serving)
}

async fn talk(mut stream: TcpStream) {
    let mut heard = Vec::new();
    while !heard.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut heard).await.unwrap() == 0 {
            return;
        }
    }
    let text = String::from_utf8(heard).unwrap();
    if text.to_lowercase().contains("upgrade: shout") {
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n")
            .await
            .unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word.to_ascii_uppercase()).await.unwrap();
        return;
    }
    let answer = format!("HTTP/1.1 201 Created\r\nLocation: /made\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}

fn keyed() -> ServerOptions {
    ServerOptions { session_key: Some(SessionKey::new("the-key".to_owned())), ..ServerOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_port_reaches_its_program_without_the_key_and_its_answer_comes_back_as_it_is() {
    within(async {
        let server = Server::with(keyed()).await;
        let (port, program) = echo().await;
        for (asked, expected) in [
            ("/a/b?c=d".to_owned(), "GET /a/b?c=d HTTP/1.1"),
            (String::new(), "GET / HTTP/1.1"),
            ("/".to_owned(), "GET / HTTP/1.1"),
            ("/%2Fetc//x?".to_owned(), "GET /%2Fetc//x? HTTP/1.1"),
        ] {
            let mut wish = request("GET", &format!("/v1/ports/{port}{asked}"), "");
            wish.headers_mut().insert("x-session-api-key", "the-key".parse().unwrap());
            wish.headers_mut().insert("authorization", "Bearer of-the-program".parse().unwrap());
            let answer = server.connect().await.request(wish).await;
            assert_eq!((answer.status.as_u16(), answer.header("location")), (201, Some("/made")), "{}", answer.text());
            assert!(answer.text().starts_with(expected), "{}", answer.text());
            assert!(!answer.text().contains("the-key"), "{}", answer.text());
            assert!(answer.text().contains("Bearer of-the-program"), "{}", answer.text());
        }
        // The program may have a key, too.
        let mut wish = request("GET", &format!("/v1/ports/{port}/"), "");
        wish.headers_mut().insert("x-gloveport-port-key", "the-key".parse().unwrap());
        wish.headers_mut().insert("x-session-api-key", "of-the-program".parse().unwrap());
        let answer = server.connect().await.request(wish).await;
        assert!(answer.text().contains("x-session-api-key: of-the-program"), "{}", answer.text());
        assert!(!answer.text().contains("the-key"), "{}", answer.text());
        let mut elsewhere = request("GET", "/v1/exec", "");
        elsewhere.headers_mut().insert("x-gloveport-port-key", "the-key".parse().unwrap());
        assert_eq!(server.connect().await.request(elsewhere).await.status, 403);
        assert_eq!(answer.header("x-frame-options"), None);
        let refused = server.get(&format!("/v1/ports/{port}/")).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
        program.abort();
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_upgrades_to_travels_both_ways() {
    within(async {
        let server = Server::start().await;
        let (port, program) = echo().await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let wish = format!(
            "GET /v1/ports/{port}/chat HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n"
        );
        stream.write_all(wish.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        stream.write_all(b"word").await.unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"WORD");
        program.abort();
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_at_which_nobody_listens_and_what_is_no_port_say_so() {
    within(async {
        let server = Server::start().await;
        let free = gloveport_testing::free_port();
        let closed = server.get(&format!("/v1/ports/{free}/a")).await;
        assert_eq!((closed.status.as_u16(), closed.header(PORT_HEADER)), (502, Some("closed")));
        assert_eq!(closed.json()["error"]["code"], "port_not_open", "{}", closed.text());
        // It is an answer of ours, which a browser shows alone.
        assert_eq!(closed.header("x-frame-options"), Some("DENY"));
        for none in ["0", "65536", "x", "-1", "+80", "080", "80.0", "1e3"] {
            let answer = server.get(&format!("/v1/ports/{none}/")).await;
            assert_eq!(answer.status, 400, "{none}: {}", answer.text());
        }
        let traced = server.connect().await.request(request("TRACE", &format!("/v1/ports/{free}/"), "")).await;
        assert_eq!(traced.status, 405);
        server.stop().await;
    })
    .await;
}
