//! Who may ask (`action-execution-api` 2.2).
//!
//! With a key: who shows it, and whoever asks whether the server is alive. Without one, a browser on this machine must
//! not be a way around the loopback address, so what counts is how a request came about ([`gloveport_proxy::origin`]):
//!
//! | a request | is |
//! |---|---|
//! | for `/alive` | answered |
//! | of a program, or of a person who opens an address, by a name of the server | answered |
//! | of a page, whichever it is | refused: the server has no pages that need it, and those of plugins have its origin |
//! | of a browser that does not say which page sent it | refused |
//! | by any other name ([`StrangeNames`](crate::StrangeNames)) | refused; of a program, as set |

use std::borrow::Cow;

use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gloveport_protocol::{PORT_KEY_HEADER, SESSION_KEY_HEADER};
use gloveport_proxy::{
    Trust,
    origin::{Asked, Cause, cause},
};
use http::{
    HeaderMap, Request, StatusCode,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
};

use crate::{
    answer,
    body::closing,
    options::{Deferred, ServerOptions, SessionKey, StrangeNames, Wire},
    swerex::face,
};

/// Beginning of the WebSocket protocol that carries the key in base64 for URLs, without padding.
const KEY_PROTOCOL: &str = "gloveport.key.";
/// The path that everybody may ask for.
const ALIVE: &str = "/alive";
/// The sandbox as an MCP server, and its MCP servers as one.
pub(crate) const COMPUTER: &str = "/mcp";
pub(crate) const PROXY: &str = "/mcp/proxy";
/// What the paths of ports of programs begin with. Their key may come in a header of its own.
pub(crate) const PORTS: &str = "/v1/ports/";
/// The paths whose key may come as `Authorization: Bearer`, which is all that most of their clients can send.
const BY_TOKEN: [&str; 2] = [COMPUTER, PROXY];
/// What carries the key of whoever brings the settings of a server that waits for them.
const INIT_KEY: &str = "x-init-api-key";
/// The path that needs no key where there is one.
const INFO: &str = "/server_info";

/// Refuses a request of somebody who may not ask.
pub(crate) fn check<B>(options: &ServerOptions, request: &Request<B>) -> Result<(), Box<Response>> {
    let path = request.uri().path();
    if path == ALIVE {
        return Ok(());
    }
    let reason = match trust(options, request) {
        Trust::Known => return Ok(()),
        // Callers of the reference ask for it without the key. They are programs.
        Trust::Stranger if path == INFO && is_of_nobodys_page(request) => return Ok(()),
        Trust::Stranger if options.wire == Wire::SweRex => return Err(Box::new(face::stranger(request.headers()))),
        Trust::Stranger => "Invalid API Key",
        Trust::Misnamed => {
            "The server has no key, so it is asked by its address, as localhost, or by a name that it was given \
             (--allow-host) only. Ask it so, or start it with a key and send that as X-Session-API-Key."
        }
        Trust::Open if is_of_nobodys_page(request) => return Ok(()),
        Trust::Open => match cause(request.method(), request.headers()) {
            Cause::OwnPage | Cause::ForeignPage(_) => {
                "A web page sent this request, which is refused because the server has no key. \
                 Start the server with a key and send it as X-Session-API-Key."
            }
            Cause::Program | Cause::Person | Cause::Untold => {
                "A browser that does not say which page sent this request is refused because the server has no key. \
                 Start the server with a key and send it as X-Session-API-Key."
            }
        },
    };
    let hint = "send the key of the server as X-Session-API-Key";
    Err(Box::new(answer::refusal(path, StatusCode::FORBIDDEN, "forbidden", reason, hint)))
}

/// Whether a program sent a request, or a person who opened an address.
fn is_of_nobodys_page<B>(request: &Request<B>) -> bool {
    matches!(cause(request.method(), request.headers()), Cause::Program | Cause::Person)
}

/// Refuses a request that names the server more than once, or not as HTTP/1.1 must: two readers would understand it
/// differently.
pub(crate) fn check_host<B>(options: &ServerOptions, request: &Request<B>) -> Result<(), Box<Response>> {
    match options.names.asked(request.uri(), request.version(), request.headers()) {
        Asked::Rightly | Asked::Strangely => Ok(()),
        Asked::Unclearly => {
            let text = "The request must have exactly one header Host, with a name or an address";
            let path = request.uri().path();
            let refusal = answer::refusal(path, StatusCode::BAD_REQUEST, "invalid_host", text, "name the server once");
            Err(Box::new(closing(refusal)))
        }
    }
}

