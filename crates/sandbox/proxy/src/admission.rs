//! Who is let in to a service.
//!
//! | a request | of this origin, or of no web page | of a page of another origin |
//! |---|---|---|
//! | with the right token, or the session's key, in its URL | passes without it; a `GET` is answered with the cookie and leads on | the same |
//! | of somebody who has shown the session's key | passes | passes |
//! | with a wrong token in its URL | refused | refused |
//! | with the cookie | passes | refused, unless it opens a page |
//! | with neither, at an open server, of a program | passes | – |
//! | with neither, at an open server, of a person who opens its address | passes, and is given the cookie | – |
//! | with neither, otherwise | refused | refused |
//!
//! An open server is one without a key, which everybody may use who asks it by a name that is its own
//! ([`Names`](crate::origin::Names)). All services and the server's interface have one origin, so a page of one service
//! could ask another one as if it were that one's own: it lacks the cookie as long as nobody has opened the other one.

use std::{borrow::Cow, fmt};

use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{CACHE_CONTROL, COOKIE, LOCATION, REFERRER_POLICY, SET_COOKIE},
    uri::PathAndQuery,
};
use percent_encoding::percent_decode_str;
use subtle::ConstantTimeEq as _;

use crate::{
    answer::Answer,
    headers::{COOKIE_PREFIX, is_encrypted, upgrade},
    mount::Mount,
    origin::{Cause, Opening, cause},
    page::error_page,
};

/// Parameter of a URL that carries the token.
const PARAMETER: &str = "tkn";

/// What is known of who asks, beside what the admission finds out itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// They have shown the key of the session in a header.
    Known,
    /// They have not.
    Stranger,
    /// They have not, and there is no key.
    Open,
    /// They have not, there is no key, and they asked for a name that is not known to be the server's.
    Misnamed,
}

/// Who is let in to one service.
#[derive(Clone)]
pub struct Admission {
    /// Name of the service, for people.
    name: String,
    token: Option<String>,
    /// Name of the cookie.
    cookie: String,
}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Admission").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request that is let in.
#[derive(Debug)]
pub struct Admitted {
    /// The cookie that the answer brings, as the value of `Set-Cookie`.
    pub cookie: Option<HeaderValue>,
}

/// Why a request goes no further.
#[derive(Debug)]
pub struct Turned(pub Box<http::Response<Answer>>);

impl Admission {
    /// An admission that the token opens; without one only the session's key does.
    pub fn new(name: &str, token: Option<String>) -> Self {
        let token = token.filter(|token| !token.is_empty());
        // Browsers share cookies among all ports of a host, and each may be another sandbox.
        let cookie = format!("{COOKIE_PREFIX}{name}-{:08x}", token.as_deref().map_or(0, digest));
        Self { name: name.to_owned(), token, cookie }
    }

    /// Lets a request in, without the token in its URL, or says what it is answered.
    pub fn check<B>(&self, request: &mut Request<B>, mount: &Mount, trust: Trust) -> Result<Admitted, Turned> {
        let (presented, rest) = without_token(request.uri());
        let refused = |text: &str| Err(Turned(Box::new(self.refusal(request.headers(), text))));
        let admitted = Ok(Admitted { cookie: None });
        match presented {
            Some(presented) if self.matches(&presented) => {
                let opens_page = request.method() == Method::GET && upgrade(request.headers()).is_none();
                if opens_page {
                    return Err(Turned(Box::new(self.welcome(request, mount, &rest))));
                }
                set_path_and_query(request, &rest);
                return admitted;
            }
            Some(_) if self.token.is_some() && trust == Trust::Stranger => {
                return refused("The token in the URL is wrong; there is another one after each start of the sandbox.");
            }
            Some(_) | None => {}
        }
        if trust == Trust::Known {
            return admitted;
        }
        let headers = request.headers();
        let cause = cause(request.method(), headers);
        if cause == Cause::ForeignPage(Opening::Nothing) {
            return refused("A web page of another origin sent this request.");
        }
        if cookies(headers, &self.cookie).any(|value| self.matches(value)) {
            return admitted;
        }
        match (trust, cause) {
            (Trust::Open, Cause::Program) => admitted,
            (Trust::Open, Cause::Person) => Ok(Admitted { cookie: self.cookie(headers, mount) }),
            (Trust::Open, Cause::OwnPage | Cause::ForeignPage(_)) => {
                refused("A web page sent this request, and the server has no key: open the address yourself.")
            }
            (Trust::Open, Cause::Untold) => refused(
                "The server has no key, and this browser does not say which page sent the request: it is old, or \
                 neither on the server's machine nor connected over TLS.",
            ),
            (Trust::Misnamed, _) => refused(
                "The server has no key, so it is reached by its address, as localhost, or by a name that it was given \
                 (--allow-host) only.",
            ),
            (_, Cause::ForeignPage(Opening::Frame)) => refused(
                "A web page of another site shows this one, and browsers keep the cookie back there; open it in a \
                 window of its own.",
            ),
            (Trust::Stranger | Trust::Known, _) => {
                refused("The URL must have a token when it is opened for the first time.")
            }
        }
    }

