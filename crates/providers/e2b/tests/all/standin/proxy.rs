//! The ports of programs in sandboxes, by routing headers.

use axum::{body::Body, http::request::Parts, response::Response};
use gloveport_client::{Certificates, Pool};

use super::{Shared, lock, refusal};

pub(super) async fn pass(world: &Shared, id: &str, port: u16, parts: Parts, body: Body) -> Response {
    let token = {
        let mut world = lock(world);
        world.turn();
        match world.sandboxes.get(id).filter(|sandbox| !sandbox.paused) {
            Some(sandbox) => sandbox.traffic_token.clone(),
            None => return refusal(502, "The sandbox was not found"),
        }
    };
    let shown = parts.headers.get("e2b-traffic-access-token").and_then(|token| token.to_str().ok());
    if token.is_some() && token.as_deref() != shown {
        return refusal(403, "traffic access token is missing or invalid");
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = parts.headers.clone();
    for name in ["e2b-sandbox-id", "e2b-sandbox-port", "e2b-traffic-access-token", "host"] {
        headers.remove(name);
    }
    let pool = Pool::new(Certificates::Checked).unwrap();
    let request = pool.http().request(parts.method, format!("http://127.0.0.1:{port}{path}")).headers(headers);
    match request.body(reqwest::Body::wrap_stream(body.into_data_stream())).send().await {
        Ok(answer) => {
            let mut passed = Response::builder().status(answer.status());
            for (name, value) in answer.headers() {
                passed = passed.header(name, value);
            }
            passed.body(Body::from_stream(answer.bytes_stream())).unwrap()
        }
        Err(_) => refusal(502, "The sandbox is running but port is not open"),
    }
}