/// Whether a request shows that whoever sent it may be here.
pub(crate) fn is_known<B>(options: &ServerOptions, request: &Request<B>) -> bool {
    match trust(options, request) {
        Trust::Known => true,
        Trust::Open => request.uri().path() != ALIVE && check(options, request).is_ok(),
        Trust::Stranger | Trust::Misnamed => false,
    }
}

/// What is known of who asks.
pub(crate) fn trust<B>(options: &ServerOptions, request: &Request<B>) -> Trust {
    let headers = request.headers();
    if let Wire::Deferred(Deferred { key: Some(key), .. }) = &options.wire {
        let shown = headers.get(INIT_KEY).is_some_and(|shown| key.matches(shown.as_bytes()));
        return if shown { Trust::Known } else { Trust::Stranger };
    }
    if let Some(key) = &options.session_key {
        let shown = match options.wire {
            Wire::OpenHands | Wire::Deferred(_) => shows(key, request.uri().path(), headers),
            Wire::AgentServer(_) => {
                headers.get(SESSION_KEY_HEADER).is_some_and(|shown| options.has_key(shown.as_bytes()))
            }
            Wire::SweRex => headers.get(face::KEY_HEADER).is_some_and(|shown| key.matches(shown.as_bytes())),
        };
        return if shown { Trust::Known } else { Trust::Stranger };
    }
    match (options.names.asked(request.uri(), request.version(), headers), options.strange_names) {
        (Asked::Rightly, _) => Trust::Open,
        (Asked::Strangely, StrangeNames::OfPrograms) if cause(request.method(), headers) == Cause::Program => {
            Trust::Open
        }
        (Asked::Strangely | Asked::Unclearly, _) => Trust::Misnamed,
    }
}

fn shows(key: &SessionKey, path: &str, headers: &HeaderMap) -> bool {
    let for_port = headers.get(PORT_KEY_HEADER).filter(|_| path.starts_with(PORTS));
    presented(headers).is_some_and(|presented| key.matches(&presented))
        || for_port.is_some_and(|value| key.matches(value.as_bytes()))
        || BY_TOKEN.contains(&path) && token(headers).is_some_and(|token| key.matches(token))
}

/// What a request carries as `Authorization: Bearer`.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

/// The key that a request carries: in the header, or, for a WebSocket of a browser, which can not set headers, among
/// the protocols that it offers. Never in a URL, which would get into logs and histories.
fn presented(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    if let Some(value) = headers.get(SESSION_KEY_HEADER) {
        return Some(value.as_bytes().into());
    }
    offered(headers, KEY_PROTOCOL).map(Cow::from)
}

/// The secret that a WebSocket offers among its protocols, behind this beginning.
pub(crate) fn offered(headers: &HeaderMap, beginning: &str) -> Option<Vec<u8>> {
    let is_websocket = headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offered = offers.flat_map(|value| value.split(',')).map(str::trim);
    let encoded = offered.find_map(|protocol| protocol.strip_prefix(beginning)).filter(|_| is_websocket)?;
    URL_SAFE_NO_PAD.decode(encoded).ok()
}

/// A secret as a WebSocket offers it.
pub(crate) fn encoded(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(secret)
}

#[cfg(test)]
mod tests {
    use gloveport_proxy::origin::Names;
    use http::header::HOST;

    use super::*;

    fn keyed(key: &str) -> ServerOptions {
        ServerOptions { session_key: Some(SessionKey::new(key)), ..ServerOptions::default() }
    }

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn only_two_paths_are_open_and_everything_else_needs_the_key() {
        for (path, presented, admitted) in [
            ("/alive", None, true),
            ("/server_info", None, true),
            ("/alive/", None, false),
            ("/Alive", None, false),
            ("//alive", None, false),
            ("/%61live", None, false),
            ("/ready", None, false),
            ("/execute_action", None, false),
            ("/execute_action", Some("x"), false),
            ("/execute_action", Some(""), false),
            ("/execute_action", Some("k"), true),
        ] {
            let headers: Vec<_> = presented.into_iter().map(|key| (SESSION_KEY_HEADER, key)).collect();
            assert_eq!(check(&keyed("k"), &request("GET", path, &headers)).is_ok(), admitted, "{path} {presented:?}");
        }
    }

