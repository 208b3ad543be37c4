//! Requests to the service.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use reqwest::{
    Client, Method, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};

use super::{Change, Pause, WebhookOptions};
use crate::store::{HttpLimits, StoreError, http};

/// Requests for one change or batch, in all, and the pause between them (event-stream 5.1).
const ATTEMPTS: u32 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// Sends requests to the service.
pub(super) struct Sender {
    client: Client,
    url: String,
    headers: HeaderMap,
    limits: HttpLimits,
    pause: Arc<dyn Pause>,
}

impl Sender {
    pub(super) fn new(options: WebhookOptions) -> Result<Self, StoreError> {
        let refuse = |field, reason: String| StoreError::Webhook { field, reason };
        let url = Url::parse(&options.url).map_err(|error| refuse("url", format!("it is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("url", "it must begin with http:// or https://".to_owned()));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let invalid = || refuse("headers", format!("'{name}' has a name or a value that cannot be sent"));
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
        }
        let client = http::client(options.limits)?;
        Ok(Self { client, url: options.url, headers, limits: options.limits, pause: options.pause })
    }

    /// Tells the service of one change (event-stream 5.1).
    pub(super) async fn change(&self, change: Change) {
        let (method, content) = match change.content {
            Some(content) => (Method::POST, content),
            None => (Method::DELETE, Bytes::new()),
        };
        let url = format!("{}{}", self.url, change.path);
        if let Err(reason) = self.deliver(method, &url, &self.headers, content).await {
            tracing::warn!(path = change.path, reason, "the web hook of the file store is not told of a change");
        }
    }

    /// Tells the service of several changes (event-stream 5.2).
    pub(super) async fn batch(&self, changes: Vec<Change>) {
        let count = changes.len();
        let list = Value::Array(changes.into_iter().map(item).collect());
        let mut headers = self.headers.clone();
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        let content = Bytes::from(list.to_string());
        if let Err(reason) = self.deliver(Method::POST, &self.url, &headers, content).await {
            tracing::warn!(count, reason, "the web hook of the file store is not told of changes");
        }
    }

    /// Sends a request until it succeeds; the reason why it does not.
    async fn deliver(&self, method: Method, url: &str, headers: &HeaderMap, content: Bytes) -> Result<(), String> {
        let mut attempt = 1;
        loop {
            let sent = self
                .client
                .request(method.clone(), url)
                .headers(headers.clone())
                .timeout(self.limits.request_with(content.len()))
                .body(content.clone())
                .send()
                .await;
            let reason = match sent {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => format!("it answers with status {}", answer.status()),
                // The URL may hold a key.
                Err(error) => causes(&error.without_url()),
            };
            if attempt == ATTEMPTS {
                return Err(reason);
            }
            attempt += 1;
            self.pause.pause(BETWEEN_ATTEMPTS).await;
        }
    }
}

/// A change as the list of a batch has it.
fn item(change: Change) -> Value {
    let mut item = Map::new();
    let mut set = |name: &str, value: String| item.insert(name.to_owned(), Value::String(value));
    set("method", if change.content.is_some() { "POST" } else { "DELETE" }.to_owned());
    set("path", change.path);
    if let Some(content) = change.content {
        match String::from_utf8(content.into()) {
            Ok(text) => {
                set("content", text);
            }
            Err(error) => {
                set("content", STANDARD.encode(error.as_bytes()));
                set("encoding", "base64".to_owned());
            }
        }
    }
    Value::Object(item)
}

fn causes(error: &reqwest::Error) -> String {
    let all = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
