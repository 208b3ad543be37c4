//! What of the head of a message is passed on, and what a gateway says of its own.

use std::{collections::BTreeMap, net::IpAddr};

use gloveport_protocol::Secret;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CONNECTION, COOKIE, EXPECT, HOST, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE,
        STRICT_TRANSPORT_SECURITY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

use crate::caller::SAID;

/// The header with the key of the gateway. It opens all sandboxes, so none of them sees it.
pub(crate) const API_KEY: &str = "x-api-key";

/// What is meant for the next station only.
const HOP: [HeaderName; 8] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, EXPECT];
/// What one sandbox could have browsers remember for all, as all have one origin.
const OF_THE_ORIGIN: [&str; 6] =
    ["alt-svc", "clear-site-data", "nel", "public-key-pins", "report-to", "reporting-endpoints"];
/// What a sandbox may have browsers remember where it has an origin of its own.
const WORKERS: &str = "service-worker-allowed";

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed.iter().chain(&HOP) {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}

/// Whether a message asks to become a WebSocket, or says that it is one.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let asks = values.flat_map(|value| value.split(',')).any(|name| name.trim().eq_ignore_ascii_case("upgrade"));
    asks && headers.get(UPGRADE).is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Cookies come in several lines over HTTP/2, and servers of HTTP/1.1 look for one (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if lines.len() > 1
        && let Ok(line) = HeaderValue::from_bytes(&lines.join(&b"; "[..]))
    {
        headers.insert(COOKIE, line);
    }
}

fn set_websocket(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

/// Makes the head of a request one for a sandbox.
pub(crate) fn inward(
    headers: &mut HeaderMap,
    prefix: &str,
    public: &str,
    client: Option<IpAddr>,
    own: &BTreeMap<String, Secret>,
) {
    let websocket = is_websocket(headers);
    remove_hop_by_hop(headers);
    join_cookies(headers);
    headers.remove(API_KEY);
    headers.remove(HOST);
    for name in SAID {
        headers.remove(name);
    }
    let (scheme, host) = public.split_once("://").unwrap_or(("http", public));
    let host = host.split('/').next().unwrap_or(host);
    let told = [
        ("x-forwarded-prefix", prefix.to_owned()),
        ("x-forwarded-host", host.to_owned()),
        ("x-forwarded-proto", scheme.to_owned()),
        ("x-forwarded-for", client.map(|client| client.to_string()).unwrap_or_default()),
    ];
    let own = own.iter().map(|(name, value)| (name.as_str(), value.expose().to_owned()));
    for (name, value) in told.into_iter().chain(own).filter(|(_, value)| !value.is_empty()) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.insert(name, value);
        }
    }
    if websocket {
        set_websocket(headers);
    }
}

/// Makes the head of an answer of a sandbox one for the client. `prefix` is the path under which clients find what
/// answered; it is empty where that has a host of its own.
pub(crate) fn outward(headers: &mut HeaderMap, prefix: &str, websocket: bool) {
    remove_hop_by_hop(headers);
    headers.remove(STRICT_TRANSPORT_SECURITY);
    for name in OF_THE_ORIGIN {
        headers.remove(name);
    }
    if !prefix.is_empty() {
        headers.remove(WORKERS);
    }
    if let Some(place) = headers.get(LOCATION).and_then(|place| place.to_str().ok()) {
        // `//host` is another host.
        let is_path = place.starts_with('/') && !place.starts_with("//");
        let is_prefixed =
            place.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        if is_path
            && !is_prefixed
            && let Ok(place) = HeaderValue::from_str(&format!("{prefix}{place}"))
        {
            headers.insert(LOCATION, place);
        }
    }
    let cookies: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().filter_map(|it| cookie(it, prefix)).collect();
    headers.remove(SET_COOKIE);
    for cookie in cookies {
        headers.append(SET_COOKIE, cookie);
    }
    if websocket {
        set_websocket(headers);
    }
}

