//! A server on a real socket with a real shell, and a client that shows what it gets.
#![expect(
    dead_code,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test programs stop at the first broken assumption, and each uses a part of this"
)]

use std::ops::Deref;

use bytes::{Bytes, BytesMut};
use gloveport_executor::ExecutorOptions;
use gloveport_server::{DrainEnd, ServerOptions};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinHandle};

pub(crate) use gloveport_testing::within;

/// A server that is asked without a client library.
pub(crate) struct Server(gloveport_testing::Server);

impl Deref for Server {
    type Target = gloveport_testing::Server;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(ServerOptions::default()).await
    }

    pub(crate) async fn with(options: ServerOptions) -> Self {
        Self::with_executor(options, |tools| tools).await
    }

    pub(crate) async fn with_executor(
        options: ServerOptions,
        change: impl FnOnce(ExecutorOptions) -> ExecutorOptions,
    ) -> Self {
        Self(gloveport_testing::Server::start_at("127.0.0.1:0", options, change).await)
    }

    pub(crate) async fn stop(self) -> DrainEnd {
        self.0.stop().await
    }

    pub(crate) async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(async move {
            let _end = connection.await;
        });
        Client { sender, driver }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.connect().await.request(request("GET", path, Bytes::new())).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.connect().await.request(request("POST", path, body)).await
    }

    pub(crate) async fn run(&self, command: &str) -> Value {
        let answer = self.post("/execute_action", run(command)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Value of a metric without labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text();
        let prefix = format!("{name} ");
        text.lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap_or_else(|| panic!("{name}\n{text}"))
            .parse()
            .unwrap()
    }

    /// Asks until the metric has the value.
    pub(crate) async fn until_metric(&self, name: &str, value: f64) {
        while (self.metric(name).await - value).abs() > 0.0 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn events(&self, path: &str, body: &Value, last: Option<u64>) -> Events {
        let mut post = request("POST", path, body.to_string());
        if let Some(last) = last {
            post.headers_mut().insert("last-event-id", last.into());
        }
        self.events_of(post).await
    }

    /// The events of a path that has no command.
    pub(crate) async fn stream(&self, path: &str) -> Events {
        self.events_of(request("GET", path, Bytes::new())).await
    }

    pub(crate) async fn events_of(&self, request: Request<Full<Bytes>>) -> Events {
        let mut client = self.connect().await;
        let response = client.sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let id = response.headers().get("x-exec-id").map_or("", |id| id.to_str().unwrap()).to_owned();
        Events { id, body: response.into_body(), buffer: BytesMut::new(), client }
    }
}

pub(crate) fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(path).header("host", "localhost").body(Full::new(body.into())).unwrap()
}

pub(crate) fn run(command: &str) -> String {
    json!({"action": {"action": "run", "args": {"command": command}}}).to_string()
}

pub(crate) struct Client {
    pub(crate) sender: SendRequest<Full<Bytes>>,
    pub(crate) driver: JoinHandle<()>,
}

impl Client {
    pub(crate) async fn request(&mut self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.sender.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status, headers: head.headers, body }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closes the socket.
        self.driver.abort();
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) data: Value,
}

pub(crate) struct Events {
    pub(crate) id: String,
    body: Incoming,
    buffer: BytesMut,
    client: Client,
}

impl Events {
    /// The next piece of the stream as it is.
    pub(crate) async fn frame(&mut self) -> String {
        let frame = self.body.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    /// The next event; `None` at the end of the stream. Comments are left out.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block = self.buffer.split_to(end + 2);
                let text = std::str::from_utf8(&block).unwrap();
                if text.starts_with(':') {
                    continue;
                }
                let optional = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
                let field = |name: &str| optional(name).unwrap().to_owned();
                return Some(Event {
                    name: field("event: "),
                    id: optional("id: ").map_or(0, |id| id.parse().unwrap()),
                    data: serde_json::from_str(&field("data: ")).unwrap(),
                });
            }
            let frame = self.body.frame().await?.unwrap();
            self.buffer.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// Events up to the first of this name, which is the last in the list.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event: &Event| event.name != name) {
            events.push(self.next().await.unwrap_or_else(|| panic!("no {name} after {events:?}")));
        }
        events
    }
}

/// The text of all `output` events.
pub(crate) fn text(events: &[Event]) -> String {
    events.iter().filter(|event| event.name == "output").map(|event| event.data["text"].as_str().unwrap()).collect()
}
