//! The agent: files, processes, terminals (`hosted-apis` 2.3).

mod entries;
mod filesystem;
mod handle;
mod paths;
mod process;
mod target;
mod transfer;
mod user;
mod watch;

use std::sync::Arc;

use axum::{
    Json,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{Method, StatusCode};
use serde_json::json;

use self::handle::{Agent, unknown};
use crate::{Refusal, headers::may, linger::lingering, place::Place, shared::Shared, token::Purpose};

/// Answers a request for the agent of a sandbox.
pub(crate) async fn answer(shared: &Arc<Shared>, place: Arc<Place>, request: Request) -> Result<Response, Refusal> {
    let agent = Agent { shared: Arc::clone(shared), place };
    let request = request.map(lingering);
    let path = request.uri().path().to_owned();
    if path == "/health" {
        return agent.health().await;
    }
    let is_known = may(&agent.place.sandbox, Purpose::Agent, request.headers());
    if path == "/files" {
        return transfer::answer(&agent, request, is_known).await;
    }
    if !is_known {
        return Err(unknown());
    }
    if let Some(method) = path.strip_prefix("/process.Process/") {
        return Ok(process::answer(agent, method, request).await);
    }
    if let Some(method) = path.strip_prefix("/filesystem.Filesystem/") {
        return Ok(filesystem::answer(agent, method, request).await);
    }
    match (request.method(), path.as_str()) {
        (&Method::GET, "/envs") => Ok(Json(json!({})).into_response()),
        (&Method::POST, "/init") => Err(Refusal::new(StatusCode::FORBIDDEN, "the agent is set up by its gateway")),
        (method, path) => Err(Refusal::new(StatusCode::NOT_FOUND, format!("the agent has no {method} {path}"))),
    }
}
