//! The server that is looked at, through HTTP only.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gloveport_client::Pool;
use reqwest::{Method, RequestBuilder, Response, Url, header::HeaderMap};
use serde_json::{Value, json};

use crate::Wire;

/// Most characters of a value in a report.
const SHOWN: usize = 2_000;
/// Most bytes of an answer: more than any check asks for.
const LARGEST: usize = 256 * 1024 * 1024;

/// Why the server cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The text is no URL.
    #[error("`{0}` is not a URL such as http://127.0.0.1:8000")]
    Url(String),
    /// No HTTP client can be made.
    #[error(transparent)]
    Client(#[from] gloveport_client::ClientError),
    /// A request got no answer.
    #[error("{method} {url}: {reason}")]
    NoAnswer {
        /// The method.
        method: String,
        /// The URL.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The directory that the checks work in cannot be made.
    #[error("no scratch directory can be made on {url}: {reason}")]
    Scratch {
        /// The server.
        url: String,
        /// Why not.
        reason: String,
    },
    /// It speaks, but another protocol.
    #[error("{url} does not speak {}; it seems to speak {}: try --wire {}", asked.title(), spoken.title(), spoken.name())]
    OtherWire {
        /// The server.
        url: String,
        /// What it was checked for.
        asked: Wire,
        /// What it seems to speak.
        spoken: Wire,
    },
    /// It needs a key, or another one.
    #[error("{url} {reason} (status {status})")]
    Key {
        /// The server.
        url: String,
        /// What is wrong with the key.
        reason: &'static str,
        /// The status of its answer.
        status: u16,
    },
    /// No random numbers.
    #[error("no random name can be made: {0}")]
    Random(String),
    /// A line of a file of operations is none.
    #[error("line {line} is no operation: {reason}")]
    Operation {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A pattern that selects checks is none.
    #[error("`{pattern}` is no pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A server and the key for it.
#[derive(Debug, Clone)]
pub struct Server {
    pool: Pool,
    wire: Wire,
    url: Url,
    key: Option<String>,
}

/// What the server answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON, or as text if it is none.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&self.body).into_owned()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    /// Sends the key, where one is known.
    pub(crate) with_key: bool,
}

impl Request {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            with_key: true,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { headers, body: body.into(), ..Self::new(Method::POST, path) }
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// A `POST` with JSON.
    pub(crate) fn json(path: &str, body: &Value) -> Self {
        Self::post(path, body.to_string())
    }

    /// A `POST` with a form of several parts.
    pub(crate) fn form(path: &str, parts: &[Part<'_>]) -> Self {
        const BOUNDARY: &str = "gloveport-conformance-9d1f6a";
        let mut body = Vec::new();
        for part in parts {
            let filename = part.filename.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
            let kind = part.filename.map_or("", |_| "Content-Type: application/octet-stream\r\n");
            let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{}\"{filename}", part.name);
            body.extend_from_slice(format!("{head}\r\n{kind}\r\n").as_bytes());
            body.extend_from_slice(part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        let headers = vec![("content-type", format!("multipart/form-data; boundary={BOUNDARY}"))];
        Self { headers, body: body.into(), ..Self::new(Method::POST, path) }
    }

    /// `POST /upload_file` with one part.
    pub(crate) fn upload(destination: &str, part: &str, filename: &str, content: &[u8]) -> Self {
        Self::form("/upload_file", &[Part::file(part, filename, content)]).query("destination", destination)
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without_key(self) -> Self {
        Self { with_key: false, ..self }
    }
}

/// A part of a form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    name: &'a str,
    filename: Option<&'a str>,
    content: &'a [u8],
}

impl<'a> Part<'a> {
    pub(crate) const fn file(name: &'a str, filename: &'a str, content: &'a [u8]) -> Self {
        Self { name, filename: Some(filename), content }
    }

    pub(crate) const fn field(name: &'a str, content: &'a str) -> Self {
        Self { name, filename: None, content: content.as_bytes() }
    }
}

impl Server {
    /// The server of OpenHands 0.62 at a URL; `http://` may be left out.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, ConformanceError> {
        Self::of(Wire::V0, url, key)
    }

    /// The server at a URL that speaks this protocol; `http://` may be left out.
    pub fn of(wire: Wire, url: &str, key: Option<&str>) -> Result<Self, ConformanceError> {
        let text = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let parsed: Url = text.parse().map_err(|_| ConformanceError::Url(url.to_owned()))?;
        if !["http", "https"].contains(&parsed.scheme()) {
            return Err(ConformanceError::Url(url.to_owned()));
        }
        Ok(Self { pool: Pool::shared()?, wire, url: parsed, key: key.map(str::to_owned) })
    }

    /// What it is looked at for.
    pub const fn wire(&self) -> Wire {
        self.wire
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    pub(crate) const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// The key, for what sends it in another way than all requests do.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Why no directory can be made here.
    pub(crate) fn no_scratch(&self, reason: String) -> ConformanceError {
        ConformanceError::Scratch { url: self.url().to_owned(), reason }
    }

    /// Sends a request. There is no time limit: each check has one.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, ConformanceError> {
        // The reference closes a connection after some errors without saying so.
        self.whole(request, self.opened(request, "close").await?).await
    }

    /// Sends a request and answers with the beginning of what comes.
    pub(crate) async fn opened(&self, request: &Request, connection: &str) -> Result<Response, ConformanceError> {
        let mut builder = self.builder(request).header("connection", connection);
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some(key) = self.key.as_ref().filter(|_| request.with_key) {
            builder = builder.header(self.wire.key_header(), key);
        }
        builder.body(request.body.clone()).send().await.map_err(|error| self.no_answer(request, reason(&error)))
    }

    fn builder(&self, request: &Request) -> RequestBuilder {
        let url = format!("{}{}", self.url(), request.path);
        self.pool.http().request(request.method.clone(), &url).query(&request.query)
    }

    /// Reads the rest of an answer.
    pub(crate) async fn whole(&self, request: &Request, mut response: Response) -> Result<Answer, ConformanceError> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.no_answer(request, reason(&error)))? {
            if body.len() + piece.len() > LARGEST {
                let reason = format!("the answer is larger than {} MiB", LARGEST / 1024 / 1024);
                return Err(self.no_answer(request, reason));
            }
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status, headers, body: body.freeze() })
    }

    /// Why a request was not answered.
    pub(crate) fn no_answer(&self, request: &Request, reason: String) -> ConformanceError {
        let url = format!("{}{}", self.url(), request.path);
        ConformanceError::NoAnswer { method: request.method.to_string(), url, reason }
    }

    /// `POST /execute_action`.
    pub(crate) async fn execute(&self, action: &Value) -> Result<Answer, ConformanceError> {
        self.send(&Request::post("/execute_action", json!({ "action": action }).to_string())).await
    }

    /// Waits a moment: the reference confuses commands that follow each other at once.
    pub(crate) async fn rest(pause: Duration) {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

/// A `run` action with the limit that checks use.
pub(crate) fn run_action(command: &str, more: &Value) -> Value {
    let mut action = json!({"action": "run", "args": {"command": command}, "timeout": 30.0});
    if let (Some(args), Some(more)) = (action["args"].as_object_mut(), more.as_object()) {
        args.extend(more.clone());
    }
    action
}

/// The beginning of a text, as much as a report shows.
pub(crate) fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

fn reason(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
