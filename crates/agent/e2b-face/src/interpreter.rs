//! The code interpreter: contexts are kernels of the sandbox, and results have all their forms (`hosted-apis` 2.3).

mod cell;
mod contexts;
mod handle;
mod results;

use std::sync::Arc;

use axum::{
    Json,
    body::{Bytes, to_bytes},
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::json;

use self::handle::Interpreter;
use crate::{Refusal, place::Place, shared::Shared};

/// Most bytes of a request.
const BODY: usize = 16 * 1024 * 1024;

/// Answers a request for the code interpreter of a sandbox.
pub(crate) async fn answer(shared: &Arc<Shared>, place: Arc<Place>, request: Request) -> Result<Response, Refusal> {
    let interpreter = Interpreter { shared: Arc::clone(shared), place };
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY).await.map_err(|_| {
        let message = format!("the request has more than {BODY} bytes, or broke off; put large data into files");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    })?;
    let path = parts.uri.path().trim_end_matches('/').to_owned();
    let words: Vec<&str> = path.split('/').skip(1).collect();
    match (&parts.method, words.as_slice()) {
        (&Method::GET, ["health"]) => Ok(Json(json!("OK")).into_response()),
        (&Method::POST, ["execute"]) => cell::execute(interpreter, read(&body)?).await,
        (&Method::GET, ["contexts"]) => interpreter.list().await,
        (&Method::POST, ["contexts"]) => interpreter.create(read(&body)?).await,
        (&Method::DELETE, ["contexts", id]) => interpreter.remove(id).await,
        (&Method::POST, ["contexts", id, "restart"]) => interpreter.restart(id).await,
        (method, _) => Err(Refusal::new(StatusCode::NOT_FOUND, format!("the code interpreter has no {method} {path}"))),
    }
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    // An array would be taken for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Refusal::wrong("the request must be a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| Refusal::wrong(format!("the request is not as it must be: {error}")))
}
