//! The live view: what is to be seen as pictures, over a WebSocket, and what a person does there.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        State, WebSocketUpgrade,
        ws::{Message, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    response::Response,
};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitSink};
use gloveport_executor::browser::{Frame, LiveInput, Screencast};
use gloveport_protocol::terminals::close;
use serde::Serialize;
use tokio::time::{Instant, interval_at, timeout};

use super::{cdp::bid_farewell, handle::used};
use crate::{app::App, v1::error::ApiError};

pub(super) const PATH: &str = "/v1/browser/live";
/// The protocol that is chosen when a client offers it; a browser that offers its key needs one that is.
pub(super) const PROTOCOL: &str = "gloveport.browser.v1";
/// Beginning of the protocol that carries the key of the page in base64 for URLs, without padding.
pub(super) const KEY_PROTOCOL: &str = "gloveport.view.";
/// Largest message of a client.
const MESSAGE: usize = 256 * 1024;
/// Bytes that are read from a client at once.
const READ: usize = 16 * 1024;
/// Time between two pings.
const PING: Duration = Duration::from_secs(15);
/// Time for a client to take a message.
const TAKE: Duration = Duration::from_secs(75);

/// Why a conversation ends. `None` if the client is gone.
type End = Option<(u16, String)>;

/// What the next pictures show, when it changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Shown {
    url: String,
    width: u32,
    height: u32,
}

/// Something was not done.
#[derive(Debug, Serialize)]
struct Wrong {
    error: String,
}

#[utoipa::path(
    get,
    path = "/v1/browser/live",
    tag = "browser",
    operation_id = "watch_browser",
    summary = "See the active page as it changes, and use it, over a WebSocket",
    description = "Binary messages are pictures, as JPEG. Before the first one, and when it changes, a text message tells \
        {url, width, height} of what is to be seen. Text messages of the client are what a person does, as JSON with a `type`: \
        `mouse` {kind: move, down, up or wheel; x, y, button, delta_x, delta_y, clicks}, `key` {kind: down or up; key, code, \
        text, modifiers}, `text` {text} and `navigate` {url}. One that is wrong is answered with {error}. The browser stays up as long as somebody looks on. It closes with 1000 \
        when the browser has ended, and with 1001 when the server stops.",
    responses(
        (status = 101, description = "The WebSocket is open."),
        (status = 426, description = "The request does not ask for a WebSocket.", body = crate::answer::ErrorEnvelope),
    ),
)]
pub(super) async fn live(
    State(app): State<Arc<App>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let browser = used(&app)?;
    let upgrade = upgrade.map_err(|refusal| ApiError::NoWebSocket(refusal.body_text()))?;
    let screencast = browser.screencast().await?;
    let app = Arc::clone(&app);
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(MESSAGE).max_frame_size(MESSAGE);
    Ok(upgrade.read_buffer_size(READ).on_upgrade(async move |socket| converse(socket, screencast, &app).await))
}

async fn converse(socket: WebSocket, mut screencast: Screencast, app: &App) {
    let (mut sink, mut stream) = socket.split();
    let silence = app.options.limits.idle_timeout;
    let (mut pings, mut heard) = (interval_at(Instant::now() + PING, PING), Instant::now());
    let mut shown = None;
    let end = loop {
        tokio::select! {
            () = app.stop.cancelled() => break Some((close::STOPPING, "the server stops".to_owned())),
            frame = screencast.next() => match frame {
                Some(frame) => {
                    if !give(&mut sink, frame, &mut shown).await {
                        break None;
                    }
                }
                None => break Some((close::ENDED, "the browser has ended".to_owned())),
            },
            message = stream.next() => {
                heard = Instant::now();
                match take(message, &screencast) {
                    Ok(None) => {}
                    Ok(Some(wrong)) => {
                        if !sent(&mut sink, text(&wrong)).await {
                            break None;
                        }
                    }
                    Err(end) => break end,
                }
                app.action_arrived();
            }
            _ = pings.tick() => {
                if heard.elapsed() > silence {
                    break Some((close::SILENT, format!("nothing came for {} s", silence.as_secs())));
                }
                if !sent(&mut sink, Message::Ping(Bytes::new())).await {
                    break None;
                }
            }
        }
    };
    bid_farewell(&mut sink, &mut stream, end).await;
}

/// Sends a picture, and before it what it shows, if that is something else than before. False if the client is gone.
async fn give(sink: &mut SplitSink<WebSocket, Message>, frame: Frame, shown: &mut Option<Shown>) -> bool {
    let Frame { jpeg, url, width, height } = frame;
    let now = Shown { url, width, height };
    if shown.as_ref() != Some(&now) {
        if !sent(sink, text(&now)).await {
            return false;
        }
        *shown = Some(now);
    }
    sent(sink, Message::Binary(jpeg.into())).await
}

/// Takes what a person does; answers what is wrong with it.
fn take(message: Option<Result<Message, axum::Error>>, screencast: &Screencast) -> Result<Option<Wrong>, End> {
    let words = match message {
        None | Some(Ok(Message::Close(_))) => return Err(None),
        Some(Err(error)) => return Err(Some((close::INVALID, error.to_string()))),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(None),
        Some(Ok(Message::Binary(_))) => return Ok(Some(Wrong { error: "messages are texts with JSON".to_owned() })),
        Some(Ok(Message::Text(words))) => words,
    };
    match serde_json::from_str::<LiveInput>(&words) {
        Ok(input) => {
            screencast.send(input);
            Ok(None)
        }
        Err(error) => Ok(Some(Wrong { error: error.to_string() })),
    }
}

/// Whether a client took a message. One that takes nothing is given up.
async fn sent(sink: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(timeout(TAKE, sink.send(message)).await, Ok(Ok(())))
}

fn text(message: &impl Serialize) -> Message {
    Message::Text(serde_json::to_string(message).unwrap_or_else(|_| "{}".to_owned()).into())
}
