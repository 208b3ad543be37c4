//! Pages of other origins that may use the native interface from a browser.
//!
//! The key is in a header, or among the protocols that a WebSocket offers, and a browser adds neither of them by itself. So a
//! page that may ask still has to bring the key, and no answer ever allows credentials (cookies, certificates).

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gloveport_proxy::origin::is_http_origin;
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use crate::{answer, app::App, auth, policy};

/// What pages may do.
const METHODS: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, POST, PUT");
/// What the native interface and MCP read of a request, beside what every page may send.
const ACCEPTED: HeaderValue = HeaderValue::from_static(
    "X-Session-API-Key, Content-Type, Accept-Encoding, Cache-Control, If-Match, If-Modified-Since, If-None-Match, \
     If-Range, If-Unmodified-Since, Last-Event-ID, Range, Authorization, Mcp-Protocol-Version, Mcp-Session-Id",
);
/// What clients read of the head of an answer, beside what every page sees.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Mcp-Session-Id, Retry-After, X-Exec-Id, \
     X-File-Mode, X-Output-Next, X-Output-Offset, X-Output-State",
);
/// Seconds for which a browser may keep the answer to a preflight.
const KEPT: HeaderValue = HeaderValue::from_static("600");
const DEPENDS: HeaderValue =
    HeaderValue::from_static("Origin, Access-Control-Request-Method, Access-Control-Request-Private-Network");
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");
/// Any origin.
const ANY: &str = "*";
/// Most origins.
const MOST: usize = 100;

/// The origins whose pages may ask; at first none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(Vec<String>);

/// Why something is not an origin whose pages could be allowed to ask.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// It is no origin.
    #[error(
        "`{0}` is not the origin of a page: give scheme, host and, if it is not the usual one, port, without a path, such as \
         https://app.example.com or http://localhost:5173, or `*` for all pages"
    )]
    NoOrigin(String),
    /// There are too many.
    #[error("{0} origins are more than the {MOST} that a server takes; give `*` if all pages may use it")]
    TooMany(usize),
}

impl Origins {
    /// These origins.
    ///
    /// # Errors
    ///
    /// One of them has a path or other parts that an origin has not, or there are more than 100.
    pub fn new(origins: &[String]) -> Result<Self, OriginError> {
        if origins.len() > MOST {
            return Err(OriginError::TooMany(origins.len()));
        }
        let written = |origin: &String| origin.to_ascii_lowercase();
        match origins.iter().find(|origin| *origin != ANY && !is_http_origin(origin)) {
            Some(wrong) => Err(OriginError::NoOrigin(wrong.clone())),
            None => Ok(Self(origins.iter().map(written).collect())),
        }
    }

    /// Those of a variable, between commas or blanks.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of_text(text: &str) -> Result<Self, OriginError> {
        let parts = text.split(|character: char| character == ',' || character.is_whitespace());
        Self::new(&parts.filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>())
    }

    /// Whether no page of another origin may ask.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What an answer to a page says, if the page may have it.
    fn answer_to(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        if self.0.iter().any(|known| known == ANY) {
            return Some(HeaderValue::from_static(ANY));
        }
        self.0.iter().any(|known| known.as_bytes() == origin.as_bytes()).then(|| origin.clone())
    }
}

/// Whether pages may use what is at a path: the native interface, and what clients ask of the server itself. Programs behind
/// ports say themselves which pages may use them, and the view of the browser has pages of its own.
fn is_for_pages(path: &str) -> bool {
    let is_native = path.starts_with("/v1/") && !path.starts_with(auth::PORTS) && !path.starts_with("/v1/browser/view");
    is_native || [auth::COMPUTER, auth::PROXY].contains(&path) || ["/alive", "/ready", "/server_info"].contains(&path)
}

/// Answers preflights, and says in answers which page may have them. Whoever asks still needs the key.
pub(crate) async fn with_origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let origins = &app.options.origins;
    if origins.is_empty() || app.options.session_key.is_none() || !is_for_pages(request.uri().path()) {
        return next.run(request).await;
    }
    let headers = request.headers();
    let allowed = headers.get(ORIGIN).and_then(|origin| origins.answer_to(origin));
    let is_preflight = request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match &allowed {
        Some(_) if is_preflight => preflight(headers.contains_key(ASKS_PRIVATE)),
        _ => next.run(request).await,
    };
    // The answer to one page is not the answer to another one.
    response.headers_mut().append(VARY, if is_preflight { DEPENDS } else { HeaderValue::from_static("Origin") });
    if let Some(allowed) = allowed {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

fn preflight(asks_private: bool) -> Response {
    let mut response = answer::with_type(StatusCode::OK, "text/plain; charset=utf-8", "OK");
    policy::apply(&mut response);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ACCEPTED);
    headers.insert(ACCESS_CONTROL_MAX_AGE, KEPT);
    if asks_private {
        headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_browser_sends_as_an_origin_is_one() {
        for (origin, is_fine) in [
            ("https://app.example.com", true),
            ("http://localhost:5173", true),
            ("HTTPS://App.Example.Com", true),
            ("http://[::1]:3000", true),
            ("*", true),
            ("", false),
            ("null", false),
            ("app.example.com", false),
            ("https://app.example.com/", false),
            ("https://app.example.com/path", false),
            ("https://user@app.example.com", false),
            ("https://*.example.com", false),
            ("https://app.example.com:443", false),
            ("http://app.example.com:80", false),
            ("http://a:65536", false),
            ("http://a:0x1", false),
            ("http://a:080", false),
            ("http://a:", false),
            ("http://", false),
            ("ftp://a", false),
            ("https://a b", false),
            ("https://ä.example", false),
        ] {
            assert_eq!(Origins::new(&[origin.to_owned()]).is_ok(), is_fine, "{origin}");
        }
        assert!(matches!(Origins::new(&vec!["http://a".to_owned(); MOST + 1]), Err(OriginError::TooMany(_))));
        let several = Origins::of_text(" https://a.example,http://b.example:1\nhttp://c ,").unwrap();
        assert_eq!(
            several,
            Origins(["https://a.example", "http://b.example:1", "http://c"].map(str::to_owned).to_vec())
        );
        assert!(Origins::of_text("").unwrap().is_empty());
    }

    #[test]
    fn an_origin_is_allowed_as_a_whole() {
        let some = Origins::new(&["https://App.example".to_owned()]).unwrap();
        let all = Origins::new(&["*".to_owned()]).unwrap();
        for (origin, expected) in [
            ("https://app.example", Some("https://app.example")),
            ("http://app.example", None),
            ("https://app.example:444", None),
            ("https://app.example.evil.test", None),
            ("https://x.app.example", None),
            ("null", None),
        ] {
            let origin = HeaderValue::from_static(origin);
            assert_eq!(some.answer_to(&origin), expected.map(HeaderValue::from_static), "{origin:?}");
            assert_eq!(all.answer_to(&origin), Some(HeaderValue::from_static("*")), "{origin:?}");
        }
    }
}
