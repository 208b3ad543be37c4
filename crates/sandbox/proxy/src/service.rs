//! The service of one plugin behind its admission: started by the first request, and used for as long as a request lasts.

use std::{net::IpAddr, sync::Arc, time::Duration};

use gloveport_plugin::{Lease, PluginError, PluginState, Service};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{CACHE_CONTROL, LOCATION, SET_COOKIE},
};
use http_body_util::Empty;
use hyper::body::Body as _;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    admission::{Admission, Trust, Turned},
    answer::{Answer, RequestBody, request_body},
    connect::{Connection, connect},
    error::ForwardError,
    forward::{Forwarding, check_method, over},
    headers,
    limits::ProxyLimits,
    mount::Mount,
    page::error_page,
};

/// Connections that are tried before one counts as refused.
const TRIES: usize = 3;
/// Time in which a supervisor sees that its program has ended.
const NOTICE: Duration = Duration::from_secs(1);

/// The service of one plugin, and who is let in to it.
#[derive(Debug, Clone)]
pub struct ServiceProxy {
    /// Name, for people.
    pub name: String,
    /// The service.
    pub service: Arc<Service>,
    /// The path that it is under.
    pub mount: Mount,
    /// Who is let in.
    pub admission: Admission,
    /// What is waited for.
    pub limits: ProxyLimits,
    /// Ends what was upgraded.
    pub stop: CancellationToken,
}

impl ServiceProxy {
    /// Answers a request of a client with this address, where it is known.
    pub async fn answer(
        &self,
        mut request: Request<RequestBody>,
        client: Option<IpAddr>,
        trust: Trust,
    ) -> Response<Answer> {
        let admitted = match self.admission.check(&mut request, &self.mount, trust) {
            Ok(admitted) => admitted,
            Err(Turned(response)) => return *response,
        };
        let mut response = self.pass(request, client).await;
        if let Some(cookie) = admitted.cookie {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }

    /// Passes on a request that was let in.
    async fn pass(&self, request: Request<RequestBody>, client: Option<IpAddr>) -> Response<Answer> {
        let Some(target) = self.mount.inward(request.uri()) else {
            let text = format!("{} is under {}/", self.name, self.mount.public());
            return error_page(StatusCode::NOT_FOUND, request.headers(), &text);
        };
        if !self.mount.public().is_empty() && request.uri().path() == self.mount.public() {
            return into_directory(request.uri().path(), request.uri().query());
        }
        let head = request.headers().clone();
        let answered = async {
            check_method(request.method())?;
            let mut again = copy(&request);
            let mut request = request;
            loop {
                let Reached { lease, stream, mut state } = self.reach().await?;
                let endpoint = lease.endpoint().clone();
                let Self { mount, limits, stop, .. } = self;
                let forwarding = Forwarding { endpoint: &endpoint, mount, client, session_key: None, limits, stop };
                let answered = over(stream, request, target.clone(), forwarding, Box::new(lease)).await;
                // A program that is being killed still accepts connections, and closes them.
                request = match (answered, again.take()) {
                    (Err(ForwardError::NoAnswer(error)), Some(copy)) if !error.is_parse() => {
                        if timeout(NOTICE, state.changed()).await.is_err() {
                            return Err(ForwardError::NoAnswer(error).into());
                        }
                        copy
                    }
                    (answered, _) => return Ok(answered?),
                };
            }
        };
        answered.await.unwrap_or_else(|error| self.excuse(&error, &head))
    }

    /// Uses the service, and connects to it. One that has just ended is not known to have until its supervisor sees it,
    /// so a refused connection waits for that.
    async fn reach(&self) -> Result<Reached, Obstacle> {
        let mut tries = 1;
        loop {
            let mut state = self.service.state();
            let lease = self.service.lease().await?;
            state.mark_unchanged();
            match connect(lease.endpoint(), self.limits.connect).await {
                Ok(stream) => return Ok(Reached { lease, stream, state }),
                Err(ForwardError::Unreachable { .. }) if tries < TRIES => {
                    tries += 1;
                    // Without a change the next try says what is wrong.
                    let _changed = timeout(NOTICE, state.changed()).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn excuse(&self, obstacle: &Obstacle, request: &HeaderMap) -> Response<Answer> {
        tracing::debug!(service = %self.name, error = %obstacle, "a request was not answered by its service");
        let name = &self.name;
        match obstacle {
            Obstacle::Start(error) => {
                let text = format!("{name} cannot be started: {error}");
                error_page(StatusCode::SERVICE_UNAVAILABLE, request, &text)
            }
            Obstacle::Forward(error) => {
                error_page(error.status(), request, &format!("{name} does not answer: {error}"))
            }
        }
    }
}

/// A service that is used, with a connection to it.
struct Reached {
    lease: Lease,
    stream: Box<dyn Connection>,
    /// Changes when the service ends.
    state: watch::Receiver<PluginState>,
}

/// The same request once more, if it may be sent twice: it changes nothing and has no body (RFC 9110, 9.2.2).
fn copy(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_safe || !request.body().is_end_stream() || headers::upgrade(request.headers()).is_some() {
        return None;
    }
    let mut copy = Request::new(request_body(Empty::new()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// Why there is no answer of the service.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Start(#[from] PluginError),
    #[error(transparent)]
    Forward(#[from] ForwardError),
}

/// Leads from the path without a `/` at its end to the one with it, from where relative references are right.
fn into_directory(path: &str, query: Option<&str>) -> Response<Answer> {
    let last = path.rsplit('/').next().unwrap_or_default();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(Answer::made(""));
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(location) = HeaderValue::try_from(format!("./{last}/{query}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
