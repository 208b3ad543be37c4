//! The browser for programs that speak the DevTools protocol, such as Playwright: each is a client of its own.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    response::Response,
};
use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use gloveport_executor::browser::{BrowserState, CdpError, Tunnel};
use gloveport_protocol::terminals::close;
use gloveport_proxy::origin;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header::HOST};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, interval_at, timeout};
use utoipa::ToSchema;

use super::handle::used;
use crate::{answer, app::App, v1::error::ApiError};

pub(super) const PATH: &str = "/v1/browser/cdp";
/// Largest message of a client.
const MESSAGE: usize = 32 * 1024 * 1024;
/// Bytes that are read from a client at once.
const READ: usize = 16 * 1024;
/// Time between two pings.
const PING: Duration = Duration::from_secs(15);
/// Time for a client to take a message.
const TAKE: Duration = Duration::from_secs(75);
/// Time for the last words.
const FAREWELL: Duration = Duration::from_secs(1);
/// The DevTools protocol that Chromium speaks.
const PROTOCOL: &str = "1.3";

/// Why a conversation ends. `None` if the client is gone.
type End = Option<(u16, String)>;

/// What clients of the DevTools protocol ask first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BrowserVersion)]
struct Version {
    /// Which browser it is.
    #[serde(rename = "Browser")]
    browser: String,
    /// Version of the protocol.
    #[serde(rename = "Protocol-Version")]
    protocol: &'static str,
    /// Where the protocol is spoken.
    #[serde(rename = "webSocketDebuggerUrl")]
    url: String,
}

#[utoipa::path(
    get,
    path = "/v1/browser/cdp/json/version",
    tag = "browser",
    operation_id = "get_browser_version",
    summary = "Tell where the DevTools protocol is spoken",
    description = "What Playwright's `connectOverCDP` asks for, which is given the address of /v1/browser/cdp and the key as a \
        header. This starts the browser.",
    responses((status = 200, description = "The address.", body = Version)),
)]
pub(super) async fn version(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    tell_version(&app, &uri, headers).await
}

#[utoipa::path(
    get,
    path = "/v1/browser/cdp/json/version/",
    tag = "browser",
    operation_id = "get_browser_version_slash",
    summary = "The same, as some clients ask for it",
    responses((status = 200, description = "The address.", body = Version)),
)]
pub(super) async fn version_with_slash(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    tell_version(&app, &uri, headers).await
}

async fn tell_version(app: &App, uri: &Uri, mut headers: HeaderMap) -> Result<Response, ApiError> {
    let browser = used(app)?;
    browser.start().await?;
    let version = match &*browser.state().borrow() {
        BrowserState::Ready { version, .. } => version.clone(),
        _ => String::new(),
    };
    // HTTP/2 has the name in the address.
    if let Some(authority) = uri.authority()
        && let Ok(authority) = HeaderValue::try_from(authority.as_str())
    {
        headers.insert(HOST, authority);
    }
    let url = origin::websocket_url(&headers, PATH).unwrap_or_else(|| PATH.to_owned());
    Ok(answer::json(StatusCode::OK, &Version { browser: version, protocol: PROTOCOL, url }))
}

#[utoipa::path(
    get,
    path = "/v1/browser/cdp",
    tag = "browser",
    operation_id = "attach_cdp",
    summary = "Speak the DevTools protocol over a WebSocket",
    description = "Each client is one of its own: it sees its own sessions only. The browser stays up as long as a client is \
        connected.",
    responses(
        (status = 101, description = "The WebSocket is open."),
        (status = 426, description = "The request does not ask for a WebSocket.", body = crate::answer::ErrorEnvelope),
    ),
)]
pub(super) async fn cdp(
    State(app): State<Arc<App>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let browser = used(&app)?;
    let upgrade = upgrade.map_err(|refusal| ApiError::NoWebSocket(refusal.body_text()))?;
    let (tunnel, lease) = browser.tunnel().await?;
    let app = Arc::clone(&app);
    let upgrade = upgrade.max_message_size(MESSAGE).max_frame_size(MESSAGE).read_buffer_size(READ);
    Ok(upgrade.on_upgrade(async move |socket| {
        converse(socket, tunnel, &app).await;
        drop(lease);
    }))
}

async fn converse(socket: WebSocket, mut tunnel: Tunnel, app: &App) {
    let (mut sink, mut stream) = socket.split();
    let silence = app.options.limits.idle_timeout;
    let (mut pings, mut heard) = (interval_at(Instant::now() + PING, PING), Instant::now());
    let end = loop {
        let message = tokio::select! {
            () = app.stop.cancelled() => break Some((close::STOPPING, "the server stops".to_owned())),
            message = tunnel.next() => match message {
                Some(message) => Message::Text(message.to_string().into()),
                None => break Some((close::STOPPING, "the browser has ended, or too much was not read".to_owned())),
            },
            message = stream.next() => {
                heard = Instant::now();
                match taken(message, &tunnel) {
                    Ok(Some(answer)) => Message::Text(answer.to_string().into()),
                    Ok(None) => continue,
                    Err(end) => break end,
                }
            }
            _ = pings.tick() => {
                if heard.elapsed() > silence {
                    break Some((close::SILENT, format!("nothing came for {} s", silence.as_secs())));
                }
                Message::Ping(Bytes::new())
            }
        };
        // A client that takes nothing holds up nobody but itself, and not for ever.
        match timeout(TAKE, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => break None,
        }
    };
    bid_farewell(&mut sink, &mut stream, end).await;
}

/// Passes a message of a client on. What it asks wrongly is answered; what is no question ends the conversation.
fn taken(message: Option<Result<Message, axum::Error>>, tunnel: &Tunnel) -> Result<Option<Value>, End> {
    let text = match message {
        None | Some(Ok(Message::Close(_))) => return Err(None),
        Some(Err(error)) => return Err(Some((close::INVALID, error.to_string()))),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(None),
        Some(Ok(Message::Binary(_))) => return Err(Some((close::INVALID, "messages are texts".to_owned()))),
        Some(Ok(Message::Text(text))) => text,
    };
    let message: Value = serde_json::from_str(&text)
        .map_err(|error| Some((close::INVALID, format!("a message is no JSON: {error}"))))?;
    let (id, session) = (message.get("id").cloned(), message.get("sessionId").cloned());
    match tunnel.send(message) {
        Ok(()) => Ok(None),
        Err(error @ CdpError::Unexpected { .. }) => {
            let Some(id) = id else { return Err(Some((close::INVALID, error.to_string()))) };
            // The code is that of JSON-RPC for a wrong request.
            let mut answer = json!({"id": id, "error": {"code": -32600, "message": error.to_string()}});
            if let Some(session) = session {
                answer["sessionId"] = session;
            }
            Ok(Some(answer))
        }
        Err(error) => Err(Some((close::STOPPING, error.to_string()))),
    }
}

/// Says why a conversation ends. What the client still says does not count any more.
pub(super) async fn bid_farewell(
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
    end: End,
) {
    let Some((code, reason)) = end else { return };
    let farewell = async {
        // A reason has at most 123 bytes (RFC 6455 5.5).
        let reason: String = reason.chars().filter(char::is_ascii).take(120).collect();
        let frame = CloseFrame { code, reason: reason.into() };
        if sink.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = stream.next().await {}
        }
    };
    let _in_time = timeout(FAREWELL, farewell).await;
}
