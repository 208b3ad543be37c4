//! Requests for sandboxes: whose, with which token, for which port (`hosted-apis` 2.1 and 2.3).

use std::sync::Arc;

use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use gloveport_protocol::{PORT_KEY_HEADER, Secret};
use gloveport_provider::SandboxId;
use http::{HeaderValue, StatusCode, Uri, uri::PathAndQuery};

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
            let knows = may(&place.sandbox, Purpose::Agent, request.headers())
                || may(&place.sandbox, Purpose::Traffic, request.headers());
            for header in [ID_HEADER, PORT_HEADER, AGENT_TOKEN, TRAFFIC_TOKEN] {
                request.headers_mut().remove(header);
            }
            let named = place.sandbox.ports.iter().find(|(_, number)| **number == port).map(|(name, _)| name.clone());
            if let Some(name) = named.filter(|name| place.sandbox.urls.contains_key(name)) {
                return Ok(shared.host.pass(id, Some(name), request).await);
            }
            if !knows && !shared.host.has_own_ports() {
                let message = format!(
                    "The sandbox has no ports of its own, so {port} may be any program's of the machine; the header \
                     E2B-Traffic-Access-Token is missing or wrong, and the answer to the creation of the sandbox has it"
                );
                return Err(Refusal::new(StatusCode::FORBIDDEN, message));
            }
            through_server(place.sandbox.session_key.as_ref(), port, &mut request)?;
            let response = shared.host.pass(id, None, request).await;
            if response.headers().contains_key(gloveport_protocol::PORT_HEADER) {
                return Err(closed(port));
            }
            Ok(response)
        }
    }
}

/// Makes a request for a port one for the server of the sandbox, which passes it on.
fn through_server(key: Option<&Secret>, port: u16, request: &mut Request) -> Result<(), Refusal> {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    // The key of the sandbox goes with it, so nothing of its path may lead elsewhere.
    if !path.starts_with('/') || !stays_below(request.uri().path()) {
        let message = "a path must begin with a slash, and must not have `.` or `..` as a part, nor a backslash";
        return Err(Refusal::wrong(message));
    }
    let target = format!("/v1/ports/{port}{path}").parse::<Uri>();
    *request.uri_mut() = target.map_err(|_| Refusal::wrong("the path is no path of a URL"))?;
    // A client may not name another key for that. One of its program is passed on.
    request.headers_mut().remove(PORT_KEY_HEADER);
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(key.expose()).map_err(|_| closed(port))?;
        value.set_sensitive(true);
        request.headers_mut().insert(PORT_KEY_HEADER, value);
    }
    Ok(())
}

/// Whether a path names what is below the place that it is put to, whoever reads it.
fn stays_below(path: &str) -> bool {
    let is_dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    !path.contains('\\') && !path.split('/').any(is_dots)
}

fn closed(port: u16) -> Refusal {
    Refusal::new(StatusCode::BAD_GATEWAY, format!("The sandbox is running but port is not open: {port}"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use gloveport_protocol::SESSION_KEY_HEADER;

    use super::*;

    #[test]
    fn nothing_but_the_port_is_asked_for_with_the_key_of_the_sandbox() {
        let secret = Secret::new("the-key");
        let led = |uri: &str| {
            let mut request = Request::builder().uri(uri).body(Body::empty()).unwrap();
            request.headers_mut().insert(PORT_KEY_HEADER, HeaderValue::from_static("forged"));
            request.headers_mut().insert(SESSION_KEY_HEADER, HeaderValue::from_static("of the program"));
            through_server(Some(&secret), 3000, &mut request).ok()?;
            assert_eq!(request.headers().get_all(PORT_KEY_HEADER).iter().count(), 1);
            assert_eq!(request.headers()[PORT_KEY_HEADER], "the-key");
            assert_eq!(request.headers()[SESSION_KEY_HEADER], "of the program");
            Some(request.uri().to_string())
        };
        for (uri, expected) in [
            ("/", "/v1/ports/3000/"),
            ("/a/b?c=/../d", "/v1/ports/3000/a/b?c=/../d"),
            ("//other.test/x", "/v1/ports/3000//other.test/x"),
            ("/...", "/v1/ports/3000/..."),
            ("http://other.test/x", "/v1/ports/3000/x"),
        ] {
            assert_eq!(led(uri).as_deref(), Some(expected), "{uri}");
        }
        for uri in ["/..", "/../exec", "/a/./b", "/%2e%2E/exec", "/.%2e/exec", "/..\\exec", "/a\\..\\..\\exec", "*"] {
            assert_eq!(led(uri), None, "{uri}");
        }
    }
}
