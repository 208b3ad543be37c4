//! The face of Modal (`spec/hosted-apis.md` 5): gRPC over HTTP/2 without TLS, and its store of blobs on the same port.
//!
//! Ports of sandboxes are reached at this machine's own, as the machine of all is one.
//!
//! | module | idea |
//! |---|---|
//! | `proto`, `grpc` | messages by the numbers of their fields, and answers in frames |
//! | `state` | what the service has, and what it is asked |
//! | `sandboxes` | sandboxes: made, told, ended |
//! | `life` | how they start, and what time does to them |
//! | `router` | programs in them, and their output |
//! | `stored` | apps, images, mounts, blobs |

mod grpc;
mod life;
mod proto;
mod router;
mod sandboxes;
mod state;
mod stored;

use axum::{
    body::Bytes,
    http::{HeaderMap, Method, request::Parts},
    response::Response,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use grpc::{refused, told};
use proto::{Message, unframed};
use state::{Call, is_good, token};
pub use state::{Modal, More};

use crate::{Asked, Face, Route, Shared, World, answers, lock};

/// Where the calls of the service are.
const SERVICE: &str = "/modal.client.ModalClient/";
/// Where those of the router of a sandbox are.
const ROUTER: &str = "/modal.task_command_router.TaskCommandRouter/";
impl Modal {
    /// The id of the token that it takes.
    pub const TOKEN_ID: &'static str = "ak-of-the-stand-in";
}

impl Face for Modal {
    type More = More;
    const NAME: &'static str = "modal";
    const KEY: &'static str = "as-of-the-stand-in";

    fn variables(url: &str) -> Vec<(&'static str, String)> {
        vec![
            ("MODAL_SERVER_URL", url.to_owned()),
            ("MODAL_TOKEN_ID", Self::TOKEN_ID.to_owned()),
            ("MODAL_TOKEN_SECRET", Self::KEY.to_owned()),
        ]
    }

    fn route(_world: &mut World<Self>, _parts: &Parts) -> Route {
        Route::Face
    }

    fn turn(world: &mut World<Self>) {
        life::turn(world);
    }

    fn more(more: &More) -> Value {
        let result = more.result.as_ref().map(|(status, code, _)| json!({"status": status, "exitcode": code}));
        json!({
            "app": more.app, "name": more.name, "environment": more.environment, "definition": more.definition.told(),
            "result": result,
        })
    }

    fn kept(&self) -> Value {
        let apps: Vec<_> = self.apps.iter().map(|((environment, name), id)| json!([environment, name, id])).collect();
        let images: Vec<_> = self.images.iter().map(|(id, image)| json!([id, image.commands])).collect();
        let mounts: Vec<_> = self.mounts.iter().map(|(id, files)| json!([id, files])).collect();
        let secrets: Vec<_> = self.secrets.iter().map(|(id, pairs)| json!([id, pairs])).collect();
        json!({"apps": apps, "images": images, "mounts": mounts, "secrets": secrets})
    }

    fn answer(world: Shared<Self>, asked: Asked) -> BoxFuture<'static, Response> {
        Box::pin(answer(world, asked))
    }

    /// The numbers up to 16 are those of gRPC.
    fn refusal(status: u16, message: &str) -> Response {
        if status <= 16 { refused(status, message) } else { answers::refusal(status, message) }
    }

    /// The fields by number, and the names of the metadata.
    fn read(parts: &Parts, body: &Bytes) -> Value {
        if !is_call(parts.uri.path()) {
            return Value::Null;
        }
        let mut names: Vec<&str> = parts.headers.keys().map(axum::http::HeaderName::as_str).collect();
        names.sort_unstable();
        let messages: Vec<Value> = unframed(body).unwrap_or_default().iter().map(Message::told).collect();
        json!({"metadata": names, "messages": messages})
    }
}

fn is_call(path: &str) -> bool {
    path.starts_with(SERVICE) || path.starts_with(ROUTER)
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn answer(world: Shared<Modal>, asked: Asked) -> Response {
    let Asked { parts, body } = asked;
    let path = parts.uri.path();
    if let (&Method::PUT, Some(id)) = (&parts.method, path.strip_prefix("/blobs/")) {
        return stored::upload(&world, id, &parts.headers, &body);
    }
    if !is_call(path) || parts.method != Method::POST {
        return answers::refusal(404, "no such path");
    }
    if !header(&parts.headers, "content-type").starts_with("application/grpc")
        || header(&parts.headers, "te") != "trailers"
    {
        return answers::refusal(415, "this is no call of gRPC");
    }
    let Some(messages) = unframed(&body) else { return refused(13, "the message is broken") };
    let of = |prefix| path.strip_prefix(prefix).map(str::to_owned);
    let key = header(&parts.headers, "x-idempotency-key");
    if let Some(method) = of(ROUTER) {
        let bearer = header(&parts.headers, "authorization");
        if !bearer.strip_prefix("Bearer ").is_some_and(|token| is_good(&lock(&world), token)) {
            return refused(16, "the token of the router is not good");
        }
        return router::answer(Call { world, method, messages, key }).await;
    }
    let given = (header(&parts.headers, "x-modal-token-id"), header(&parts.headers, "x-modal-token-secret"));
    if given != (Modal::TOKEN_ID.to_owned(), Modal::KEY.to_owned()) {
        return refused(16, "Token ID is malformed");
    }
    if header(&parts.headers, "x-modal-client-version").is_empty()
        || header(&parts.headers, "x-modal-client-type").is_empty()
    {
        return refused(9, "The client version is missing");
    }
    let method = of(SERVICE).unwrap_or_default();
    if method.starts_with("Sandbox")
        && method.ends_with("V2")
        && !is_good(&lock(&world), &header(&parts.headers, "x-modal-auth-token"))
    {
        return refused(16, "x-modal-auth-token is missing or has expired");
    }
    // What is made for one call is made once.
    if let Some(made) = lock(&world).face.wishes.get(&key).filter(|_| !key.is_empty()).cloned() {
        return told(&made);
    }
    let call = Call { world, method, messages, key };
    match call.method.as_str() {
        "ClientHello" => grpc::done(),
        "AuthTokenGet" => {
            let token = token(&mut lock(&call.world), "client");
            told(&Message::default().with(1, &token))
        }
        method if method.starts_with("Sandbox") || method == "AppFetchLogs" => sandboxes::answer(&call).await,
        _ => stored::answer(&call),
    }
}
