//! Headers on their way through: what is for the gate alone ends there.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version,
    header::{
        CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
        UPGRADE, VIA,
    },
    uri::Scheme,
};

use crate::refusal::Refusal;
use gloveport_allow_list::{Host, Target};

/// Port of URLs without one.
const HTTP_PORT: u16 = 80;

/// Whom a request is for. All that it says about that must agree.
pub(crate) fn target_of<B>(request: &Request<B>) -> Result<Target, Refusal> {
    let uri = request.uri();
    let connect = request.method() == Method::CONNECT;
    let target = match (uri.scheme(), uri.authority()) {
        (None, Some(authority)) if connect => Target::parse(authority.as_str(), None),
        (Some(scheme), Some(authority)) if !connect && *scheme == Scheme::HTTP => {
            Target::parse(authority.as_str(), Some(HTTP_PORT))
        }
        _ => return Err(Refusal::Request(wrong_form(uri, connect))),
    }
    .map_err(Refusal::Target)?;
    check_host(request, &target, connect)?;
    Ok(target)
}

fn wrong_form(uri: &Uri, connect: bool) -> &'static str {
    match uri.scheme() {
        _ if connect => "CONNECT needs a host and a port (`CONNECT host:443`)",
        Some(scheme) if *scheme == Scheme::HTTPS => "https goes through a tunnel; use CONNECT",
        Some(_) => "only http can be asked for; anything else goes through a tunnel (CONNECT)",
        None => "this is a proxy; ask for a whole URL (`GET http://host/path`) or a tunnel (`CONNECT host:443`)",
    }
}

/// There is one `Host`, and it is the target.
fn check_host<B>(request: &Request<B>, target: &Target, connect: bool) -> Result<(), Refusal> {
    let Some(host) = one_host(request.headers())? else {
        // Before HTTP/1.1 there was none.
        return match request.version() {
            Version::HTTP_11 => Err(Refusal::Request("the request has no Host header")),
            _ => Ok(()),
        };
    };
    // Some programs leave out the port there in every case.
    let default = if connect { target.port } else { HTTP_PORT };
    match Target::parse(host, Some(default)) {
        Ok(named) if named == *target => Ok(()),
        Ok(_) => Err(Refusal::Request("the Host header names another host than the target of the request")),
        Err(error) => Err(Refusal::Target(error)),
    }
}

/// The `Host` of a request, of which there is at most one.
pub(crate) fn one_host(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else { return Ok(None) };
    if hosts.next().is_some() {
        return Err(Refusal::Request("the request has more than one Host header"));
    }
    host.to_str().map(Some).map_err(|_| Refusal::Request("the Host header is not text"))
}

/// Makes a request to the proxy one to the target.
pub(crate) fn to_target<B>(request: &mut Request<B>, target: &Target) -> Result<(), Refusal> {
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    *request.uri_mut() = path.parse().map_err(|_| Refusal::Request("the path of the URL cannot be used"))?;
    *request.version_mut() = Version::HTTP_11;
    drop_hop_by_hop(request.headers_mut());
    let host = match &target.host {
        host if target.port == HTTP_PORT => host.to_string(),
        Host::Name(_) | Host::Address(_) => target.to_string(),
    };
    let host = HeaderValue::from_str(&host).map_err(|_| Refusal::Request("the host cannot be used"))?;
    request.headers_mut().insert(HOST, host);
    request.headers_mut().append(VIA, HeaderValue::from_static("1.1 gloveport"));
    Ok(())
}

/// Drops what is meant for one connection, and what says which trailers follow.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    drop_connection_headers(headers);
    headers.remove(TRAILER);
}

/// Drops what is meant for one connection (RFC 9110, 7.6.1), and what `Connection` says is.
pub(crate) fn drop_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // These are not, whoever says so. A coding in pieces is made anew by what sends it, under the same header.
        .filter(|name| ![CONTENT_LENGTH, TRANSFER_ENCODING, HOST].contains(name))
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}
