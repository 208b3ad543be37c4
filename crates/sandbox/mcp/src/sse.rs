//! The way in that OpenHands 0.62 takes: one stream of events down, and a request for each message up (the HTTP+SSE
//! transport of revision 2024-11-05; action-execution-api 5.3).

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    body::Bytes,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use rmcp::{
    ErrorData, RoleServer, ServiceExt as _,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, ProtocolVersion, ServerConfig,
        ServerJsonRpcMessage, ServerResult,
    },
    service::{NotificationContext, RequestContext, Service},
    transport::Transport,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    http::{MOST_CLIENTS, refusal},
    proxy::Proxy,
    session::Session,
};

/// Messages of one client that wait, each way.
const WAITING: usize = 64;
/// Time for a message to be taken.
const TAKEN: Duration = Duration::from_secs(30);
/// Pause between two signs of life.
const ALIVE: Duration = Duration::from_secs(15);

/// The clients that came this way, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>>);

/// Ends the session of a client when its stream is gone.
struct Leaving {
    streams: Arc<Streams>,
    id: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.streams.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Streams {
    /// Begins a session. Its messages come as the answer, after the address for those of the client.
    pub(crate) fn open(self: &Arc<Self>, proxy: &Arc<Proxy>, stop: &CancellationToken) -> Response {
        let Ok(id) = gloveport_ids::uuid().map(|id| id.replace('-', "")) else {
            return refusal(StatusCode::INTERNAL_SERVER_ERROR, "There are no random numbers");
        };
        let (up, from_client) = mpsc::channel(WAITING);
        let (to_client, down) = mpsc::channel::<Event>(WAITING);
        {
            let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if streams.len() >= MOST_CLIENTS {
                return refusal(StatusCode::SERVICE_UNAVAILABLE, "Too many MCP clients are connected; try again later");
            }
            streams.insert(id.clone(), up);
        }
        let leaving = Leaving { streams: Arc::clone(self), id: id.clone() };
        let session = Raw(Session::new(proxy));
        tokio::spawn(async move {
            match Box::pin(session.serve(Pipe { from_client, to_client })).await {
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::debug!(%error, "an MCP client did not say hello"),
            }
        });
        let endpoint = Event::default().event("endpoint").data(format!("/mcp/messages/?session_id={id}"));
        let messages = stream::unfold((down, leaving), |(mut down, leaving)| async move {
            let event = down.recv().await?;
            Some((event, (down, leaving)))
        });
        let events = stream::iter([endpoint]).chain(messages).map(Ok::<_, Infallible>);
        let events = events.take_until(stop.clone().cancelled_owned());
        Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE).text("ping")).into_response()
    }

    /// Takes a message of a client.
    pub(crate) async fn take(&self, id: Option<&str>, body: &Bytes) -> Response {
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return refusal(StatusCode::BAD_REQUEST, "session_id is required");
        };
        if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return refusal(StatusCode::BAD_REQUEST, "Invalid session ID");
        }
        let up = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let Some(up) = up else {
            return refusal(StatusCode::NOT_FOUND, "Could not find session");
        };
        let message = match serde_json::from_slice::<ClientJsonRpcMessage>(body) {
            Ok(message) => message,
            Err(error) => {
                tracing::debug!(%error, "a message of an MCP client cannot be read");
                return refusal(StatusCode::BAD_REQUEST, "Could not parse message");
            }
        };
        match timeout(TAKEN, up.send(message)).await {
            Ok(Ok(())) => (StatusCode::ACCEPTED, "Accepted").into_response(),
            Ok(Err(_)) => refusal(StatusCode::NOT_FOUND, "Could not find session"),
            Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE, "The session does not take messages; try again later"),
        }
    }
}

/// The messages of one client.
struct Pipe {
    from_client: mpsc::Receiver<ClientJsonRpcMessage>,
    to_client: mpsc::Sender<Event>,
}

impl Transport<RoleServer> for Pipe {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to_client = self.to_client.clone();
        async move {
            let event = Event::default().event("message").json_data(message).map_err(io::Error::other)?;
            to_client.send(event).await.map_err(|_| io::ErrorKind::NotConnected.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.from_client.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.from_client.close();
        Ok(())
    }
}

/// A client that gets results exactly as servers write them.
struct Raw(Session);

impl Service<RoleServer> for Raw {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        match request {
            ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::SubscriptionsListenRequest(_)
            | ClientRequest::PingRequest(_) => Service::handle_request(&self.0, request, context).await,
            other => {
                let result = self.0.answer(other, &context).await?;
                Ok(ServerResult::CustomResult(CustomResult::new(result)))
            }
        }
    }

    async fn handle_notification(
        &self,
        told: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, told, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        // Without `initialize` no server could ask its clients, and the transport is older than that.
        ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE).to_vec().into()
    }
}
