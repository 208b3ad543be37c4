//! The head of a request, between the version of HTTP that it came with and the one that it goes out with.

use http::{
    HeaderMap, HeaderValue, Method, Request, Uri, Version,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, SEC_WEBSOCKET_EXTENSIONS, TE, TRANSFER_ENCODING,
        UPGRADE,
    },
    request::Parts,
    uri::{PathAndQuery, Scheme},
};
use hyper::body::Body;

use super::config::HTTPS_PORT;
use crate::{
    headers::{drop_connection_headers, one_host},
    refusal::Refusal,
};
use gloveport_allow_list::Target;

/// The head of a request without what is meant for one connection.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    pub(crate) headers: HeaderMap,
    /// What the connection shall become, if anything.
    pub(crate) upgrade: Option<HeaderValue>,
    /// The client takes trailers.
    trailers: bool,
}

impl Head {
    /// Reads the head of a request for this target. All that it says about the target and its length must agree.
    pub(crate) fn of<B: Body>(parts: Parts, body: &B, target: &Target) -> Result<Self, Refusal> {
        let Parts { method, uri, version, mut headers, .. } = parts;
        if [Method::CONNECT, Method::TRACE].contains(&method) {
            return Err(Refusal::Method(method));
        }
        check_target(&uri, version, &headers, target)?;
        check_length(&mut headers, body)?;
        let upgrade = if version == Version::HTTP_11 { upgrade_of(&headers) } else { None };
        let trailers = has_token(&headers, &TE, "trailers");
        drop_connection_headers(&mut headers);
        for name in [HOST, TRANSFER_ENCODING, SEC_WEBSOCKET_EXTENSIONS] {
            headers.remove(name);
        }
        headers.remove("http2-settings");
        // What is compressed could not be looked through as it is.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Self { method, path: path_of(&uri)?, headers, upgrade, trailers })
    }

    /// The request for HTTP/1.1.
    pub(crate) fn http1<B: Body>(mut self, body: B, target: &Target) -> Result<Request<B>, Refusal> {
        let headers = &mut self.headers;
        join_cookies(headers)?;
        headers.insert(HOST, authority(target)?);
        // Without it, the body of a GET would be dropped.
        if body.size_hint().exact().is_none() && !headers.contains_key(CONTENT_LENGTH) {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        if let Some(upgrade) = self.upgrade.take() {
            headers.insert(UPGRADE, upgrade);
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        } else if self.trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        let uri = Uri::from(self.path.clone());
        Ok(self.request(uri, Version::HTTP_11, body))
    }

    /// The request for HTTP/2.
    pub(crate) fn http2<B: Body>(mut self, body: B, target: &Target) -> Result<Request<B>, Refusal> {
        if self.trailers {
            self.headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(authority(target)?.as_bytes())
            .path_and_query(self.path.clone())
            .build()
            .map_err(|_| Refusal::Request("the path of the URL cannot be used"))?;
        Ok(self.request(uri, Version::HTTP_2, body))
    }

    fn request<B>(self, uri: Uri, version: Version, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.version_mut() = version;
        *request.headers_mut() = self.headers;
        request
    }
}

/// What the request names is the target of the tunnel that it came through.
fn check_target(uri: &Uri, version: Version, headers: &HeaderMap, target: &Target) -> Result<(), Refusal> {
    if uri.scheme().is_some_and(|scheme| *scheme != Scheme::HTTPS) {
        return Err(Refusal::Request("only https can be asked for in a tunnel to this host"));
    }
    let host = one_host(headers)?;
    if host.is_none() && (version == Version::HTTP_11 || version == Version::HTTP_2 && uri.authority().is_none()) {
        return Err(Refusal::Request("the request has no Host header"));
    }
    for named in [uri.authority().map(http::uri::Authority::as_str), host].into_iter().flatten() {
        if Target::parse(named, Some(HTTPS_PORT)).map_err(Refusal::Target)? != *target {
            return Err(Refusal::Misdirected { target: target.clone() });
        }
    }
    Ok(())
}

/// There is one length, which is that of the body: two could be read as two requests behind the gate.
fn check_length<B: Body>(headers: &mut HeaderMap, body: &B) -> Result<(), Refusal> {
    let codings = headers.get_all(TRANSFER_ENCODING).iter();
    if codings.into_iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Err(Refusal::Request("the body of the request has a transfer coding other than chunked"));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next().cloned() else { return Ok(()) };
    let number = length.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(number) = number.and_then(|text| text.parse::<u64>().ok()) else {
        return Err(Refusal::Request("the content-length of the request is not a number"));
    };
    if lengths.any(|other| *other != length) {
        return Err(Refusal::Request("the request has more than one content-length"));
    }
    if headers.contains_key(TRANSFER_ENCODING) || body.is_end_stream() && number > 0 {
        return Err(Refusal::Request("the content-length of the request is not the length of its body"));
    }
    headers.insert(CONTENT_LENGTH, length);
    Ok(())
}

fn path_of(uri: &Uri) -> Result<PathAndQuery, Refusal> {
    match uri.path_and_query() {
        Some(path) if path.as_str().starts_with('/') || path == "*" => Ok(path.clone()),
        path => {
            let path = format!("/{}", path.map_or("", PathAndQuery::as_str));
            path.try_into().map_err(|_| Refusal::Request("the path of the URL cannot be used"))
        }
    }
}

/// What an HTTP/1.1 connection shall become. Other versions of HTTP are not for requests in tunnels to choose.
fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let upgrade = headers.get(UPGRADE).filter(|_| has_token(headers, &CONNECTION, "upgrade"))?;
    let text = upgrade.to_str().ok()?.to_ascii_lowercase();
    let http = text.split(',').any(|protocol| {
        let protocol = protocol.trim();
        protocol.starts_with("h2") || protocol.starts_with("http/") || protocol.starts_with("tls/")
    });
    (!http).then(|| upgrade.clone())
}

fn has_token(headers: &HeaderMap, name: &http::HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
}

/// HTTP/2 may split cookies over headers, which HTTP/1.1 may not (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) -> Result<(), Refusal> {
    let cookies: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() < 2 {
        return Ok(());
    }
    let sensitive = headers.get_all(COOKIE).iter().any(HeaderValue::is_sensitive);
    let joined = HeaderValue::from_bytes(&cookies.join(&b"; "[..]));
    let mut joined = joined.map_err(|_| Refusal::Request("the cookies cannot be used"))?;
    joined.set_sensitive(sensitive);
    headers.insert(COOKIE, joined);
    Ok(())
}

