//! Any port of a program in the sandbox, under `/v1/ports/PORT/`: also one that nobody publishes, or that listens on the loopback
//! address alone.
//!
//! It is for whoever has the session's key, who could ask the port by a command as well: gateways give programs addresses of
//! their own by it. What is asked for beneath the path is passed on as it is, WebSockets too, and without the key. Where that is in a header of its own
//! (`X-Gloveport-Port-Key`), the program may be a server with a key like this one, which it gets. So is the answer: a
//! program that names its own paths names those of the address that a gateway has given it, and not these.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::Response,
};
use gloveport_plugin::Endpoint;
use gloveport_protocol::{PORT_HEADER, PORT_KEY_HEADER, SESSION_KEY_HEADER};
use gloveport_proxy::{ForwardError, Forwarding, Mount, ProxyLimits, answer::request_body, forward};
use http::{HeaderValue, StatusCode};

use crate::{
    answer::{self, OfProgram},
    app::App,
    auth::PORTS,
};

/// The paths, for every method.
pub(crate) const PATHS: [&str; 3] = ["/v1/ports/{port}", "/v1/ports/{port}/", "/v1/ports/{port}/{*rest}"];

/// Any request of one of these paths.
pub(crate) async fn serve(
    State(app): State<Arc<App>>,
    Path(parameters): Path<BTreeMap<String, String>>,
    mut request: Request,
) -> Response {
    let named = parameters.get("port").map(String::as_str).unwrap_or_default();
    let port = named.parse::<u16>().ok().filter(|port| *port != 0 && port.to_string() == named);
    let target = port.and_then(|port| Mount::new(&format!("{PORTS}{port}"), "").inward(request.uri()));
    let (Some(port), Some(target)) = (port, target) else {
        let message = format!("{named:?} is no number of a port");
        return answer::native(StatusCode::BAD_REQUEST, "invalid", message, "ask for /v1/ports/PORT/PATH");
    };
    let is_for_port = request.headers_mut().remove(PORT_KEY_HEADER).is_some();
    let session_key = request.headers().get(SESSION_KEY_HEADER).filter(|_| is_for_port).cloned();
    let forwarding = Forwarding {
        endpoint: &Endpoint::Port(port),
        mount: &Mount::new("", ""),
        client: None,
        session_key,
        limits: &ProxyLimits::default(),
        stop: &app.stop,
    };
    match forward(request.map(request_body), target, forwarding, Box::new(())).await {
        Ok(passed) => {
            let mut passed = passed.map(Body::new);
            passed.extensions_mut().insert(OfProgram);
            passed
        }
        Err(error) => {
            let (code, hint) = match &error {
                ForwardError::Unreachable { .. } => {
                    ("port_not_open", "start a program that listens on 127.0.0.1 or on all addresses")
                }
                _ => ("port_failed", "look into the log of the program"),
            };
            let mut refusal = answer::native(error.status(), code, error.to_string(), hint);
            if matches!(error, ForwardError::Unreachable { .. }) {
                refusal.headers_mut().insert(PORT_HEADER, HeaderValue::from_static("closed"));
            }
            refusal
        }
    }
}
