//! A peer that answers as it is told, and keeps what it was asked.
#![expect(clippy::unwrap_used, reason = "tests stop at the first broken assumption")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use gloveport_client::{ActionExecutionClient, ClientOptions, Pause, RequestLimits};
use gloveport_protocol::BoxFuture;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub(crate) use gloveport_testing::within;

/// What the peer does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// These bytes, and then the end of the connection.
    Bytes(Vec<u8>),
    /// The end of the connection.
    Close,
    /// Nothing, until the client goes away.
    Silence,
}

impl Reply {
    pub(crate) fn json(status: &str, body: &str) -> Self {
        Self::with("application/json", status, body.as_bytes())
    }

    pub(crate) fn ok(body: &str) -> Self {
        Self::json("200 OK", body)
    }

    pub(crate) fn with(kind: &str, status: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        Self::Bytes([head.as_bytes(), body].concat())
    }

    pub(crate) fn stream(body: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Self::Bytes([head, body].concat().into_bytes())
    }
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Method and target.
    pub(crate) line: String,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(crate) struct Peer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    pauses: Arc<Pauses>,
    serving: JoinHandle<()>,
}

/// Notes the waits and does not wait.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<Vec<Duration>>);

impl Pause for Pauses {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(time);
        Box::pin(std::future::ready(()))
    }
}

impl Peer {
    /// A peer that gives these replies, one a connection, and closes every further connection.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        let notes = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let reply = replies.pop_front().unwrap_or(Reply::Close);
                answer(stream, reply, &notes).await;
            }
        });
        Self { url, asked, pauses: Arc::default(), serving }
    }

    pub(crate) fn options(&self) -> ClientOptions {
        let pause: Arc<dyn Pause> = Arc::<Pauses>::clone(&self.pauses);
        ClientOptions { pause, ..ClientOptions::new(&self.url) }
    }

    /// Options of a client that has no patience.
    pub(crate) fn hasty(&self) -> ClientOptions {
        let short = Duration::from_millis(50);
        let limits = RequestLimits {
            action_margin: short,
            list: short,
            upload: short,
            download: short,
            ..RequestLimits::default()
        };
        ClientOptions { limits, ..self.options() }
    }

    pub(crate) fn client(&self) -> ActionExecutionClient {
        ActionExecutionClient::new(&self.options()).unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// The waits so far, in whole seconds.
    pub(crate) fn waits(&self) -> Vec<u64> {
        self.pauses.0.lock().unwrap().iter().map(Duration::as_secs).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(mut stream: TcpStream, reply: Reply, notes: &Mutex<Vec<Asked>>) {
    let Some(asked) = request(&mut stream).await else { return };
    notes.lock().unwrap().push(asked);
    match reply {
        Reply::Bytes(bytes) => {
            stream.write_all(&bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            drain(stream).await;
        }
        Reply::Close => {
            stream.shutdown().await.unwrap();
            drain(stream).await;
        }
        Reply::Silence => drain(stream).await,
    }
}

/// Reads what the client still sends, to its end.
async fn drain(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _gone = stream.read_to_end(&mut rest).await;
}

/// One request with a body of known length; none if the client went away.
async fn request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut body = bytes[end + 4..].to_vec();
    let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let chunked = head.contains("transfer-encoding: chunked");
    while body.len() < length || (chunked && !body.ends_with(b"0\r\n\r\n")) {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Asked { line, head, body })
}