/// How a target is named in requests: port 443 is not.
fn authority(target: &Target) -> Result<HeaderValue, Refusal> {
    let text = if target.port == HTTPS_PORT { target.host.to_string() } else { target.to_string() };
    HeaderValue::try_from(text).map_err(|_| Refusal::Request("the host cannot be used"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body_util::{Empty, Full};

    fn head(request: http::request::Builder) -> Result<Head, String> {
        let (parts, body) = request.body(Full::new(Bytes::from_static(b"body"))).unwrap().into_parts();
        Head::of(parts, &body, &Target::parse("a.test:443", None).unwrap()).map_err(|refusal| refusal.to_string())
    }

    fn request(version: Version, uri: &str) -> http::request::Builder {
        Request::post(uri).version(version)
    }

    #[test]
    fn what_a_request_names_is_the_target() {
        for (version, uri, host, part) in [
            (Version::HTTP_11, "/", Some("A.test."), None),
            (Version::HTTP_11, "/", Some("a.test:443"), None),
            (Version::HTTP_11, "https://a.test/", Some("a.test"), None),
            (Version::HTTP_2, "https://a.test/", None, None),
            (Version::HTTP_10, "/", None, None),
            (Version::HTTP_11, "/", None, Some("no Host")),
            (Version::HTTP_2, "/", None, Some("no Host")),
            (Version::HTTP_11, "/", Some("b.test"), Some("another host")),
            (Version::HTTP_11, "/", Some("a.test:80"), Some("another host")),
            (Version::HTTP_11, "https://b.test/", Some("a.test"), Some("another host")),
            (Version::HTTP_2, "https://a.test/", Some("b.test"), Some("another host")),
            (Version::HTTP_2, "http://a.test/", None, Some("only https")),
            (Version::HTTP_2, "https://me@a.test/", None, Some("user name")),
        ] {
            let mut request = request(version, uri);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            match (head(request), part) {
                (Ok(_), None) => {}
                (Err(error), Some(part)) if error.contains(part) => {}
                (found, _) => panic!("{version:?} {uri} {host:?}: {:?}", found.err()),
            }
        }
    }

    #[test]
    fn a_request_has_one_length() {
        for headers in [
            vec![("content-length", "4"), ("content-length", "5")],
            vec![("content-length", "+4")],
            vec![("content-length", "4"), ("transfer-encoding", "chunked")],
            vec![("transfer-encoding", "gzip, chunked")],
        ] {
            let named = request(Version::HTTP_2, "https://a.test/");
            let named = headers.iter().fold(named, |named, (name, value)| named.header(*name, *value));
            assert!(head(named).is_err(), "{headers:?}");
        }
        let two =
            request(Version::HTTP_2, "https://a.test/").header("content-length", "4").header("content-length", "4");
        assert_eq!(head(two).unwrap().headers.get_all(CONTENT_LENGTH).iter().count(), 1);
        let (parts, body) = request(Version::HTTP_2, "https://a.test/")
            .header("content-length", "4")
            .body(Empty::<Bytes>::new())
            .unwrap()
            .into_parts();
        assert!(Head::of(parts, &body, &Target::parse("a.test:443", None).unwrap()).is_err());
    }

    #[test]
    fn heads_go_out_in_either_version() {
        let named =
            request(Version::HTTP_2, "https://a.test/p?q").header("te", "trailers").header("accept-encoding", "br");
        let named = named.header("cookie", "a=1").header("cookie", "b=2").header("content-length", "4");
        let head = head(named).unwrap();
        let target = Target::parse("a.test:443", None).unwrap();
        let shown = |request: Request<Empty<Bytes>>| {
            let mut lines: Vec<_> =
                request.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
            lines.sort();
            (request.uri().to_string(), lines.join("|"))
        };
        assert_eq!(
            shown(head.clone().http1(Empty::new(), &target).unwrap()),
            ("/p?q".to_owned(), r#"accept-encoding: "identity"|connection: "te"|content-length: "4"|cookie: "a=1; b=2"|host: "a.test"|te: "trailers""#.to_owned())
        );
        assert_eq!(
            shown(head.http2(Empty::new(), &target).unwrap()),
            (
                "https://a.test/p?q".to_owned(),
                r#"accept-encoding: "identity"|content-length: "4"|cookie: "a=1"|cookie: "b=2"|te: "trailers""#
                    .to_owned()
            )
        );
    }
}
