//! Who caused a request, as far as browsers tell, and by which name the server was asked.
//!
//! A server that only this machine reaches is still reached by every page that a browser on this machine shows. Two
//! things of a request tell such a page from a program:
//!
//! | what | says | and a page |
//! |---|---|---|
//! | `Origin` | which page sent it | cannot change or omit it where browsers send it: all but `GET` and `HEAD`, WebSockets, CORS |
//! | `Sec-Fetch-Site` | whether a page of this origin, of another one, or nobody's page caused it | cannot change or omit it; sent to `localhost`, to loopback addresses and over TLS |
//! | `Accept-Language` | that a browser sent it | may change, but not omit it |
//! | `Host` | the name that the page's address has | has no other one than its own: a name that was made to lead here (DNS rebinding) shows itself |
//!
//! Nothing else is believed, `Referer` least of all: a page chooses what is in it.

use std::net::{IpAddr, Ipv6Addr};

use http::{
    HeaderMap, HeaderName, Method, Uri, Version,
    header::{ACCEPT_LANGUAGE, HOST, ORIGIN, REFERER},
};

use crate::{
    headers::{is_encrypted, public_host},
    mount::Mount,
};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Who caused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A program: nothing in the head is of a browser.
    Program,
    /// A person, who typed the address or followed a link that is in no page.
    Person,
    /// A page of this origin.
    OwnPage,
    /// A page of another origin.
    ForeignPage(Opening),
    /// Somebody with a browser that does not say more: an old one, or one that reaches this server neither on its own
    /// machine nor over TLS.
    Untold,
}

/// What a page does with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// It opens a window, or leads its own window there.
    Window,
    /// It shows the answer within itself.
    Frame,
    /// Anything else.
    Nothing,
}

/// Who caused a request with this head.
pub fn cause(method: &Method, headers: &HeaderMap) -> Cause {
    if headers.contains_key(ORIGIN) {
        return if is_own_origin(headers) { Cause::OwnPage } else { Cause::ForeignPage(Opening::Nothing) };
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    match only(headers, &SITE) {
        Only::None if has_sign_of_browser(headers) => Cause::Untold,
        Only::None => Cause::Program,
        Only::One("none") if reads => Cause::Person,
        Only::One("same-origin") => Cause::OwnPage,
        _ if !reads || only(headers, &MODE) != Only::One("navigate") => Cause::ForeignPage(Opening::Nothing),
        _ if only(headers, &DEST) == Only::One("document") => Cause::ForeignPage(Opening::Window),
        _ => Cause::ForeignPage(Opening::Frame),
    }
}

/// The address of a path as a WebSocket of the client reaches it, through the proxies before this server. `None` if the
/// request names no host.
pub fn websocket_url(headers: &HeaderMap, path: &str) -> Option<String> {
    let host = public_host(headers)?;
    let scheme = if is_encrypted(headers) { "wss" } else { "ws" };
    Some(format!("{scheme}://{host}{}", Mount::new(path, "").seen_through(headers).public()))
}

/// The value of a header that there may be only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only<'a> {
    None,
    One(&'a str),
    /// Several, or one that is no text.
    Unclear,
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Only<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(http::HeaderValue::to_str), values.next()) {
        (None, _) => Only::None,
        (Some(Ok(text)), None) => Only::One(text),
        _ => Only::Unclear,
    }
}

