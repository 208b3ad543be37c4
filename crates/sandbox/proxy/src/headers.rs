//! What of the head of a message is passed on, and what a proxy adds.

use std::net::IpAddr;

use gloveport_protocol::SESSION_KEY_HEADER;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CONNECTION, CONTENT_LOCATION, COOKIE, EXPECT, HOST, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
        SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE,
    },
};

use crate::mount::Mount;

/// Beginning of the names of cookies that let in somewhere. None of them is for a service.
pub(crate) const COOKIE_PREFIX: &str = "gloveport-";
/// Beginning of the WebSocket protocol that carries the key of the session.
const KEY_PROTOCOL: &str = "gloveport.key.";

/// What a service could say about the whole origin, or have a browser remember for it, where the server and all other
/// services are, too: how far a service worker reaches, what is to be forgotten, which protocol, certificate or other
/// server is used from now on, who is told of errors, what browsers add to requests, how pages share a process, and that
/// somebody is logged in.
const OF_THE_ORIGIN: [&str; 20] = [
    "accept-ch",
    "activate-storage-access",
    "alt-svc",
    "clear-site-data",
    "critical-ch",
    "expect-ct",
    "nel",
    "observe-browsing-topics",
    "origin-agent-cluster",
    "public-key-pins",
    "public-key-pins-report-only",
    "report-to",
    "reporting-endpoints",
    "sec-session-registration",
    "secure-session-registration",
    "service-worker-allowed",
    "set-login",
    "speculation-rules",
    "strict-transport-security",
    "use-as-dictionary",
];

/// Removes what is meant for the next station only.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}

/// The protocol that a message asks to change to, or says that it changes to.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let is_upgrade = values.flat_map(|value| value.split(',')).any(|name| name.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| is_upgrade).cloned()
}

fn set_upgrade(headers: &mut HeaderMap, protocol: Option<HeaderValue>) {
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// The name under which a client has reached the server, or the first proxy before it.
pub(crate) fn public_host(headers: &HeaderMap) -> Option<&str> {
    let forwarded = headers.get("x-forwarded-host").and_then(|value| value.to_str().ok());
    let first = forwarded.and_then(|value| value.split(',').next()).map(str::trim).filter(|host| !host.is_empty());
    first.or_else(|| headers.get(HOST).and_then(|value| value.to_str().ok()))
}

/// Whether the client speaks TLS to the first proxy before this one.
pub(crate) fn is_encrypted(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|value| value.as_bytes().starts_with(b"https"))
}

/// Makes the headers of a client's request those of a request to the service: without hops and secrets of this server,
/// with where it came from. `Host` and `Origin` stay, so a service that compares them finds pages of its own only.
pub(crate) fn inward(headers: &mut HeaderMap, mount: &Mount, client: Option<IpAddr>) {
    let protocol = upgrade(headers);
    remove_hop_by_hop(headers);
    // The one station that answers it is this one.
    headers.remove(EXPECT);
    headers.remove(SESSION_KEY_HEADER);
    filter_list(headers, &COOKIE, b';', COOKIE_PREFIX.as_bytes());
    filter_list(headers, &SEC_WEBSOCKET_PROTOCOL, b',', KEY_PROTOCOL.as_bytes());
    set_upgrade(headers, protocol);
    let host = public_host(headers).and_then(|host| HeaderValue::from_str(host).ok());
    let host = host.unwrap_or_else(|| HeaderValue::from_static("localhost"));
    headers.entry("x-forwarded-host").or_insert_with(|| host.clone());
    headers.entry(HOST).or_insert(host);
    headers.entry("x-forwarded-proto").or_insert(HeaderValue::from_static("http"));
    headers.remove("x-forwarded-prefix");
    if let Some(prefix) = mount.prefix_header() {
        headers.insert("x-forwarded-prefix", prefix);
    }
    if let Some(client) = client {
        let before = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok());
        let all = before.map_or_else(|| client.to_string(), |before| format!("{before}, {client}"));
        if let Ok(value) = HeaderValue::from_str(&all) {
            headers.insert("x-forwarded-for", value);
        }
    }
}

/// Removes those members of a list that begin with `unwanted`.
fn filter_list(headers: &mut HeaderMap, name: &HeaderName, separator: u8, unwanted: &[u8]) {
    if !headers.contains_key(name) {
        return;
    }
    let values: Vec<HeaderValue> = headers.get_all(name).iter().cloned().collect();
    headers.remove(name);
    for value in values {
        let members = value.as_bytes().split(|byte| *byte == separator).map(<[u8]>::trim_ascii);
        let kept: Vec<&[u8]> = members.filter(|it| !it.is_empty() && !it.starts_with(unwanted)).collect();
        if !kept.is_empty()
            && let Ok(value) = HeaderValue::from_bytes(&kept.join(&[separator, b' '][..]))
        {
            headers.append(name, value);
        }
    }
}