    /// The time that it takes tells nothing but the length.
    fn matches(&self, presented: &[u8]) -> bool {
        self.token.as_deref().is_some_and(|token| token.as_bytes().ct_eq(presented).into())
    }

    /// The cookie that lets a browser in, as the value of `Set-Cookie`; none without a token.
    fn cookie(&self, headers: &HeaderMap, mount: &Mount) -> Option<HeaderValue> {
        let token = self.token.as_deref()?;
        let path = format!("{}/", mount.seen_through(headers).public());
        let secure = if is_encrypted(headers) { "; Secure" } else { "" };
        // `Strict` would keep it back from the very page that a welcome leads to, when a link of another site led here.
        let cookie = format!("{}={token}; Path={path}; HttpOnly; SameSite=Lax{secure}", self.cookie);
        HeaderValue::try_from(cookie).ok()
    }

    /// Gives the cookie and leads to the same page without the token.
    fn welcome<B>(&self, request: &Request<B>, mount: &Mount, rest: &PathAndQuery) -> http::Response<Answer> {
        let mut response = http::Response::new(Answer::made(""));
        *response.status_mut() = StatusCode::SEE_OTHER;
        let headers = response.headers_mut();
        if let Some(cookie) = self.cookie(request.headers(), mount) {
            headers.insert(SET_COOKIE, cookie);
        }
        if let Ok(location) = HeaderValue::try_from(same_page(rest, mount)) {
            headers.insert(LOCATION, location);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }

    fn refusal(&self, headers: &HeaderMap, reason: &str) -> http::Response<Answer> {
        let remedy = if self.token.is_some() {
            "Open the URL that the sandbox gives for it, which ends in ?tkn= and the token, or send the session's key \
             as X-Session-API-Key."
        } else {
            "Send the session's key as X-Session-API-Key."
        };
        let text = format!("{} lets no one in without a proof. {reason} {remedy}", self.name);
        error_page(StatusCode::FORBIDDEN, headers, &text)
    }
}

/// A reference to the same page, relative to it where the client sees the path that is seen here.
fn same_page(rest: &PathAndQuery, mount: &Mount) -> String {
    let path = rest.path();
    if !mount.holds(path) {
        return format!("{}{rest}", mount.public());
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let slash = if path == mount.public() && !path.is_empty() { "/" } else { "" };
    let query = rest.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("./{last}{slash}{query}")
}

/// The token in a URL, and its path and query without it.
fn without_token(uri: &Uri) -> (Option<Cow<'_, [u8]>>, PathAndQuery) {
    let own = || uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let Some(query) = uri.query() else { return (None, own()) };
    let is_token = |part: &&str| part.split_once('=').is_some_and(|(name, _)| name == PARAMETER);
    let Some(part) = query.split('&').find(is_token) else { return (None, own()) };
    let value = part.split_once('=').map_or("", |(_, value)| value);
    let kept: Vec<&str> = query.split('&').filter(|part| !is_token(part)).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    let rest = PathAndQuery::try_from(format!("{}{query}", uri.path())).unwrap_or_else(|_| own());
    (Some(percent_decode_str(value).into()), rest)
}

fn set_path_and_query<B>(request: &mut Request<B>, rest: &PathAndQuery) {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.path_and_query = Some(rest.clone());
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// The values of a cookie.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a [u8]> {
    let all = headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    all.filter_map(move |cookie| cookie.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// A number that tells tokens apart (FNV-1a). It stands beside the token wherever it goes, so it need not hide it.
fn digest(token: &str) -> u32 {
    token.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
