//! One request, its answer, and what it is upgraded to.

use std::{net::IpAddr, sync::Arc};

use gloveport_plugin::Endpoint;
use gloveport_protocol::SESSION_KEY_HEADER;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, HOST},
    uri::PathAndQuery,
};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1,
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    answer::{Answer, Held, RequestBody},
    connect::{Connection, connect},
    error::ForwardError,
    headers,
    limits::ProxyLimits,
    mount::Mount,
    progress::{Progress, Watched},
    tunnel,
};

/// Most bytes of the head of an answer.
const HEAD: usize = 256 * 1024;

/// How a request is passed on.
#[derive(Debug, Clone)]
pub struct Forwarding<'a> {
    /// Where the service is.
    pub endpoint: &'a Endpoint,
    /// The path that it is under.
    pub mount: &'a Mount,
    /// Address of the client, where it is known.
    pub client: Option<IpAddr>,
    /// The key of a session that is the service's own, and not this server's.
    pub session_key: Option<HeaderValue>,
    /// What is waited for.
    pub limits: &'a ProxyLimits,
    /// Ends what was upgraded.
    pub stop: &'a CancellationToken,
}

/// Passes a request to a service and gives its answer. `target` is the path and query that the service is asked for;
/// `held` is dropped when the answer, or what the connection was upgraded to, is over. Dropping the answer, or this
/// future, ends the connection to the service.
pub async fn forward(
    request: Request<RequestBody>,
    target: PathAndQuery,
    forwarding: Forwarding<'_>,
    held: Held,
) -> Result<Response<Answer>, ForwardError> {
    check_method(request.method())?;
    let stream = connect(forwarding.endpoint, forwarding.limits.connect).await?;
    over(stream, request, target, forwarding, held).await
}

/// `TRACE` shows secrets to scripts, and `CONNECT` leads elsewhere.
pub(crate) fn check_method(method: &Method) -> Result<(), ForwardError> {
    if matches!(*method, Method::TRACE | Method::CONNECT) { Err(ForwardError::Method(method.clone())) } else { Ok(()) }
}

/// Passes a request on over this connection.
pub(crate) async fn over(
    stream: Box<dyn Connection>,
    request: Request<RequestBody>,
    target: PathAndQuery,
    forwarding: Forwarding<'_>,
    held: Held,
) -> Result<Response<Answer>, ForwardError> {
    let Forwarding { endpoint, mount, client, session_key, limits, stop } = forwarding;
    let mount = mount.seen_through(request.headers());
    let own = own_names(request.headers(), endpoint);
    let (mut request, mut waiting, progress) = prepare(request, target, &mount, client);
    if let Some(key) = session_key {
        request.headers_mut().insert(SESSION_KEY_HEADER, key);
    }

    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(ForwardError::NoAnswer)?;
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a service ended with an error");
        }
    }));
    let mut response = tokio::select! {
        biased;
        answered = sender.send_request(request) => answered.map_err(ForwardError::NoAnswer)?,
        error = progress.stalled(limits.head) => return Err(error),
    };

    let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    headers::outward(response.headers_mut(), &mount, &own, is_upgraded);
    if !is_upgraded {
        return Ok(response.map(|body: Incoming| Answer::passed(body, connection, held)));
    }
    let client = waiting.take().ok_or(ForwardError::UnaskedUpgrade)?;
    let service = hyper::upgrade::on(&mut response);
    // It owns itself from here on, and ends with either side or with `stop`.
    let tunnel = tunnel::run(client, service, limits.half_closed, stop.clone(), Box::new((connection, held)));
    drop(tokio::spawn(tunnel));
    Ok(response.map(|_| Answer::made("")))
}

/// The request as the service gets it, and the client's side of an upgrade that it asks for.
fn prepare(
    mut request: Request<RequestBody>,
    target: PathAndQuery,
    mount: &Mount,
    client: Option<IpAddr>,
) -> (Request<Watched>, Option<OnUpgrade>, Arc<Progress>) {
    let waiting = headers::upgrade(request.headers()).map(|_| hyper::upgrade::on(&mut request));
    let progress = Progress::new();
    let (parts, body) = request.into_parts();
    let mut passed = Request::new(Watched::new(body, Arc::clone(&progress)));
    *passed.method_mut() = parts.method;
    *passed.uri_mut() = Uri::from(target);
    *passed.version_mut() = Version::HTTP_11;
    *passed.headers_mut() = parts.headers;
    headers::inward(passed.headers_mut(), mount, client);
    if passed.body().size_hint().exact().is_none() {
        passed.headers_mut().remove(CONTENT_LENGTH);
    }
    (passed, waiting, progress)
}

/// Names that a service may have for itself in a `Location`.
fn own_names(request: &HeaderMap, endpoint: &Endpoint) -> Vec<String> {
    let host = request.get(HOST).and_then(|host| host.to_str().ok());
    let mut names: Vec<String> =
        [host, headers::public_host(request)].into_iter().flatten().map(str::to_owned).collect();
    match endpoint {
        Endpoint::Port(port) => names.extend(["127.0.0.1", "localhost", "0.0.0.0"].map(|it| format!("{it}:{port}"))),
        Endpoint::Socket(_) => names.push("localhost".to_owned()),
    }
    names
}
