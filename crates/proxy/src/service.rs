//! The service of one plugin behind its gate: started by the first request, and used for as long as a request lasts.

use std::{net::IpAddr, sync::Arc};

use gloveport_plugin::Service;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{Answer, RequestBody},
    forward::{Forwarding, forward},
    gate::{Gate, Trust, Turned},
    limits::Limits,
    mount::Mount,
    page::error_page,
};

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
    pub gate: Gate,
    /// What is waited for.
    pub limits: Limits,
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
        if let Err(Turned(response)) = self.gate.check(&mut request, &self.mount, trust) {
            return *response;
        }
        let Some(target) = self.mount.inward(request.uri()) else {
            let text = format!("{} is under {}/", self.name, self.mount.public());
            return error_page(StatusCode::NOT_FOUND, request.headers(), &text);
        };
        if !self.mount.public().is_empty() && request.uri().path() == self.mount.public() {
            return into_directory(request.uri().path(), request.uri().query());
        }
        let head = request.headers().clone();
        let lease = match self.service.lease().await {
            Ok(lease) => lease,
            Err(error) => {
                let text = format!("{} cannot be started: {error}", self.name);
                return error_page(StatusCode::SERVICE_UNAVAILABLE, &head, &text);
            }
        };
        let endpoint = lease.endpoint().clone();
        let forwarding =
            Forwarding { endpoint: &endpoint, mount: &self.mount, client, limits: &self.limits, stop: &self.stop };
        forward(request, target, forwarding, Box::new(lease)).await.unwrap_or_else(|error| {
            tracing::debug!(service = %self.name, %error, "a request was not answered by its service");
            error_page(error.status(), &head, &format!("{} does not answer: {error}", self.name))
        })
    }
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
