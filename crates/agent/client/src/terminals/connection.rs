//! One WebSocket to a terminal, made over the connections of the pool so that keys, certificates and prefixes of URLs
//! work as for every other request.

use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use gloveport_protocol::terminals::{FromTerminal, ToTerminal, close};
use reqwest::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{ClientError, call::Call, session::Session};

/// Largest message of a server; ours sends output in pieces of 32 KiB.
const MESSAGE: usize = 1024 * 1024;

type Socket = WebSocketStream<reqwest::Upgraded>;

/// What a server sends.
#[derive(Debug)]
pub(super) enum Received {
    Bytes(bytes::Bytes),
    Message(FromTerminal),
}

/// The direction from the server.
#[derive(Debug)]
pub(super) struct Receiver {
    stream: SplitStream<Socket>,
    url: String,
    limit: std::time::Duration,
}

/// The direction to the server.
#[derive(Debug)]
pub(super) struct Sender {
    sink: SplitSink<Socket, Message>,
    url: String,
}

/// Opens a WebSocket.
pub(super) async fn open(
    session: &Session,
    path: &str,
    query: Vec<(&'static str, String)>,
) -> Result<(Sender, Receiver), ClientError> {
    let key = generate_key();
    let mut call = Call { query, ..Call::get(path, session.limits.other) };
    call.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    call.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    call.headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    let value = HeaderValue::from_str(&key).map_err(|_| ClientError::Header { name: SEC_WEBSOCKET_KEY.to_string() })?;
    call.headers.insert(SEC_WEBSOCKET_KEY, value);
    let response = session.send(&call).await?;
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(session.bad_answer(path, "it is no WebSocket"));
    }
    let url = format!("{}{path}", session.base());
    let upgraded = response
        .upgrade()
        .await
        .map_err(|error| ClientError::Answer { url: url.clone(), reason: error.to_string() })?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    let (sink, stream) = socket.split();
    Ok((Sender { sink, url: url.clone() }, Receiver { stream, url, limit: session.limits.stream }))
}

impl Sender {
    pub(super) async fn bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let message = Message::Binary(bytes::Bytes::copy_from_slice(bytes));
        self.sink.send(message).await.map_err(|error| broken(&self.url, &error))
    }

    pub(super) async fn message(&mut self, message: &ToTerminal) -> Result<(), ClientError> {
        let text = serde_json::to_string(message)
            .map_err(|error| ClientError::Request { url: self.url.clone(), reason: error.to_string() })?;
        self.sink.send(Message::Text(text.into())).await.map_err(|error| broken(&self.url, &error))
    }

    /// Says good-bye, if that is possible at once.
    pub(super) async fn close(mut self) {
        // A server that does not listen notices the end of the connection.
        let _heard = timeout(std::time::Duration::from_millis(200), self.sink.close()).await;
    }
}

impl Receiver {
    /// What comes next. The server sends a ping every 15 s, so silence is a broken connection.
    pub(super) async fn next(&mut self) -> Result<Received, ClientError> {
        loop {
            let message = match timeout(self.limit, self.stream.next()).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return Err(broken(&self.url, &error)),
                Ok(None) => return Err(broken(&self.url, &"it ended")),
                Err(_) => return Err(ClientError::Silent { url: self.url.clone(), limit: self.limit }),
            };
            match message {
                Message::Binary(bytes) => return Ok(Received::Bytes(bytes)),
                Message::Text(text) => match serde_json::from_str(&text) {
                    Ok(message) => return Ok(Received::Message(message)),
                    // A newer server may have more to tell.
                    Err(error) => tracing::debug!(%error, "a message of the terminal is not known"),
                },
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                Message::Close(frame) => {
                    let (code, reason) =
                        frame.map_or((1005, String::new()), |frame| (frame.code.into(), frame.reason.to_string()));
                    return Err(closed(&self.url, code, reason));
                }
            }
        }
    }
}

/// A connection that can be made again.
fn broken(url: &str, reason: &dyn std::fmt::Display) -> ClientError {
    ClientError::Answer { url: url.to_owned(), reason: format!("the WebSocket broke: {reason}") }
}

/// What a close code means for us: an error of [`ClientError::Refused`] is final.
fn closed(url: &str, code: u16, reason: String) -> ClientError {
    match code {
        close::INVALID | close::REPLACED | close::UNREADABLE => {
            ClientError::Refused { url: url.to_owned(), code, reason }
        }
        _ => broken(url, &format!("{reason} ({code})")),
    }
}
