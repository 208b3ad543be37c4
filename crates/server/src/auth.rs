//! Who may ask (`action-execution-api` 2.2).

use std::borrow::Cow;

use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gloveport_protocol::SESSION_KEY_HEADER;
use http::{
    HeaderMap, StatusCode,
    header::{HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
};

use crate::{answer, options::SessionKey};

/// Beginning of the WebSocket protocol that carries the key in base64 for URLs, without padding.
const KEY_PROTOCOL: &str = "gloveport.key.";
/// Paths that everybody may ask for.
const OPEN: [&str; 2] = ["/alive", "/server_info"];

/// Refuses a request without the key. Without a key, what a web page of another origin sends is refused: a browser on
/// this machine must not be a way around the loopback address.
pub(crate) fn check(key: Option<&SessionKey>, path: &str, headers: &HeaderMap) -> Result<(), Box<Response>> {
    if OPEN.contains(&path) {
        return Ok(());
    }
    match key {
        Some(key) if presented(headers).is_some_and(|presented| key.matches(&presented)) => Ok(()),
        Some(_) => Err(Box::new(answer::detail(StatusCode::FORBIDDEN, "Invalid API Key"))),
        None if is_foreign(headers) => Err(Box::new(answer::detail(
            StatusCode::FORBIDDEN,
            "A web page of another origin sent this request, which is refused because the server has no key. \
             Start the server with a key and send it as X-Session-API-Key.",
        ))),
        None => Ok(()),
    }
}

/// The key that a request carries: in the header, or, for a WebSocket of a browser, which can not set headers, among
/// the protocols that it offers. Never in a URL, which would get into logs and histories.
fn presented(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    if let Some(value) = headers.get(SESSION_KEY_HEADER) {
        return Some(value.as_bytes().into());
    }
    let is_websocket = headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offered = offers.flat_map(|value| value.split(',')).map(str::trim);
    let encoded = offered.find_map(|protocol| protocol.strip_prefix(KEY_PROTOCOL)).filter(|_| is_websocket)?;
    URL_SAFE_NO_PAD.decode(encoded).ok().map(Cow::from)
}

/// Whether a browser says that a page of another origin sent the request.
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    authority.is_none() || authority != host
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_two_paths_are_open_and_everything_else_needs_the_key() {
        let key = SessionKey::new("k");
        for (path, presented, admitted) in [
            ("/alive", None, true),
            ("/server_info", None, true),
            ("/alive/", None, false),
            ("/Alive", None, false),
            ("/ready", None, false),
            ("/execute_action", None, false),
            ("/execute_action", Some("x"), false),
            ("/execute_action", Some(""), false),
            ("/execute_action", Some("k"), true),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(presented) = presented {
                headers.insert(SESSION_KEY_HEADER, HeaderValue::from_static(presented));
            }
            assert_eq!(check(Some(&key), path, &headers).is_ok(), admitted, "{path} {presented:?}");
        }
    }

    #[test]
    fn a_websocket_may_offer_the_key_as_a_protocol() {
        let key = SessionKey::new("k>?");
        for (upgrade, header, protocols, admitted) in [
            ("websocket", None, "gloveport.terminal.v1, gloveport.key.az4_", true),
            ("WebSocket", None, "gloveport.key.az4_", true),
            ("websocket", None, "gloveport.key.az4/", false),
            ("websocket", None, "gloveport.key.az4", false),
            ("websocket", None, "gloveport.key.", false),
            ("websocket", None, "az4_", false),
            ("websocket", Some("wrong"), "gloveport.key.az4_", false),
            ("websocket", Some("k>?"), "gloveport.key.eA", true),
            ("h2c", None, "gloveport.key.az4_", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
            if let Some(header) = header {
                headers.insert(SESSION_KEY_HEADER, HeaderValue::from_static(header));
            }
            let path = "/v1/terminals/a/attach";
            assert_eq!(check(Some(&key), path, &headers).is_ok(), admitted, "{upgrade} {header:?} {protocols}");
        }
    }

    #[test]
    fn without_a_key_pages_of_other_origins_are_refused() {
        for (origin, admitted) in [
            (None, true),
            (Some("http://127.0.0.1:8000"), true),
            (Some("http://127.0.0.1:9000"), false),
            (Some("https://example.org"), false),
            (Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8000"));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(check(None, "/execute_action", &headers).is_ok(), admitted, "{origin:?}");
        }
    }
}
