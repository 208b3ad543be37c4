//! A socket of the agent's own server: what either side says goes to the other one, as slowly as the slower of them takes it.

use std::{sync::Arc, time::Duration};

use axum::extract::ws::{Message, WebSocket};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use gloveport_plugin::Endpoint;
use http::uri::PathAndQuery;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message as Inner, client::IntoClientRequest as _, protocol::WebSocketConfig},
};

use super::{
    hosted::{Held, Hosted},
    sockets::{Farewell, TAKE, close},
};
use crate::app::App;

/// Time for the agent's server to open a socket.
const OPEN: Duration = Duration::from_secs(10);
/// Largest message of the agent: an event with what a tool has printed.
const MESSAGE: usize = 64 * 1024 * 1024;
/// Longest reason of an end.
const REASON: usize = 120;

/// Connects a client that may be here to the socket that it asks for. Says how the client's is to be closed; `None` if the
/// client is gone.
pub(super) async fn run(
    socket: &mut WebSocket,
    app: &App,
    hosted: &Arc<Hosted>,
    target: Option<PathAndQuery>,
) -> Option<Farewell> {
    app.action_arrived();
    let _open = Held::new(hosted);
    let again = |error: &dyn std::fmt::Display| {
        let text: String = format!("The agent-server: {error}").chars().take(REASON).collect();
        Some(Farewell { code: close::TOO_MANY, reason: text.into() })
    };
    let Some(target) = target else { return Some(Farewell::of((close::NO_AGENT, "There is no such socket"))) };
    let lease = match hosted.lease().await {
        Ok(lease) => lease,
        Err(error) => return again(&error),
    };
    let inner = match timeout(OPEN, connect(hosted, lease.endpoint(), &target)).await {
        Ok(Ok(inner)) => inner,
        Ok(Err(error)) => return again(&error),
        Err(_) => return again(&"it does not open the socket"),
    };
    let (mut to_client, mut from_client) = socket.split();
    let (mut to_agent, mut from_agent) = inner.split();
    let end = tokio::select! {
        end = outward(&mut from_agent, &mut to_client) => end,
        () = inward(&mut from_client, &mut to_agent) => None,
        () = app.stop.cancelled() => Some(Farewell::of((close::STOPPING, "the server stops"))),
    };
    app.action_arrived();
    let _in_time = timeout(OPEN, to_agent.close()).await;
    end
}

type AgentSocket = WebSocketStream<TcpStream>;
type ConnectError = Box<dyn std::error::Error + Send + Sync>;

async fn connect(hosted: &Hosted, endpoint: &Endpoint, target: &PathAndQuery) -> Result<AgentSocket, ConnectError> {
    let Endpoint::Port(port) = *endpoint else { return Err("it listens at no port".into()) };
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let mut request = format!("ws://127.0.0.1:{port}{target}").into_client_request()?;
    if let Some(key) = hosted.key() {
        request.headers_mut().insert(gloveport_protocol::SESSION_KEY_HEADER, key);
    }
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
    Ok(socket)
}

/// What the agent says, to its end.
async fn outward(
    from: &mut (impl Stream<Item = Result<Inner, tokio_tungstenite::tungstenite::Error>> + Unpin),
    to: &mut (impl Sink<Message> + Unpin),
) -> Option<Farewell> {
    loop {
        let message = match from.next().await {
            Some(Ok(Inner::Text(text))) => Message::Text(text.as_str().into()),
            Some(Ok(Inner::Binary(bytes))) => Message::Binary(bytes),
            Some(Ok(Inner::Close(Some(frame)))) => {
                return Some(Farewell { code: frame.code.into(), reason: frame.reason.as_str().into() });
            }
            Some(Ok(Inner::Ping(_) | Inner::Pong(_) | Inner::Frame(_))) => continue,
            Some(Ok(Inner::Close(None))) => return Some(Farewell::of((1000, ""))),
            // The client comes again.
            Some(Err(_)) | None => return Some(Farewell::of((close::TOO_MANY, "The agent-server has closed it"))),
        };
        timeout(TAKE, to.send(message)).await.ok()?.ok()?;
    }
}

/// What the client says, until it is gone.
async fn inward(
    from: &mut (impl Stream<Item = Result<Message, axum::Error>> + Unpin),
    to: &mut (impl Sink<Inner> + Unpin),
) {
    while let Some(Ok(message)) = from.next().await {
        let message = match message {
            Message::Text(text) => Inner::Text(text.as_str().into()),
            Message::Binary(bytes) => Inner::Binary(bytes),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        if !matches!(timeout(TAKE, to.send(message)).await, Ok(Ok(()))) {
            return;
        }
    }
}
