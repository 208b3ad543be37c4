//! WebSockets, made over the same connections as all requests.

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use serde_json::Value;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{
    ConformanceError, Server,
    check::Problem,
    server::{Request, shown},
};

/// Largest message: more than an event with the most output has.
const MESSAGE: usize = 16 * 1024 * 1024;

/// An open WebSocket. Dropped, it is gone.
pub(crate) struct Socket(WebSocketStream<reqwest::Upgraded>);

/// What came of asking for a WebSocket.
pub(crate) enum Opened {
    Socket(Box<Socket>),
    /// It was refused with this status.
    Refused(u16),
}

/// What comes from a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// A JSON text.
    Event(Value),
    /// The end, with the code where there is one.
    Closed(Option<u16>),
}

/// Asks for a WebSocket, without a time limit: each check has one.
pub(crate) async fn open(server: &Server, request: &Request) -> Result<Opened, ConformanceError> {
    let key = generate_key();
    let request = request
        .clone()
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", key.clone());
    // A connection that is refused is not used again: some servers close it without a word.
    let response = server.opened(&request, "upgrade, close").await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Opened::Refused(response.status().as_u16()));
    }
    let accepted = response.headers().get("sec-websocket-accept");
    if accepted.is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(server.no_answer(&request, "it is no WebSocket".to_owned()));
    }
    let upgraded = response.upgrade().await.map_err(|error| server.no_answer(&request, error.to_string()))?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    Ok(Opened::Socket(Box::new(Socket(socket))))
}

impl Socket {
    pub(crate) async fn send(&mut self, text: &str) -> Result<(), Problem> {
        let sent = self.0.send(Message::text(text)).await;
        sent.map_err(|error| Problem::new("a message to the WebSocket", "an open WebSocket", error.to_string()))
    }

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Result<Frame, Problem> {
        const STEP: &str = "a message of the WebSocket";
        loop {
            match self.0.next().await {
                None => return Ok(Frame::Closed(None)),
                Some(Ok(Message::Close(frame))) => return Ok(Frame::Closed(frame.map(|frame| frame.code.into()))),
                Some(Ok(Message::Text(text))) => {
                    let event = serde_json::from_str(&text);
                    return event.map(Frame::Event).map_err(|_| Problem::new(STEP, "JSON", shown(&text)));
                }
                Some(Ok(Message::Binary(_))) => return Err(Problem::new(STEP, "a text", "bytes")),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Problem::new(STEP, "a message", error.to_string())),
            }
        }
    }

    /// The next event, of a WebSocket that must not be closed yet.
    pub(crate) async fn event(&mut self) -> Result<Value, Problem> {
        match self.next().await? {
            Frame::Event(event) => Ok(event),
            Frame::Closed(code) => {
                Err(Problem::new("the WebSocket", "an event", format!("its end with code {code:?}")))
            }
        }
    }
}
