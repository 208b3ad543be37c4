//! A request on its way to a sandbox, and its answer. Nothing is collected: bodies of any size travel as fast as the slower
//! end takes them.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use futures_util::TryStreamExt as _;
use gloveport_provider::{SandboxId, SandboxState};
use http::{
    HeaderMap, Method, StatusCode, Uri,
    header::{CONTENT_LENGTH, LOCATION},
};
use hyper_util::rt::TokioIo;
use tokio::{io::copy_bidirectional, time::timeout};
use tokio_util::io::InspectReader;
use tracing::Instrument as _;

use crate::{
    caller::ClientAddress,
    fault::Fault,
    heads,
    known::Place,
    path::{self, Aim},
    shared::Shared,
    trace, wake,
};

/// Time until the head of an answer; actions may work for long.
const HEAD: Duration = Duration::from_hours(6);
/// How long an upgraded connection lasts at most.
const UPGRADED: Duration = Duration::from_hours(24);

/// What the host of a request names, where sandboxes have hosts; it is an extension.
#[derive(Clone, Debug)]
pub(crate) struct AtHost {
    pub(crate) id: SandboxId,
    pub(crate) port: Option<Cow<'static, str>>,
}

/// Where in a sandbox a request goes.
struct Goal {
    id: SandboxId,
    place: Arc<Place>,
    /// Its URL inside, with path and query.
    target: String,
    /// The path under which the client finds it; empty where it has a host of its own.
    prefix: String,
    /// The URL of the host that the client knows.
    origin: String,
}

/// Passes a request to the sandbox that its host or its path names.
pub(crate) async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match passed(&shared, request).await {
        Ok(response) => response,
        Err(fault) => fault.into_response(),
    }
}

