//! The server that is looked at, through HTTP only.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gloveport_client::Pool;
use gloveport_protocol::SESSION_KEY_HEADER;
use reqwest::{Method, Url, header::HeaderMap};
use serde_json::{Value, json};

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

    /// `POST /upload_file` with one part.
    pub(crate) fn upload(destination: &str, part: &str, filename: &str, content: &[u8]) -> Self {
        const BOUNDARY: &str = "gloveport-conformance-9d1f6a";
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{filename}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(content);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let headers = vec![("content-type", format!("multipart/form-data; boundary={BOUNDARY}"))];
        Self { headers, body: body.into(), ..Self::new(Method::POST, "/upload_file") }.query("destination", destination)
    }
}

impl Server {
    /// The server at a URL; `http://` may be left out.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, ConformanceError> {
        let text = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let parsed: Url = text.parse().map_err(|_| ConformanceError::Url(url.to_owned()))?;
        if !["http", "https"].contains(&parsed.scheme()) {
            return Err(ConformanceError::Url(url.to_owned()));
        }
        Ok(Self { pool: Pool::shared()?, url: parsed, key: key.map(str::to_owned) })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    pub(crate) const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Sends a request. There is no time limit: each check has one.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, ConformanceError> {
        let url = format!("{}{}", self.url(), request.path);
        // The reference closes a connection after some errors without saying so.
        let builder = self.pool.http().request(request.method.clone(), &url).query(&request.query);
        let mut builder = builder.header("connection", "close");
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some(key) = self.key.as_ref().filter(|_| request.with_key) {
            builder = builder.header(SESSION_KEY_HEADER, key);
        }
        let failed = |error: reqwest::Error| ConformanceError::NoAnswer {
            method: request.method.to_string(),
            url: url.clone(),
            reason: reason(&error),
        };
        let mut response = builder.body(request.body.clone()).send().await.map_err(failed)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > LARGEST {
                let reason = format!("the answer is larger than {} MiB", LARGEST / 1024 / 1024);
                return Err(ConformanceError::NoAnswer { method: request.method.to_string(), url, reason });
            }
            body.extend_from_slice(&piece);
        }
        let body = body.freeze();
        Ok(Answer { status, headers, body })
    }

    /// `POST /execute_action`.
    pub(crate) async fn execute(&self, action: &Value) -> Result<Answer, ConformanceError> {
        self.send(&Request::post("/execute_action", json!({ "action": action }).to_string())).await
    }

    /// Runs a command, to see or to prepare something, and gives its exit code and output.
    pub(crate) async fn shell(&self, command: &str) -> Result<(i64, String), ConformanceError> {
        let answer = self.execute(&run_action(command, &json!({ "hidden": true }))).await?.value();
        let exit = answer.pointer("/extras/metadata/exit_code").and_then(Value::as_i64).unwrap_or(-1);
        Ok((exit, answer.get("content").and_then(Value::as_str).unwrap_or_default().to_owned()))
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
