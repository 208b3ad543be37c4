//! `/sockets` (`agent-server-workspace-api` §4.4): the events of commands as they come, and commands from there.
//!
//! A client takes events from the log when it is ready for them, so a slow one costs no memory and holds up nobody.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    response::Response,
};
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use gloveport_bash_events::{
    Bash,
    event::{self, Key},
};
use gloveport_proxy::Trust;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};

use super::{answers::Parameters, bash::request_of, hosted::target_of, tunnel};
use crate::{answer, app::App, auth, route::Route};

/// Largest message of a client.
const MESSAGE: usize = 4 * 1024 * 1024;
/// Bytes that are read from a client at once; its default would be held for each of many idle clients.
const READ: usize = 16 * 1024;
/// Time for the message that shows the key.
const FOR_KEY: Duration = Duration::from_secs(10);
/// Time between two pings.
const PING: Duration = Duration::from_secs(20);
/// Time that a client may take no byte.
pub(super) const TAKE: Duration = Duration::from_mins(2);
/// Time for the last words.
const FAREWELL: Duration = Duration::from_secs(1);
/// Messages for the client that wait, beside events.
const NOTES: usize = 16;

/// Why there is no conversation.
const NO_AGENT: &str = "There is no agent here that could have a conversation";

/// Codes with which a socket is closed.
pub(super) mod close {
    /// The key was not shown.
    pub(in crate::agent_server) const NO_KEY: u16 = 4001;
    /// There is no such conversation.
    pub(in crate::agent_server) const NO_AGENT: u16 = 4004;
    /// Too many are here.
    pub(in crate::agent_server) const TOO_MANY: u16 = 1013;
    /// The server is not settled yet.
    pub(in crate::agent_server) const TRY_LATER: u16 = 1013;
    /// The server stops.
    pub(in crate::agent_server) const STOPPING: u16 = 1001;
}

/// Why a conversation ends. `None` if the client is gone.
type End = Option<(u16, &'static str)>;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/sockets/bash-events", bash_events), Route::get("/sockets/{*path}", of_agent)]
}

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

async fn bash_events(State(app): State<Arc<App>>, upgrade: Upgrade, uri: Uri, headers: HeaderMap) -> Response {
    let parameters = Parameters::of(&uri);
    let wants_all = match (parameters.get("resend_mode"), parameters.boolean("resend_all", false)) {
        (None, Ok(all)) => all,
        (Some("all"), Ok(_)) => true,
        (Some(_), _) | (_, Err(_)) => return answer::detail(StatusCode::FORBIDDEN, "resend_mode can be `all` only"),
    };
    open(app, upgrade, &uri, headers, Wish::Events { wants_all })
}

async fn of_agent(State(app): State<Arc<App>>, upgrade: Upgrade, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path();
    if app.hosted_agent().is_none()
        && !["/sockets/events/", "/sockets/session/"].iter().any(|own| path.starts_with(own))
    {
        // There is no such socket.
        return answer::detail(StatusCode::FORBIDDEN, "Not Found");
    }
    open(app, upgrade, &uri, headers, Wish::Agent)
}

/// What a client wants of a socket.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Events { wants_all: bool },
    Agent,
}

/// Opens a socket for whoever shows the key: in the query, in a header, or in the first message.
fn open(app: Arc<App>, upgrade: Upgrade, uri: &Uri, headers: HeaderMap, wish: Wish) -> Response {
    let Ok(upgrade) = upgrade else { return answer::detail(StatusCode::NOT_FOUND, "Not Found") };
    let is_known = match shown(&app, uri.clone(), headers) {
        Ok(is_known) => is_known,
        Err(refusal) => return *refusal,
    };
    let upgrade = upgrade.max_message_size(MESSAGE).max_frame_size(MESSAGE).read_buffer_size(READ);
    let target = target_of(uri);
    upgrade.on_upgrade(async move |mut socket| {
        let end = if is_known || tells_key(&app, &mut socket).await {
            match (wish, app.hosted_agent()) {
                (Wish::Events { wants_all }, _) => converse(&mut socket, &app, wants_all).await.map(Farewell::of),
                (Wish::Agent, None) => Some(Farewell::of((close::NO_AGENT, NO_AGENT))),
                (Wish::Agent, Some(hosted)) => tunnel::run(&mut socket, &app, hosted, target).await,
            }
        } else {
            Some(Farewell::of((close::NO_KEY, "Authentication failed")))
        };
        if let Some(farewell) = end {
            farewell.say(socket).await;
        }
    })
}

/// Whether a request shows the key. One with a wrong key is refused.
fn shown(app: &App, uri: Uri, headers: HeaderMap) -> Result<bool, Box<Response>> {
    let options = &app.options;
    let in_query = Parameters::of(&uri).get("session_api_key").map(str::to_owned);
    let mut request = http::Request::new(());
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    if options.session_key.is_none() {
        return auth::check(options, &request).map(|()| true);
    }
    let is_shown = match in_query {
        Some(key) => Some(options.has_key(key.as_bytes())),
        None if request.headers().contains_key(gloveport_protocol::SESSION_KEY_HEADER) => {
            Some(auth::trust(options, &request) == Trust::Known)
        }
        None => None,
    };
    match is_shown {
        Some(false) => Err(Box::new(answer::detail(StatusCode::FORBIDDEN, "Authentication failed"))),
        Some(true) => Ok(true),
        None => Ok(false),
    }
}

