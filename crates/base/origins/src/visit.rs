//! What is answered to a page.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use crate::{interface::Interface, setting::Origins};

/// Seconds for which a browser may keep the answer to a preflight.
const KEPT: HeaderValue = HeaderValue::from_static("600");
const DEPENDS: HeaderValue =
    HeaderValue::from_static("Origin, Access-Control-Request-Method, Access-Control-Request-Private-Network");
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// A request to an interface that is for pages of some origins: whether a page may have the answer.
#[derive(Debug)]
pub struct Visit {
    /// What the answer says, if the page may have it.
    allowed: Option<HeaderValue>,
    is_preflight: bool,
    asks_private: bool,
    interface: &'static Interface,
}

impl Visit {
    /// The request with this head.
    pub fn new(origins: &Origins, interface: &'static Interface, method: &Method, headers: &HeaderMap) -> Self {
        let is_preflight = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        Self {
            allowed: headers.get(ORIGIN).and_then(|origin| origins.answer_to(origin)),
            is_preflight,
            asks_private: headers.contains_key(ASKS_PRIVATE),
            interface,
        }
    }

    /// Whether a page caused it that may have the answer.
    pub fn is_allowed(&self) -> bool {
        self.allowed.is_some()
    }

    /// Whether the browser of such a page asks what it may send. The answer is nobody else's business: status 200, and what
    /// [`mark`](Self::mark) writes.
    pub fn is_welcome_preflight(&self) -> bool {
        self.is_preflight && self.is_allowed()
    }

    /// Says in the head of the answer which page may have it. Whoever asks still needs the key.
    pub fn mark(self, headers: &mut HeaderMap) {
        // The answer to one page is not the answer to another one.
        headers.append(VARY, if self.is_preflight { DEPENDS } else { HeaderValue::from_static("Origin") });
        if self.is_welcome_preflight() {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(self.interface.methods));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(self.interface.accepted));
            headers.insert(ACCESS_CONTROL_MAX_AGE, KEPT);
            if self.asks_private {
                headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
            }
        }
        if let Some(allowed) = self.allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(self.interface.exposed));
            // What is passed on may say otherwise.
            headers.remove(ACCESS_CONTROL_ALLOW_CREDENTIALS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn what_an_answer_says_itself_of_pages_counts_only_for_those_that_were_not_named() {
        let origins = Origins::new(&["https://app.example".to_owned()]).unwrap();
        let said = [
            ("access-control-allow-origin", "https://other.example"),
            ("access-control-allow-credentials", "true"),
            ("access-control-expose-headers", "x-own"),
        ];
        for (origin, expected) in [
            ("https://app.example", ("https://app.example", false)),
            ("https://other.example", ("https://other.example", true)),
        ] {
            let visit = Visit::new(&origins, Interface::SANDBOX, &Method::GET, &heads(&[("origin", origin)]));
            let mut answer = heads(&said);
            visit.mark(&mut answer);
            let found = (
                answer[ACCESS_CONTROL_ALLOW_ORIGIN].to_str().unwrap(),
                answer.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS),
            );
            assert_eq!(found, expected, "{origin}");
            assert_eq!(answer[VARY], "Origin", "{origin}");
        }
    }

    #[test]
    fn a_preflight_of_a_page_that_may_ask_is_answered_and_other_requests_are_not() {
        let origins = Origins::new(&["https://app.example".to_owned()]).unwrap();
        let asks = ("access-control-request-method", "POST");
        for (method, headers, expected) in [
            (Method::OPTIONS, heads(&[("origin", "https://app.example"), asks]), true),
            (Method::OPTIONS, heads(&[("origin", "https://evil.example"), asks]), false),
            (Method::OPTIONS, heads(&[("origin", "https://app.example")]), false),
            (Method::OPTIONS, heads(&[asks]), false),
            (Method::POST, heads(&[("origin", "https://app.example"), asks]), false),
        ] {
            let visit = Visit::new(&origins, Interface::SANDBOX, &method, &headers);
            assert_eq!(visit.is_welcome_preflight(), expected, "{method} {headers:?}");
        }
    }
}
