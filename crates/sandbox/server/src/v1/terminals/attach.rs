//! One client of a terminal, over a WebSocket.
//!
//! Output is taken from the terminal's log when the client takes it, so a slow client costs no memory and holds up
//! nobody. Input that programs do not read is not read from the client either.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket},
    },
    response::Response,
};
use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use gloveport_executor::{Attachment, TerminalsError};
use gloveport_protocol::terminals::{FromTerminal, TerminalState, ToTerminal, close};
use gloveport_terminal::{LogError, TerminalError, WindowSize};
use serde::Serialize;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::app::App;

/// The protocol that is chosen when a client offers it; a browser that offers its key needs one that is.
const PROTOCOL: &str = "gloveport.terminal.v1";
/// Largest message of a client.
const MESSAGE: usize = 256 * 1024;
/// Bytes that are read from a client at once; its default would be held for each of many idle clients.
const READ: usize = 16 * 1024;
/// Most bytes of output in one message.
const PIECE: usize = 32 * 1024;
/// Time between two pings.
const PING: Duration = Duration::from_secs(15);
/// Typed bytes after which the client is told that they arrived.
const RECEIPT: u64 = 4096;
/// Messages for the client that wait, beside output.
const NOTES: usize = 16;
/// Time for the last words.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a conversation ends. `None` if the client is gone.
type End = Option<(u16, String)>;

/// The answer that attaches a client.
pub(super) fn answer(upgrade: WebSocketUpgrade, attachment: Attachment, from: Option<u64>, app: &Arc<App>) -> Response {
    let app = Arc::clone(app);
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(MESSAGE)
        .max_frame_size(MESSAGE)
        .read_buffer_size(READ)
        .on_upgrade(async move |socket| converse(socket, &attachment, from, &app).await)
}

async fn converse(socket: WebSocket, attachment: &Attachment, from: Option<u64>, app: &App) {
    let (mut sink, mut stream) = socket.split();
    let (notes, mut inbox) = mpsc::channel(NOTES);
    let end = tokio::select! {
        end = give(&mut sink, attachment, from, &mut inbox) => end,
        end = take(&mut stream, attachment, &notes, app.options.limits.idle_timeout) => end,
        () = attachment.replaced() => Some((close::REPLACED, "the same client came again".to_owned())),
        () = app.stop.cancelled() => Some((close::STOPPING, "the server stops".to_owned())),
    };
    let Some((code, reason)) = end else { return };
    let farewell = async {
        let frame = CloseFrame { code, reason: reason.into() };
        if sink.send(Message::Close(Some(frame))).await.is_ok() {
            // The client answers; what it still says does not count any more.
            while let Some(Ok(_)) = stream.next().await {}
        }
    };
    let _in_time = timeout(FAREWELL, farewell).await;
}

/// Gives the client what the terminal has for it.
async fn give(
    sink: &mut SplitSink<WebSocket, Message>,
    attachment: &Attachment,
    from: Option<u64>,
    inbox: &mut mpsc::Receiver<FromTerminal>,
) -> End {
    let named = attachment.named();
    let log = named.terminal().output();
    let mut state = named.terminal().watch();
    let mut cursor = from.unwrap_or_else(|| log.start());
    let start =
        FromTerminal::Start { id: named.id().to_owned(), offset: cursor, end: log.end(), input: attachment.taken() };
    sink.send(text(&start)).await.ok()?;
    let mut ping_at = Instant::now() + PING;
    loop {
        if Instant::now() >= ping_at {
            sink.feed(Message::Ping(Bytes::new())).await.ok()?;
            ping_at = Instant::now() + PING;
        }
        while let Ok(note) = inbox.try_recv() {
            sink.feed(text(&note)).await.ok()?;
        }
        // Looked at before the output: what came before the end was known is part of it.
        state.mark_unchanged();
        let exit = match named.state() {
            TerminalState::Ended(exit) => Some(exit),
            TerminalState::Starting | TerminalState::Running { .. } => None,
        };
        match log.read(cursor, PIECE) {
            Ok(piece) if !piece.bytes.is_empty() => {
                cursor += piece.bytes.len() as u64;
                sink.send(Message::Binary(piece.bytes.into())).await.ok()?;
                continue;
            }
            Ok(_) => {}
            Err(LogError::Gone { oldest, .. }) => {
                sink.send(text(&FromTerminal::Gap { from: cursor, to: oldest })).await.ok()?;
                cursor = oldest;
                continue;
            }
            Err(error) => return Some((close::UNREADABLE, error.to_string())),
        }
        if let Some(exit) = exit {
            sink.send(text(&FromTerminal::Exit(exit))).await.ok()?;
            return Some((close::ENDED, "the program ended".to_owned()));
        }
        sink.flush().await.ok()?;
        tokio::select! {
            () = log.grown_beyond(cursor) => {}
            // The sender lives as long as the terminal's task, which tells the end before it goes.
            _changed = state.changed() => {}
            Some(note) = inbox.recv() => sink.send(text(&note)).await.ok()?,
            () = sleep_until(ping_at) => {}
        }
    }
}

/// Takes what the client types and asks for.
async fn take(
    stream: &mut SplitStream<WebSocket>,
    attachment: &Attachment,
    notes: &mpsc::Sender<FromTerminal>,
    silence: Duration,
) -> End {
    let mut told = attachment.taken();
    loop {
        let message = match timeout(silence, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return Some((close::INVALID, error.to_string())),
            Ok(None) => return None,
            Err(_) => return Some((close::SILENT, format!("nothing came for {} s", silence.as_secs()))),
        };
        match message {
            Message::Binary(bytes) => {
                if let Err(error) = attachment.type_in(&bytes).await {
                    refuse(notes, &error).await;
                }
                if attachment.taken() - told >= RECEIPT {
                    told = attachment.taken();
                    // Who listens is in the same `select!`.
                    let _told = notes.send(FromTerminal::Input { offset: told }).await;
                }
            }
            Message::Text(words) => match serde_json::from_str(&words) {
                Ok(message) => {
                    if let Err(error) = obey(attachment, message) {
                        refuse(notes, &error).await;
                    }
                }
                Err(error) => return Some((close::INVALID, error.to_string())),
            },
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return None,
        }
    }
}

fn obey(attachment: &Attachment, message: ToTerminal) -> Result<(), TerminalsError> {
    match message {
        ToTerminal::Resize(size) => {
            attachment.named().resize(WindowSize { columns: size.columns.max(1), rows: size.rows.max(1) })
        }
        ToTerminal::Signal { name } => attachment.named().signal(&name),
    }
}

/// Tells that something was not done. That the program ended is told by its exit.
async fn refuse(notes: &mpsc::Sender<FromTerminal>, error: &TerminalsError) {
    if !matches!(error, TerminalsError::Terminal(TerminalError::Closed)) {
        let _told = notes.send(FromTerminal::Error { message: error.to_string() }).await;
    }
}

fn text(message: &impl Serialize) -> Message {
    match serde_json::to_string(message) {
        Ok(text) => Message::Text(text.into()),
        Err(error) => {
            tracing::error!(%error, "a message cannot be written as JSON");
            Message::Text("{}".into())
        }
    }
}