    #[test]
    fn what_the_server_is_is_told_to_programs_and_not_to_pages() {
        for (headers, admitted) in [
            (vec![], true),
            (vec![("host", "box.example")], true),
            (vec![("sec-fetch-site", "same-origin")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("host", "evil.test"), ("accept-language", "en")], false),
            (vec![("origin", "http://evil.test")], false),
            (vec![("origin", "http://evil.test"), (SESSION_KEY_HEADER, "k")], true),
        ] {
            assert_eq!(check(&keyed("k"), &request("GET", "/server_info", &headers)).is_ok(), admitted, "{headers:?}");
        }
    }

    #[test]
    fn a_websocket_may_offer_the_key_as_a_protocol() {
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
            let mut headers = vec![(UPGRADE.as_str(), upgrade), (SEC_WEBSOCKET_PROTOCOL.as_str(), protocols)];
            headers.extend(header.map(|header| (SESSION_KEY_HEADER, header)));
            let asked = request("GET", "/v1/terminals/a/attach", &headers);
            assert_eq!(check(&keyed("k>?"), &asked).is_ok(), admitted, "{upgrade} {header:?} {protocols}");
        }
    }

    #[test]
    fn without_a_key_programs_and_persons_ask_and_pages_do_not() {
        let names = Names::new(&["box.example".to_owned()]).unwrap();
        let strict = ServerOptions { names, ..ServerOptions::default() };
        let lenient = ServerOptions { strange_names: StrangeNames::OfPrograms, ..ServerOptions::default() };
        let rebound = ("host", "evil.test:8000");
        let here = ("host", "127.0.0.1:8000");
        for (method, headers, by_strict, by_lenient) in [
            ("POST", vec![here], true, true),
            ("POST", vec![("host", "box.example")], true, true),
            ("POST", vec![("host", "host.docker.internal:3000")], false, true),
            ("GET", vec![here, ("sec-fetch-site", "none"), ("accept-language", "en")], true, true),
            ("GET", vec![here, ("accept-language", "en")], false, false),
            ("GET", vec![here, ("sec-fetch-site", "same-origin")], false, false),
            ("GET", vec![here, ("sec-fetch-site", "same-site")], false, false),
            ("GET", vec![here, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], false, false),
            ("POST", vec![here, ("origin", "http://127.0.0.1:8000")], false, false),
            ("POST", vec![here, ("origin", "http://127.0.0.1:9000")], false, false),
            ("POST", vec![here, ("origin", "https://example.org")], false, false),
            ("OPTIONS", vec![here, ("origin", "null")], false, false),
            // A name that was made to lead here: browsers do not say more than this to it.
            ("GET", vec![rebound, ("accept-language", "en")], false, false),
            ("GET", vec![rebound, ("accept-language", "*")], false, false),
            ("GET", vec![rebound, ("sec-fetch-site", "none")], false, false),
            ("POST", vec![rebound, ("origin", "http://evil.test:8000")], false, false),
            ("GET", vec![rebound, ("x-forwarded-host", "localhost"), ("accept-language", "en")], false, false),
        ] {
            for path in ["/execute_action", "/server_info", "/v1/files/content", "/docs", "/nowhere"] {
                let asked = request(method, path, &headers);
                assert_eq!(check(&strict, &asked).is_ok(), by_strict, "{method} {path} {headers:?}");
                assert_eq!(check(&lenient, &asked).is_ok(), by_lenient, "{method} {path} {headers:?}, for programs");
            }
            assert!(check(&strict, &request(method, "/alive", &headers)).is_ok(), "{method} {headers:?}");
        }
    }

    #[test]
    fn a_request_names_the_server_once() {
        let options = keyed("k");
        let twice = request("GET", "/alive", &[("host", "a"), ("host", "a")]);
        let absolute = request("GET", "http://user@a/alive", &[("host", "a")]);
        for (asked, fine) in [
            (request("GET", "/alive", &[("host", "anything.example:80")]), true),
            (request("GET", "http://a/alive", &[("host", "b")]), true),
            (request("GET", "/alive", &[]), false),
            (request("GET", "/alive", &[("host", "a b")]), false),
            (twice, false),
            (absolute, false),
        ] {
            assert_eq!(check_host(&options, &asked).is_ok(), fine, "{:?} {:?}", asked.uri(), asked.headers().get(HOST));
        }
    }
}
