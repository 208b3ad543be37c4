//! The setting: origins whose pages may use an interface from a browser.

use std::net::Ipv6Addr;

use http::HeaderValue;

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
    /// The variable of a sandbox that says which pages may use its server.
    pub const VARIABLE: &str = "GLOVEPORT_ALLOW_ORIGINS";

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
    pub(crate) fn answer_to(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        if self.0.iter().any(|known| known == ANY) {
            return Some(HeaderValue::from_static(ANY));
        }
        self.0.iter().any(|known| known.as_bytes() == origin.as_bytes()).then(|| origin.clone())
    }
}

/// Whether a text is the origin of a page as browsers send it, but for its case: a scheme, a host, and a port unless it is
/// that of the scheme.
fn is_http_origin(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (usual, authority) = match text.split_once("://") {
        Some(("http", authority)) => ("80", authority),
        Some(("https", authority)) => ("443", authority),
        _ => return false,
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)),
    };
    let is_port =
        |port: &str| port != usual && port.parse::<u16>().is_ok_and(|number| number != 0 && number.to_string() == port);
    is_host && port.is_none_or(is_port)
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
