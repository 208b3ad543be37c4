//! What is done for every request, before it is known what it asks for.

use std::{borrow::Cow, sync::Arc, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gloveport_origins::Visit;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header::HOST};
use tracing::{Instrument as _, Span};

use crate::{
    caller::{Caller, ClientAddress, SAID},
    domain::Host,
    e2b,
    fault::{EngineFault, Fault},
    listen::Peer,
    pages::{self, Asked},
    shared::{SCHEME, Shared},
    trace,
    way::{self, AtHost},
};

/// The header with the id of a request.
pub(crate) const ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken from a client.
const LONGEST: usize = 64;
/// The route of everything that goes to sandboxes.
const SANDBOX: &str = "sandbox";
/// The routes that make sandboxes.
const STARTS: [&str; 2] = ["/start", "/v1/sandboxes"];

/// Gives a request its id, finds out who asks and for which host, and counts the answer.
pub(crate) async fn enter(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id(request.headers());
    request.headers_mut().insert(ID, id.clone());
    // Whatever is logged for a request says so, warnings among it.
    let span = tracing::error_span!("request", id = id.to_str().unwrap_or_default());
    let method = request.method().clone();
    let aim = span.in_scope(|| prepare(&shared, &mut request));
    // What is for a sandbox, or for nobody, has no route.
    let route = request.extensions().get::<MatchedPath>().filter(|_| matches!(aim, Ok(Aim::Gateway)));
    let route = route.map_or_else(|| SANDBOX.to_owned(), |path| path.as_str().to_owned());
    let traced = trace::request(&method, &route, request.headers(), id.to_str().unwrap_or_default());
    let answered = async {
        let route = route.as_str();
        let is_post = request.method() == Method::POST;
        let client = request.extensions().get::<ClientAddress>().map(|client| tracing::field::display(client.0));
        let asked = Asked::of(&request, &shared.options.origins).filter(|_| aim.is_ok());
        let visit = match asked {
            Some(asked) => asked.visit(&shared).await,
            None => None,
        };
        let mut response = match aim {
            Ok(_) if visit.as_ref().is_some_and(Visit::is_welcome_preflight) => pages::preflight(),
            Ok(Aim::Gateway) => next.run(request).await,
            Ok(Aim::Sandbox) => way::pass(State(Arc::clone(&shared)), request).await,
            Err(fault) => fault.into_response(),
        };
        if let Some(visit) = visit {
            visit.mark(response.headers_mut());
        }
        let (status, took) = (response.status(), began.elapsed());
        shared.metrics.answered(route, status, took);
        if is_post && STARTS.contains(&route) {
            shared.metrics.started(status, took);
        }
        if response.extensions_mut().remove::<EngineFault>().is_some() {
            shared.metrics.engine_failed();
        }
        trace::record(&Span::current(), status);
        tracing::info!(client, route, status = status.as_u16(), ms = took.as_secs_f64() * 1e3, "answered");
        response
    };
    let mut response = answered.instrument(traced).instrument(span).await;
    response.headers_mut().insert(ID, id);
    response
}

/// The id that a client has given, if it is short and plain; otherwise a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |value: &&HeaderValue| {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        (1..=LONGEST).contains(&value.len()) && value.as_bytes().iter().all(allowed)
    };
    let given = headers.get(ID).filter(is_plain).cloned();
    given.unwrap_or_else(|| {
        let made = gloveport_ids::random::<8>().ok().and_then(|id| HeaderValue::try_from(id).ok());
        made.unwrap_or(HeaderValue::from_static("none"))
    })
}

enum Aim {
    Gateway,
    Sandbox,
}

/// Leaves of what was said about the way here only what is true: `Host` is what the client has asked, the scheme stands in
/// [`SCHEME`], and the rest is gone.
fn prepare(shared: &Shared, request: &mut Request) -> Result<Aim, Fault> {
    let peer = request.extensions().get::<Peer>().copied();
    // Without a connection it is a call in this process.
    let peer = peer.map_or(([127, 0, 0, 1].into(), false), |peer| (peer.address.ip(), peer.is_tls));
    // The target of CONNECT is not whom it asks.
    let authority = request.uri().authority().filter(|_| request.method() != Method::CONNECT).cloned();
    let caller = Caller::of(request.headers(), authority.as_ref(), peer, &shared.options.trusted_proxies)?;
    let headers = request.headers_mut();
    for name in SAID {
        headers.remove(name);
    }
    headers.remove(HOST);
    let scheme = if caller.is_https { "https" } else { "http" };
    headers.insert(SCHEME, HeaderValue::from_static(scheme));
    let host = caller.host.as_ref();
    if let Some(value) = host.and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        headers.insert(HOST, value);
    }
    request.extensions_mut().insert(ClientAddress(caller.address));
    let (Some(domain), Some(host)) = (&shared.domain, host) else { return Ok(Aim::Gateway) };
    if shared.is_own_host(host) {
        return Ok(Aim::Gateway);
    }
    if shared.options.e2b.is_some()
        && let Some(label) = domain.label(host.host())
        && e2b::aim(&label, request.headers_mut())
    {
        return Ok(Aim::Gateway);
    }
    match domain.aim(host.host()) {
        Host::Gateway => Ok(Aim::Gateway),
        Host::Sandbox { id, port } => {
            request.extensions_mut().insert(AtHost { id, port: port.map(Cow::Borrowed) });
            Ok(Aim::Sandbox)
        }
        Host::Nobody => Err(Fault::missing("host; sandboxes are at {runtime_id}.DOMAIN")),
    }
}
