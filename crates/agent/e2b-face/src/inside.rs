//! Requests for sandboxes: whose, with which token, for which port (`hosted-apis` 2.1 and 2.3).

use std::sync::Arc;

use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use gloveport_provider::SandboxId;
use http::StatusCode;

use crate::{
    Refusal, agent,
    headers::{AGENT_TOKEN, ID_HEADER, PORT_HEADER, TRAFFIC_TOKEN, may, text},
    interpreter,
    place::gone,
    shared::Shared,
    token::Purpose,
};

/// The port of the agent.
const AGENT: u16 = 49_983;
/// The port of the code interpreter.
const INTERPRETER: u16 = 49_999;

/// Answers a request that names a sandbox.
pub(crate) async fn answer(shared: &Arc<Shared>, request: Request) -> Response {
    match answered(shared, request).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answered(shared: &Arc<Shared>, mut request: Request) -> Result<Response, Refusal> {
    let id = text(request.headers(), &ID_HEADER).and_then(|id| SandboxId::new(id).ok()).ok_or_else(gone)?;
    let port = match text(request.headers(), &PORT_HEADER) {
        None => AGENT,
        Some(text) => text
            .parse::<u16>()
            .map_err(|_| Refusal::wrong("the header E2b-Sandbox-Port must be the number of a port"))?,
    };
    let place = shared.places.get(&*shared.host, &id).await?;
    match port {
        AGENT => agent::answer(shared, place, request).await,
        INTERPRETER => {
            let headers = request.headers();
            let is_known =
                may(&place.sandbox, Purpose::Agent, headers) || may(&place.sandbox, Purpose::Traffic, headers);
            if !is_known {
                let message = "the header X-Access-Token or E2B-Traffic-Access-Token is missing or wrong; the answer to the \
                    creation of the sandbox has both tokens";
                return Err(Refusal::new(StatusCode::FORBIDDEN, message));
            }
            interpreter::answer(shared, place, request).await
        }
        port => {
            let named = place.sandbox.ports.iter().find(|(_, number)| **number == port).map(|(name, _)| name.clone());
            let name = named.filter(|name| place.sandbox.urls.contains_key(name)).ok_or_else(|| {
                Refusal::new(StatusCode::BAD_GATEWAY, format!("The sandbox is running but port is not open: {port}"))
            })?;
            for header in [ID_HEADER, PORT_HEADER, AGENT_TOKEN, TRAFFIC_TOKEN] {
                request.headers_mut().remove(header);
            }
            Ok(shared.host.pass(id, name, request).await)
        }
    }
}