/// A cookie for this prefix and this host alone; none of what is no text.
fn cookie(cookie: &HeaderValue, prefix: &str) -> Option<HeaderValue> {
    let text = cookie.to_str().ok()?;
    let mut path = None;
    let mut kept: Vec<&str> = Vec::new();
    for (at, part) in text.split(';').enumerate() {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name.trim() {
            name if at > 0 && !prefix.is_empty() && name.eq_ignore_ascii_case("path") => path = Some(value.trim()),
            name if at > 0 && name.eq_ignore_ascii_case("domain") => {}
            _ => kept.push(part),
        }
    }
    if prefix.is_empty() {
        return HeaderValue::from_str(&kept.join(";")).ok();
    }
    let inner = path.filter(|path| path.starts_with('/')).unwrap_or("/");
    let is_prefixed = inner.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = if is_prefixed { inner.to_owned() } else { format!("{prefix}{inner}") };
    HeaderValue::from_str(&format!("{}; Path={path}", kept.join(";"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut heads = HeaderMap::new();
        for (name, value) in pairs {
            heads.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        heads
    }

    fn shown(heads: &HeaderMap) -> Vec<String> {
        let mut all: Vec<String> =
            heads.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        all.sort();
        all
    }

    #[test]
    fn a_sandbox_sees_neither_the_key_of_the_gateway_nor_what_clients_say_of_where_they_come_from() {
        let mut sent = heads(&[
            ("host", "gateway:1"),
            ("x-api-key", "of all"),
            ("x-session-api-key", "of one"),
            ("connection", "x-mine, close"),
            ("x-mine", "1"),
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-prefix", "/evil"),
            ("x-real-ip", "6.6.6.6"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
            ("cookie", "a=b"),
            ("cookie", "c=d"),
        ]);
        let token = [("x-token".to_owned(), Secret::new("t"))].into();
        inward(&mut sent, "/id", "https://example.org/base", Some([10, 0, 0, 1].into()), &token);
        assert_eq!(
            shown(&sent),
            [
                "accept: */*",
                "cookie: a=b; c=d",
                "x-forwarded-for: 10.0.0.1",
                "x-forwarded-host: example.org",
                "x-forwarded-prefix: /id",
                "x-forwarded-proto: https",
                "x-session-api-key: of one",
                "x-token: t",
            ]
        );
        let mut socket = heads(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]);
        assert!(is_websocket(&socket));
        inward(&mut socket, "/id", "http://a", None, &BTreeMap::new());
        assert!(is_websocket(&socket) && !is_websocket(&sent));
    }

    #[test]
    fn answers_stay_beneath_the_path_of_their_sandbox() {
        let mut answer = heads(&[
            ("location", "/login"),
            ("set-cookie", "a=b; Path=/; Domain=example.org; Secure"),
            ("set-cookie", "c=d"),
            ("set-cookie", "e=f; path=/id/deep"),
            ("clear-site-data", "\"*\""),
            ("strict-transport-security", "max-age=1"),
            ("content-type", "text/plain"),
        ]);
        outward(&mut answer, "/id", false);
        assert_eq!(
            shown(&answer),
            [
                "content-type: text/plain",
                "location: /id/login",
                "set-cookie: a=b; Secure; Path=/id/",
                "set-cookie: c=d; Path=/id/",
                "set-cookie: e=f; Path=/id/deep",
            ]
        );
        // With a host of its own, a sandbox may do there what it likes, and nothing to the hosts beside it.
        let mut answer = heads(&[
            ("location", "/login"),
            ("set-cookie", "a=b; Path=/deep; domain=.example.org; Secure"),
            ("set-cookie", "c=d"),
            ("clear-site-data", "\"*\""),
            ("service-worker-allowed", "/"),
        ]);
        outward(&mut answer, "", false);
        assert_eq!(
            shown(&answer),
            ["location: /login", "service-worker-allowed: /", "set-cookie: a=b; Path=/deep; Secure", "set-cookie: c=d"]
        );
        for (sent, expected) in
            [("/id/a", "/id/a"), ("//host/a", "//host/a"), ("a", "a"), ("/identity", "/id/identity"), ("/", "/id/")]
        {
            let mut answer = heads(&[("location", sent)]);
            outward(&mut answer, "/id", false);
            assert_eq!(answer[LOCATION], expected);
        }
    }
}
