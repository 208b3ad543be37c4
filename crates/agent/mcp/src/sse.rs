//! HTTP with server-sent events, MCP's transport until 2024 (action-execution-api 5.3): one event stream for all that the
//! server says, and a `POST` for each message to it. The SDK has it no more.

use std::sync::Arc;

use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use gloveport_client::causes;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use sse_stream::{Sse, SseStream};
use tokio::time::{Duration, timeout};

use crate::{
    ConnectError, HttpServer, Server,
    fate::Fate,
    http::{self, LARGEST},
};

/// How long a server may take to accept a message.
const ACCEPT_LIMIT: Duration = Duration::from_secs(30);
/// Most bytes that are read of the answer to a message, so that the connection can be used again.
const ANSWER: usize = 64 * 1024;

/// Why a message was not accepted, or a stream broke.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SseError {
    /// There was no answer.
    #[error("a message could not be sent: {0}")]
    Request(#[from] reqwest::Error),
    /// It was not accepted in time.
    #[error("a message was not accepted within {} seconds", .0.as_secs())]
    Slow(Duration),
    /// It was refused.
    #[error("a message was refused with HTTP {0}")]
    Refused(StatusCode),
    /// An event has no end.
    #[error("an event is larger than {} MiB", LARGEST / 1024 / 1024)]
    TooLarge,
}

/// A connection to a server.
pub(crate) struct EventStream {
    events: BoxStream<'static, Result<Sse, sse_stream::Error>>,
    client: Client,
    /// Where messages are sent.
    endpoint: Url,
    headers: HeaderMap,
    fate: Arc<Fate>,
}

impl EventStream {
    /// Opens the stream, and waits until the server has said where messages are to be sent.
    pub(crate) async fn open(server: &HttpServer, fate: &Arc<Fate>) -> Result<Self, ConnectError> {
        let whole = Server::Sse(server.clone());
        let name = whole.name();
        let (url, headers) = (http::address(server, &name)?, http::headers(server, &name)?);
        let client = http::connections()?;
        let failed = |reason: String| ConnectError::Failed { server: name.clone(), reason: whole.mask(&reason) };
        let asked = client.get(url).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let response = asked.send().await.map_err(|error| failed(causes(&error)))?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(ConnectError::Unauthorized { server: name, reason: format!("it answers with HTTP {status}") });
        }
        if !status.is_success() {
            return Err(failed(format!("it answers with HTTP {status} instead of an event stream")));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            return Err(failed(format!("it answers with `{kind}` instead of an event stream")));
        }
        // After a redirect at the same server, the endpoint is relative to where the stream really is.
        let base = response.url().clone();
        let mut events = SseStream::from_bytes_stream(bounded(response.bytes_stream())).boxed();
        let announced = loop {
            match events.next().await {
                Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => break event.data.unwrap_or_default(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(failed(format!("its event stream broke: {}", causes(&error)))),
                None => {
                    return Err(failed("its event stream ended before it said where to send messages".to_owned()));
                }
            }
        };
        let endpoint = base
            .join(announced.trim())
            .map_err(|error| failed(format!("it wants messages sent to `{announced}`, which is no URL: {error}")))?;
        if endpoint.origin() != base.origin() {
            // It would get the key, too.
            let other = endpoint.origin().ascii_serialization();
            return Err(failed(format!("it wants messages sent to another server, {other}, which is refused")));
        }
        Ok(Self { events, client, endpoint, headers, fate: Arc::clone(fate) })
    }
}

impl Transport<RoleClient> for EventStream {
    type Error = SseError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).json(&item);
        async move {
            let accepted = async {
                let response = request.send().await.map_err(reqwest::Error::without_url)?;
                let status = response.status();
                drain(response).await;
                if status.is_success() { Ok(()) } else { Err(SseError::Refused(status)) }
            };
            timeout(ACCEPT_LIMIT, accepted).await.unwrap_or(Err(SseError::Slow(ACCEPT_LIMIT)))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    self.fate.end(format!("its event stream broke: {}", causes(&error)));
                    return None;
                }
                None => {
                    self.fate.end("its event stream ended");
                    return None;
                }
            };
            if event.event.as_deref().is_some_and(|name| name != "message") {
                continue;
            }
            match serde_json::from_str(event.data.as_deref().unwrap_or_default()) {
                Ok(message) => return Some(message),
                Err(error) => tracing::debug!(%error, "an MCP server sends an event that is no message"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = stream::empty().boxed();
        Ok(())
    }
}

/// Reads the end of a short answer, so that its connection is used again.
async fn drain(mut response: Response) {
    let mut seen = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        seen += chunk.len();
        if seen > ANSWER {
            return;
        }
    }
}

/// The bytes of a stream until an event is too large.
fn bounded<B: AsRef<[u8]>>(chunks: impl Stream<Item = reqwest::Result<B>>) -> impl Stream<Item = Result<B, SseError>> {
    let mut event = EventSize::default();
    chunks.map(move |chunk| {
        let chunk = chunk.map_err(reqwest::Error::without_url)?;
        if event.grow(chunk.as_ref()) { Ok(chunk) } else { Err(SseError::TooLarge) }
    })
}

/// How much of an event has come. An empty line ends it.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    in_line: bool,
    after_return: bool,
}

impl EventSize {
    /// Whether it is still small enough.
    fn grow(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            self.bytes += 1;
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    if !self.in_line {
                        self.bytes = 0;
                    }
                    self.in_line = false;
                    self.after_return = *byte == b'\r';
                }
                _ => {
                    self.in_line = true;
                    self.after_return = false;
                }
            }
            if self.bytes > LARGEST {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_grows_until_an_empty_line() {
        for text in ["data: a\n\n", "data: a\r\n\r\n", "data: a\r\r", ": comment\n\n"] {
            let mut size = EventSize::default();
            assert!(text.bytes().all(|byte| size.grow(&[byte])));
            assert!(size.bytes <= 1, "{text:?}: {}", size.bytes);
        }
        let mut size = EventSize::default();
        assert!(size.grow(b"data: a\ndata: b\n"));
        assert_eq!(size.bytes, 16);
        size.bytes = LARGEST;
        assert!(!size.grow(b"x"));
    }
}