/// Makes the headers of a service's answer those of an answer to the client: without hops and what acts on more than the
/// mount, with references and cookies that lead back under it. `own` are the names that the service may have for itself.
pub(crate) fn outward(headers: &mut HeaderMap, mount: &Mount, own: &[String], is_upgraded: bool) {
    let protocol = upgrade(headers).filter(|_| is_upgraded);
    remove_hop_by_hop(headers);
    for name in OF_THE_ORIGIN {
        headers.remove(name);
    }
    set_upgrade(headers, protocol);
    for name in [LOCATION, CONTENT_LOCATION] {
        let value = headers.get(&name).and_then(|value| value.to_str().ok());
        let rewritten = value.and_then(|value| mount.reference(value, own));
        if let Some(value) = rewritten.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
    if headers.contains_key(SET_COOKIE) {
        let values: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
        headers.remove(SET_COOKIE);
        for value in values {
            let rewritten = match value.to_str() {
                Ok(text) if text.trim_start().starts_with(COOKIE_PREFIX) => continue,
                Ok(text) => HeaderValue::from_str(&mount.cookie(text)).unwrap_or(value),
                Err(_) => value,
            };
            headers.append(SET_COOKIE, rewritten);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    #[test]
    fn a_request_loses_its_hops_and_secrets_and_says_where_it_came_from() {
        let mut request = headers(&[
            ("host", "box.example:8000"),
            ("origin", "http://box.example:8000"),
            ("connection", "keep-alive, X-Private"),
            ("keep-alive", "timeout=5"),
            ("x-private", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "Basic eDp5"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("x-session-api-key", "secret"),
            ("cookie", "a=1; gloveport-files-12=secret; b=2"),
            ("sec-websocket-protocol", "chat, gloveport.key.c2VjcmV0"),
            ("x-forwarded-for", "10.0.0.1"),
            ("accept", "*/*"),
        ]);
        inward(&mut request, &Mount::new("/plugins/files", ""), Some("127.0.0.1".parse().unwrap()));
        let expected = [
            "accept: */*",
            "cookie: a=1; b=2",
            "host: box.example:8000",
            "origin: http://box.example:8000",
            "sec-websocket-protocol: chat",
            "x-forwarded-for: 10.0.0.1, 127.0.0.1",
            "x-forwarded-host: box.example:8000",
            "x-forwarded-prefix: /plugins/files",
            "x-forwarded-proto: http",
        ];
        assert_eq!(lines(&request), expected);
    }

    #[test]
    fn an_upgrade_is_passed_on_and_a_request_without_a_host_gets_one() {
        let mut request = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("cookie", "gloveport-a=1"),
            ("x-forwarded-prefix", "/made/up"),
            ("x-forwarded-proto", "https"),
        ]);
        inward(&mut request, &Mount::new("", ""), None);
        let expected = [
            "connection: upgrade",
            "host: localhost",
            "upgrade: websocket",
            "x-forwarded-host: localhost",
            "x-forwarded-proto: https",
        ];
        assert_eq!(lines(&request), expected);
    }

    #[test]
    fn an_answer_says_nothing_about_the_whole_origin() {
        let mut answer = headers(&[
            ("service-worker-allowed", "/"),
            ("clear-site-data", "\"*\""),
            ("strict-transport-security", "max-age=31536000"),
            ("alt-svc", "h3=\":443\""),
            ("report-to", "{}"),
            ("nel", "{}"),
            ("content-security-policy", "default-src 'self'"),
            ("access-control-allow-origin", "*"),
        ]);
        answer.append("clear-site-data", HeaderValue::from_static("\"storage\""));
        for name in OF_THE_ORIGIN {
            answer.append(name, HeaderValue::from_static("x"));
        }
        outward(&mut answer, &Mount::new("/plugins/files", ""), &[], false);
        // These are about the answer alone, whose path is the service's own.
        assert_eq!(lines(&answer), ["access-control-allow-origin: *", "content-security-policy: default-src 'self'"]);
    }

    #[test]
    fn an_answer_loses_its_hops_and_leads_back_under_the_mount() {
        let mut answer = headers(&[
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("location", "/x"),
            ("set-cookie", "a=b; Path=/"),
            ("content-type", "text/plain"),
        ]);
        answer.append(SET_COOKIE, HeaderValue::from_static("gloveport-files-12=stolen"));
        answer.append(SET_COOKIE, HeaderValue::from_static("c=d"));
        outward(&mut answer, &Mount::new("/plugins/files", ""), &[], false);
        let expected = [
            "content-type: text/plain",
            "location: /plugins/files/x",
            "set-cookie: a=b; Path=/plugins/files/",
            "set-cookie: c=d",
        ];
        assert_eq!(lines(&answer), expected);
    }
}