fn is_own_origin(headers: &HeaderMap) -> bool {
    let Only::One(origin) = only(headers, &ORIGIN) else { return false };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    matches!((authority, public_host(headers)), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

/// Whether a browser sent this, whose user always has a language. So has the `fetch` of some programs, as `*`; on this
/// machine, where browsers say more, that is a program's.
fn has_sign_of_browser(headers: &HeaderMap) -> bool {
    const SIGNS: [HeaderName; 3] = [REFERER, HeaderName::from_static("service-worker"), DEST];
    let is_here = || match only(headers, &HOST) {
        Only::One(host) => is_loopback(name_of(host)),
        Only::None => true,
        Only::Unclear => false,
    };
    let has_language = match only(headers, &ACCEPT_LANGUAGE) {
        Only::None => false,
        Only::One("*") => !is_here(),
        Only::One(_) | Only::Unclear => true,
    };
    has_language || SIGNS.iter().any(|name| headers.contains_key(name))
}

/// How a request names this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// By an address, as `localhost`, by a name that it is known to have, or, as old programs do, by none.
    Rightly,
    /// By a name that anybody may have given to it.
    Strangely,
    /// By several names, or by one that is none.
    Unclearly,
}

/// The names, beside addresses and `localhost`, by which a server is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

/// Why a name is not one that a server can be asked by.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the name of a host; give it without scheme, port and path, for example box.example.org")]
pub struct NameError(String);

impl Names {
    /// These names.
    ///
    /// # Errors
    ///
    /// One of them has a scheme, a port or a path, or is no name at all.
    pub fn new(names: &[String]) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = |name: &&String| !name.is_empty() && name.len() <= 253 && name.bytes().all(plain);
        match names.iter().find(|name| !is_name(name)) {
            Some(wrong) => Err(NameError(wrong.clone())),
            None => Ok(Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())),
        }
    }

    /// How a request names this server, in `Host` and, if it is there, in its target.
    pub fn asked(&self, uri: &Uri, version: Version, headers: &HeaderMap) -> Asked {
        let host = match only(headers, &HOST) {
            // HTTP/1.1 requires it, and every browser sends it.
            Only::None if version < Version::HTTP_11 => None,
            Only::One(host) if is_authority(host) => Some(host),
            Only::None | Only::Unclear | Only::One(_) => return Asked::Unclearly,
        };
        let target = uri.authority().map(http::uri::Authority::as_str);
        if target.is_some_and(|target| !is_authority(target)) {
            return Asked::Unclearly;
        }
        let is_right = |name: &str| self.has(name_of(name));
        if host.into_iter().chain(target).all(is_right) { Asked::Rightly } else { Asked::Strangely }
    }

    fn has(&self, name: &str) -> bool {
        // No name system answers for an address, so nobody can make one lead elsewhere.
        is_loopback(name) || name.parse::<IpAddr>().is_ok() || self.0.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// A host with or without a port, and nothing beside it.
fn is_authority(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]%".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// The host in an authority.
fn name_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Whether a name means this machine wherever it is looked up. Names below `localhost` are left out: not every system
/// answers for them itself.
fn is_loopback(name: &str) -> bool {
    let is_mapped = |address: Ipv6Addr| address.to_ipv4_mapped().is_some_and(|address| address.is_loopback());
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || is_mapped(address),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_a_browser_says_tells_who_caused_a_request() {
        use Opening::{Frame, Nothing, Window};
        let get = Method::GET;
        for (method, lines, expected) in [
            (&get, &[][..], Cause::Program),
            (&Method::POST, &[], Cause::Program),
            // Programs whose library has the interface of a browser.
            (&get, &[("accept-language", "*"), ("sec-fetch-mode", "cors")], Cause::Program),
            (&get, &[("accept-language", "en")], Cause::Untold),
            (&get, &[("accept-language", "")], Cause::Untold),
            (&get, &[("accept-language", "*"), ("accept-language", "*")], Cause::Untold),
            (&get, &[("referer", "http://localhost:8000/plugins/a/")], Cause::Untold),
            (&get, &[("service-worker", "script")], Cause::Untold),
            (&get, &[("sec-fetch-site", "none"), ("accept-language", "en")], Cause::Person),
            (&Method::HEAD, &[("sec-fetch-site", "none")], Cause::Person),
            (&Method::POST, &[("sec-fetch-site", "none")], Cause::ForeignPage(Nothing)),
            (&get, &[("sec-fetch-site", "same-origin")], Cause::OwnPage),
            (&get, &[("sec-fetch-site", "None")], Cause::ForeignPage(Nothing)),
            (&get, &[("sec-fetch-site", "none"), ("sec-fetch-site", "none")], Cause::ForeignPage(Nothing)),
            (&get, &[("sec-fetch-site", "same-site")], Cause::ForeignPage(Nothing)),
            (&get, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], Cause::ForeignPage(Nothing)),
            (&get, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], Cause::ForeignPage(Frame)),
            (
                &get,
                &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")],
                Cause::ForeignPage(Window),
            ),
            (&get, &[("origin", "http://localhost:8000")], Cause::OwnPage),
            (&Method::POST, &[("origin", "http://LOCALHOST:8000")], Cause::OwnPage),
            (&get, &[("origin", "http://localhost:9000")], Cause::ForeignPage(Nothing)),
            (&get, &[("origin", "null")], Cause::ForeignPage(Nothing)),
            (&get, &[("origin", "")], Cause::ForeignPage(Nothing)),
            (
                &get,
                &[("origin", "http://localhost:8000"), ("origin", "http://evil.example")],
                Cause::ForeignPage(Nothing),
            ),
            (&get, &[("origin", "http://evil.example"), ("sec-fetch-site", "none")], Cause::ForeignPage(Nothing)),
        ] {
            let mut all = headers(lines);
            all.append(HOST, HeaderValue::from_static("localhost:8000"));
            assert_eq!(cause(method, &all), expected, "{method} {lines:?}");
        }
        let elsewhere = headers(&[("host", "10.0.0.5:8000"), ("accept-language", "*")]);
        assert_eq!(cause(&get, &elsewhere), Cause::Untold);
    }

    #[test]
    fn a_server_is_asked_by_an_address_as_localhost_or_by_a_name_that_it_was_given() {
        let names = Names::new(&["Box.example".to_owned()]).unwrap();
        for (host, expected) in [
            ("localhost", Asked::Rightly),
            ("LocalHost:8000", Asked::Rightly),
            ("127.0.0.1:8000", Asked::Rightly),
            ("127.9.9.9", Asked::Rightly),
            ("10.0.0.5:8000", Asked::Rightly),
            ("[::1]:8000", Asked::Rightly),
            ("[::1]", Asked::Rightly),
            ("box.EXAMPLE:8000", Asked::Rightly),
            ("box.example.evil.test", Asked::Strangely),
            ("evil.test:8000", Asked::Strangely),
            ("127.0.0.1.evil.test", Asked::Strangely),
            ("localhost.evil.test", Asked::Strangely),
            ("localhost.", Asked::Strangely),
            ("a.localhost", Asked::Strangely),
            ("2130706433", Asked::Strangely),
            ("0x7f000001", Asked::Strangely),
            ("127.1", Asked::Strangely),
            ("", Asked::Unclearly),
            ("localhost, evil.test", Asked::Unclearly),
            ("user@localhost", Asked::Unclearly),
            ("localhost/", Asked::Unclearly),
        ] {
            let asked = names.asked(&Uri::from_static("/x"), Version::HTTP_11, &headers(&[("host", host)]));
            assert_eq!(asked, expected, "{host:?}");
        }
        let plain = Uri::from_static("/x");
        let twice = headers(&[("host", "localhost"), ("host", "localhost")]);
        let here = headers(&[("host", "localhost")]);
        for (uri, version, headers, expected) in [
            (&plain, Version::HTTP_11, &twice, Asked::Unclearly),
            (&plain, Version::HTTP_11, &HeaderMap::new(), Asked::Unclearly),
            (&plain, Version::HTTP_10, &HeaderMap::new(), Asked::Rightly),
            (&Uri::from_static("http://evil.test/x"), Version::HTTP_11, &here, Asked::Strangely),
            (&Uri::from_static("http://127.0.0.1:8000/x"), Version::HTTP_11, &here, Asked::Rightly),
            (&Uri::from_static("http://a@127.0.0.1:8000/x"), Version::HTTP_11, &here, Asked::Unclearly),
        ] {
            assert_eq!(names.asked(uri, version, headers), expected, "{uri} {version:?} {headers:?}");
        }
    }

    #[test]
    fn names_have_no_scheme_port_or_path() {
        for name in ["http://box", "box:8000", "box/x", "*.box", "", "a b"] {
            assert!(Names::new(&[name.to_owned()]).is_err(), "{name:?}");
        }
        assert!(Names::new(&["box-1.example.org".to_owned(), "sandbox_1".to_owned()]).is_ok());
    }
}