/// Waits for a first message with the key.
async fn tells_key(app: &App, socket: &mut WebSocket) -> bool {
    #[derive(Deserialize)]
    struct Told {
        r#type: String,
        session_api_key: String,
    }
    let Ok(Some(Ok(Message::Text(text)))) = timeout(FOR_KEY, socket.recv()).await else { return false };
    serde_json::from_str(&text)
        .is_ok_and(|told: Told| told.r#type == "auth" && app.options.has_key(told.session_api_key.as_bytes()))
}

/// How a socket is closed.
pub(super) struct Farewell {
    pub(super) code: u16,
    pub(super) reason: Utf8Bytes,
}

impl Farewell {
    pub(super) fn of((code, reason): (u16, &'static str)) -> Self {
        Self { code, reason: reason.into() }
    }

    pub(super) async fn say(self, mut socket: WebSocket) {
        let Self { code, reason } = self;
        let words = async {
            if socket.send(Message::Close(Some(CloseFrame { code, reason }))).await.is_ok() {
                // The client answers; what it still says does not count any more.
                while let Some(Ok(_)) = socket.recv().await {}
            }
        };
        let _in_time = timeout(FAREWELL, words).await;
    }
}

async fn converse(socket: &mut WebSocket, app: &App, wants_all: bool) -> End {
    let Some(face) = &app.agent_server else { return None };
    let Some(_place) = face.follower() else { return Some((close::TOO_MANY, "Too many bash event connections")) };
    let bash = &face.bash;
    let from = if wants_all { None } else { bash.log().last() };
    let (mut sink, mut stream) = socket.split();
    let (notes, mut inbox) = mpsc::channel(NOTES);
    tokio::select! {
        end = give(&mut sink, bash, from, &mut inbox) => end,
        () = take(&mut stream, app, bash, &notes) => None,
        () = app.stop.cancelled() => Some((close::STOPPING, "the server stops")),
    }
}

type Sink<'a> = SplitSink<&'a mut WebSocket, Message>;

/// Gives the client every event behind `cursor`, and what it is told beside them.
async fn give(sink: &mut Sink<'_>, bash: &Bash, mut cursor: Option<Key>, inbox: &mut mpsc::Receiver<String>) -> End {
    let log = bash.log();
    let mut changes = log.changes();
    let mut ping_at = Instant::now() + PING;
    loop {
        // What was sent before a command that is told of comes before it.
        changes.mark_unchanged();
        while let Ok(note) = inbox.try_recv() {
            sent(sink, Message::Text(note.into())).await?;
        }
        while let Some(key) = log.after(cursor) {
            cursor = Some(key);
            let reader = Arc::clone(log);
            let json = spawn_blocking(move || reader.read(key)).await.ok().flatten();
            if let Some(text) = json.and_then(|json| String::from_utf8(json).ok()) {
                sent(sink, Message::Text(text.into())).await?;
            }
        }
        tokio::select! {
            told = changes.changed() => told.ok()?,
            note = inbox.recv() => sent(sink, Message::Text(note?.into())).await?,
            () = sleep_until(ping_at) => {
                sent(sink, Message::Ping(bytes::Bytes::new())).await?;
                ping_at = Instant::now() + PING;
            }
        }
    }
}

/// Sends a message, unless the client is gone or takes nothing.
async fn sent(sink: &mut Sink<'_>, message: Message) -> Option<()> {
    timeout(TAKE, sink.send(message)).await.ok()?.ok()
}

/// Starts what the client sends, until it is gone.
async fn take(stream: &mut SplitStream<&mut WebSocket>, app: &App, bash: &Arc<Bash>, notes: &mpsc::Sender<String>) {
    while let Some(Ok(message)) = stream.next().await {
        let text: Utf8Bytes = match message {
            Message::Text(text) => text,
            Message::Close(_) => return,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => continue,
        };
        app.action_arrived();
        if is_auth(&text) {
            continue;
        }
        let error = match request_of(text.as_bytes()) {
            Ok(request) => bash.start(request).await.err().map(|error| ("RuntimeError", error.to_string())),
            Err(wrong) => Some((code_of(&wrong), Value::from(wrong).to_string())),
        };
        if let Some((code, detail)) = error
            && notes.send(error_event(code, &detail)).await.is_err()
        {
            return;
        }
    }
}

/// What a mistake is called.
fn code_of(wrong: &[Value]) -> &'static str {
    if wrong.iter().any(|one| one["type"] == "json_invalid") { "JSONDecodeError" } else { "ValidationError" }
}

/// Whether this shows the key, for which nobody asks any more.
fn is_auth(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Told {
        r#type: String,
    }
    serde_json::from_str(text).is_ok_and(|told: Told| told.r#type == "auth")
}

/// What tells a client of its mistake. It is kept nowhere.
fn error_event(code: &str, detail: &str) -> String {
    let id = event::new_id().map(|id| id.simple().to_string()).unwrap_or_default();
    json!({"id": id, "timestamp": event::stamp(event::now()), "kind": "BashError", "code": code, "detail": detail})
        .to_string()
}