async fn passed(shared: &Arc<Shared>, mut request: Request) -> Result<Response, Fault> {
    if matches!(*request.method(), Method::TRACE | Method::CONNECT) {
        return Err(Fault::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not passed on"));
    }
    let client = request.extensions().get::<ClientAddress>().map(|client| client.0);
    let at_host = request.extensions_mut().remove::<AtHost>();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD) && !heads::is_websocket(request.headers());
    if at_host.is_none()
        && reads
        && let Some(place) = shared.place_of_page(request.uri(), client).await?
    {
        return Ok((StatusCode::TEMPORARY_REDIRECT, [(LOCATION, place)]).into_response());
    }
    let Goal { id, place, target, prefix, origin } = match at_host {
        Some(at) => shared.goal_at_host(at, request.uri(), request.headers(), client).await?,
        None => shared.goal_below_path(request.uri(), request.headers(), client).await?,
    };

    let wants_websocket = heads::is_websocket(request.headers());
    let permit = if wants_websocket {
        let full = |_| Fault::new(StatusCode::SERVICE_UNAVAILABLE, "too many WebSockets are open; try it later");
        let permit = Arc::clone(&shared.upgraded).try_acquire_owned().map_err(full)?;
        Some((permit, shared.metrics.websocket()))
    } else {
        None
    };
    let waiting = wants_websocket.then(|| hyper::upgrade::on(&mut request));
    let mut headers = std::mem::take(request.headers_mut());
    heads::inward(&mut headers, &prefix, &origin, client, &place.headers);
    let [inward, outward] = shared.metrics.bytes();
    let method = request.method().clone();
    let body = request.into_body();
    let is_empty = http_body_is_empty(&body);
    let mut sent = shared.pool.http().request(method.clone(), &target);
    if !is_empty {
        let counter = Arc::clone(&inward);
        let body = body.into_data_stream().inspect_ok(move |part| _ = counter.fetch_add(part.len() as u64, Relaxed));
        sent = sent.body(reqwest::Body::wrap_stream(body));
    } else if headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0") {
        headers.remove(CONTENT_LENGTH);
    }
    let span = trace::way(&method, id.as_str());
    trace::tell(&span, &mut headers);
    let answered = timeout(HEAD, sent.headers(headers).send()).instrument(span.clone()).await;
    let mut answer = match answered {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(shared.unanswered(&id, client, &error).await),
        Err(_) => return Err(Fault::new(StatusCode::GATEWAY_TIMEOUT, "the sandbox did not answer in time")),
    };

    let status = answer.status();
    trace::record(&span, status);
    let mut headers = std::mem::take(answer.headers_mut());
    let is_websocket = status == StatusCode::SWITCHING_PROTOCOLS;
    heads::outward(&mut headers, &prefix, is_websocket);
    let body = if is_websocket {
        let waiting =
            waiting.ok_or_else(|| Fault::new(StatusCode::BAD_GATEWAY, "the sandbox changed the protocol unasked"))?;
        let stop = shared.stop.clone();
        // It owns itself from here on, and ends with either side, with its time, or with the gateway.
        drop(tokio::spawn(async move {
            let both = async {
                let inner = answer.upgrade().await.map_err(|error| error.to_string())?;
                let outer = waiting.await.map_err(|error| error.to_string())?;
                let count =
                    |counter: Arc<AtomicU64>| move |part: &[u8]| _ = counter.fetch_add(part.len() as u64, Relaxed);
                let mut inner = InspectReader::new(inner, count(outward));
                let mut outer = InspectReader::new(TokioIo::new(outer), count(inward));
                copy_bidirectional(&mut outer, &mut inner).await.map_err(|error| error.to_string())
            };
            match stop.run_until_cancelled(timeout(UPGRADED, both)).await {
                Some(Ok(Err(error))) => tracing::debug!(error, "a WebSocket ended with an error"),
                Some(Err(_)) => tracing::debug!("a WebSocket was ended after its time"),
                Some(Ok(Ok(_))) | None => {}
            }
            drop(permit);
        }));
        Body::empty()
    } else {
        let counted = move |part: &Bytes| _ = outward.fetch_add(part.len() as u64, Relaxed);
        Body::from_stream(answer.bytes_stream().inspect_ok(counted))
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// The URL inside.
fn target(base: Option<&String>, path: &str, query: Option<&str>) -> Result<String, Fault> {
    let base = base.ok_or_else(|| Fault::new(StatusCode::BAD_GATEWAY, "the sandbox has no address yet; try again"))?;
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let path = if path.is_empty() { "/" } else { path };
    Ok(format!("{}{path}{query}", base.trim_end_matches('/')))
}

/// Whether a body is known to have nothing. Others are sent as they come.
fn http_body_is_empty(body: &Body) -> bool {
    axum::body::HttpBody::is_end_stream(body)
}

impl Shared {
    async fn goal_at_host(
        self: &Arc<Self>,
        at: AtHost,
        uri: &Uri,
        headers: &HeaderMap,
        client: Option<IpAddr>,
    ) -> Result<Goal, Fault> {
        path::check(uri.path())?;
        // `*` would become part of the host inside.
        if !uri.path().starts_with('/') {
            return Err(Fault::wrong("the path must begin with a slash"));
        }
        let place = self.place(&at.id, client).await?;
        let base = match at.port {
            Some(name) => Some(place.urls.get(&*name).ok_or_else(|| Fault::missing("port in the sandbox"))?),
            None => place.url.as_ref(),
        };
        let target = target(base, uri.path(), uri.query())?;
        Ok(Goal { id: at.id, target, prefix: String::new(), origin: self.origin(headers)?, place })
    }

    async fn goal_below_path(
        self: &Arc<Self>,
        uri: &Uri,
        headers: &HeaderMap,
        client: Option<IpAddr>,
    ) -> Result<Goal, Fault> {
        let public = self.public_url(headers)?;
        let Aim { id, rest } = path::aim(uri.path())?;
        let place = self.place(&id, client).await?;
        let (base, prefix, rest) = match path::port(rest, |name| place.urls.contains_key(name)) {
            Some((name, rest)) => (place.urls.get(name), format!("/{id}/{name}"), rest),
            None => (place.url.as_ref(), format!("/{id}"), rest),
        };
        let target = target(base, rest, uri.query())?;
        Ok(Goal { id, target, prefix, origin: public.base().to_owned(), place })
    }

    /// Where the page of a port with a name is, if its slash is missing: the links of a page begin at its last one.
    async fn place_of_page(self: &Arc<Self>, uri: &Uri, client: Option<IpAddr>) -> Result<Option<String>, Fault> {
        let Aim { id, rest } = path::aim(uri.path())?;
        // Nothing is asked about what surely is no such page.
        let Some(name) = rest.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/')) else {
            return Ok(None);
        };
        if !self.place(&id, client).await?.urls.contains_key(name) {
            return Ok(None);
        }
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Some(format!("{name}/{query}")))
    }

    /// Where a sandbox is, if requests can go there: 404 for one that is not, or no more, and 503 for one that rests.
    async fn place(self: &Arc<Self>, id: &SandboxId, client: Option<IpAddr>) -> Result<Arc<Place>, Fault> {
        let mut place = match self.known.get(id) {
            Some(place) => place,
            None => self.look(id).await?,
        };
        if self.options.wake && place.state == SandboxState::Paused {
            wake::wake(self, id, client).await;
            place = self.look(id).await?;
            if place.state == SandboxState::Paused {
                let detail = "the sandbox is paused and could not be woken; try again";
                return Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, detail).passes());
            }
        }
        match &place.state {
            SandboxState::Paused => {
                Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox is paused; resume it with POST /resume"))
            }
            SandboxState::Stopped(_) | SandboxState::Failed(_) => Err(Fault::missing("sandbox; it has ended")),
            SandboxState::Pending => {
                Err(Fault::new(StatusCode::BAD_GATEWAY, "the sandbox is being made; ask GET /runtime/{runtime_id}"))
            }
            SandboxState::Running | SandboxState::CrashLooping(_) | SandboxState::Unknown(_) => Ok(place),
        }
    }

    pub(crate) async fn look(&self, id: &SandboxId) -> Result<Arc<Place>, Fault> {
        let found = self.provider.find(id).await?.filter(|sandbox| self.is_own(sandbox));
        let sandbox = found.ok_or_else(|| Fault::missing("sandbox"))?;
        Ok(self.known.set(id.clone(), Place::of(sandbox)))
    }

    /// Why a sandbox does not answer, as far as its engine knows.
    async fn unanswered(self: &Arc<Self>, id: &SandboxId, client: Option<IpAddr>, error: &reqwest::Error) -> Fault {
        self.known.forget(id);
        if let Err(fault) = self.place(id, client).await {
            return fault;
        }
        let status = if error.is_timeout() { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
        // The address inside is nobody's business.
        let reason = std::error::Error::source(error).map(gloveport_client::causes).unwrap_or_default();
        tracing::debug!(%id, reason, "a sandbox did not answer");
        Fault::new(status, "the server of the sandbox does not answer; it may be starting anew, so try again")
    }
}
