//! Which pages may ask from a browser: those of this machine, and those of the settings. What they get needs the key, too.

use axum::{extract::Request, response::Response};
use http::{
    HeaderValue, Method, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use crate::answer;

/// What pages may do.
const METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY";
/// What the answer to a question before a request depends on.
const DEPENDS: &str =
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network";
/// Seconds for which a browser may keep the answer.
const KEPT: &str = "600";

/// What a request says of the page that sent it.
pub(super) struct Asked {
    origin: Option<HeaderValue>,
    is_allowed: bool,
    /// It asks what it may before it does it.
    is_preflight: bool,
    /// Which headers it wants to send.
    wanted: Option<HeaderValue>,
}

impl Asked {
    pub(super) fn of(request: &Request, allowed: &[String]) -> Self {
        let headers = request.headers();
        let origin = headers.get(ORIGIN).cloned();
        let is_allowed = origin.as_ref().and_then(|origin| origin.to_str().ok()).is_some_and(|it| may(it, allowed));
        let is_preflight = request.method() == Method::OPTIONS
            && origin.is_some()
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        Self { origin, is_allowed, is_preflight, wanted }
    }

    /// The answer to a question before the request, if this is one.
    pub(super) fn preflight(&self) -> Option<Response> {
        if !self.is_preflight {
            return None;
        }
        let (status, text) =
            if self.is_allowed { (StatusCode::OK, "OK") } else { (StatusCode::BAD_REQUEST, "Disallowed CORS origin") };
        let mut response = answer::with_type(status, "text/plain; charset=utf-8", text);
        self.mark(&mut response);
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static(DEPENDS));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(KEPT));
        if let Some(wanted) = &self.wanted {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        Some(response)
    }

    /// Says in an answer that the page may have it.
    pub(super) fn mark(&self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = self.origin.as_ref().filter(|_| self.is_allowed) else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
}

/// Whether pages of this origin may ask.
fn may(origin: &str, allowed: &[String]) -> bool {
    if allowed.iter().any(|known| known == origin) {
        return true;
    }
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or_default();
    let (host, port) = rest.split_once(':').unwrap_or((rest, "1"));
    matches!(host, "localhost" | "127.0.0.1") && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_machine_and_of_the_settings_may_ask() {
        let allowed = ["https://allowed.example".to_owned()];
        for (origin, expected) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("https://allowed.example", true),
            ("https://allowed.example.evil.test", false),
            ("http://localhost.evil.test", false),
            ("http://localhost:3000.evil.test", false),
            ("http://localhost:x", false),
            ("http://evil.test", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(may(origin, &allowed), expected, "{origin}");
        }
    }
}
