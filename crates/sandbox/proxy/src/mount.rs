//! The path that a service is under, and what of its answers must say so.

use http::{HeaderMap, HeaderValue, Uri, uri::PathAndQuery};

/// Longest prefix of a proxy before this one that is believed.
const LONGEST_PREFIX: usize = 256;

/// A path under which a service is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What clients ask for, without a `/` at its end; empty for the root.
    public: String,
    /// What the service expects in its place, likewise.
    service: String,
    /// Whether paths that are not beneath it count as cut off by a proxy before this one.
    tolerant: bool,
}

impl Mount {
    /// A service that clients find under the path `public`, and that expects the path `service` in its place.
    pub fn new(public: &str, service: &str) -> Self {
        Self { public: normalized(public), service: normalized(service), tolerant: false }
    }

    /// The same, for a proxy before this one that may have cut off the public path without saying so.
    #[must_use]
    pub fn tolerant(self) -> Self {
        Self { tolerant: true, ..self }
    }

    /// What clients ask for, without a `/` at its end.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The path and query that the service is asked for: what is beneath the public path. `None` for a path that is not
    /// beneath it.
    pub fn inward(&self, uri: &Uri) -> Option<PathAndQuery> {
        let rest = beneath(uri.path(), &self.public).or_else(|| self.tolerant.then(|| uri.path()))?;
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        PathAndQuery::try_from(format!("{}{slash}{rest}{query}", self.service)).ok()
    }

    /// The same place as a client sees it, for a client behind a proxy that has cut off a prefix and says so.
    pub(crate) fn seen_through(&self, headers: &HeaderMap) -> Self {
        let outer = headers.get("x-forwarded-prefix").and_then(|value| value.to_str().ok()).filter(|it| is_prefix(it));
        let outer = outer.map(normalized).unwrap_or_default();
        Self { public: outer + &self.public, ..self.clone() }
    }

    /// Whether a path is beneath the public one.
    pub(crate) fn holds(&self, path: &str) -> bool {
        beneath(path, &self.public).is_some()
    }

    /// A path of the service as clients must ask for it.
    fn outward(&self, path: &str) -> String {
        if !self.public.is_empty() && beneath(path, &self.public).is_some() {
            // The service knows where it is.
            return path.to_owned();
        }
        let rest = beneath(path, &self.service).unwrap_or(path);
        let slash = if rest.starts_with('/') { "" } else { "/" };
        format!("{}{slash}{rest}", self.public)
    }

    /// A reference of the service (`Location`) as clients must follow it; `None` if it stays as it is. `own` are the
    /// names that the service may have for itself.
    pub(crate) fn reference(&self, value: &str, own: &[String]) -> Option<String> {
        let after_scheme = ["http:", "https:"].iter().find_map(|scheme| {
            let start = value.get(..scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then(|| value.get(scheme.len()..))?
        });
        let Some(rest) = after_scheme.unwrap_or(value).strip_prefix("//") else {
            return value.starts_with('/').then(|| self.outward(value));
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        own.iter().any(|name| name.eq_ignore_ascii_case(authority)).then(|| self.outward(path))
    }

    /// A cookie of the service as clients must keep it: for its path, and for no domain, as the service does not know
    /// the right one.
    pub(crate) fn cookie(&self, value: &str) -> String {
        let mut parts = Vec::new();
        for (index, part) in value.split(';').enumerate() {
            let (name, path) = part.split_once('=').map_or((part, ""), |(name, path)| (name, path.trim()));
            if index == 0 || !["path", "domain"].iter().any(|it| name.trim().eq_ignore_ascii_case(it)) {
                parts.push(part.to_owned());
            } else if name.trim().eq_ignore_ascii_case("path") {
                // Anything else than an absolute path means the directory of the request, which is beneath already.
                let path = if path.starts_with('/') { self.outward(path) } else { path.to_owned() };
                parts.push(format!(" {}={path}", name.trim()));
            }
        }
        parts.join(";")
    }

    /// The value of `X-Forwarded-Prefix`; none at the root.
    pub(crate) fn prefix_header(&self) -> Option<HeaderValue> {
        (!self.public.is_empty()).then(|| HeaderValue::from_str(&self.public).ok())?
    }
}

/// With a `/` before and none after.
fn normalized(path: &str) -> String {
    let path = path.trim_matches('/');
    if path.is_empty() { String::new() } else { format!("/{path}") }
}

/// What follows a prefix that ends where a part of the path does.
fn beneath<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || prefix.is_empty() || rest.starts_with(['/', '?', '#']))
}

/// Whether this can be a prefix, and nothing that could be taken for another address or for markup.
fn is_prefix(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    text.len() <= LONGEST_PREFIX && text.starts_with('/') && !text.contains("//") && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_beneath_the_mount_becomes_one_of_the_service() {
        for (public, service, asked, expected) in [
            ("/plugins/a", "", "/plugins/a/", Some("/")),
            ("/plugins/a", "", "/plugins/a", Some("/")),
            ("/plugins/a", "", "/plugins/a?x=1", Some("/?x=1")),
            ("/plugins/a", "", "/plugins/a/b%2Fc/?x=/plugins/a/", Some("/b%2Fc/?x=/plugins/a/")),
            ("/plugins/a", "", "/plugins/ab/", None),
            ("/plugins/a", "", "/", None),
            ("/plugins/a", "/base", "/plugins/a/x", Some("/base/x")),
            ("base/", "/base/", "/base/x", Some("/base/x")),
            ("base", "/base", "/base", Some("/base/")),
            ("", "", "/x?y", Some("/x?y")),
            ("/", "/base", "/x", Some("/base/x")),
        ] {
            let inward = Mount::new(public, service).inward(&asked.parse().unwrap());
            assert_eq!(inward.as_ref().map(PathAndQuery::as_str), expected, "{public} {service} {asked}");
        }
    }

    #[test]
    fn a_tolerant_mount_takes_paths_from_which_the_public_one_was_cut_off() {
        for (service, asked, expected) in [
            ("/base", "/base/x?y", "/base/x?y"),
            ("/base", "/x?y", "/base/x?y"),
            ("/base", "/", "/base/"),
            ("", "/basement", "/basement"),
        ] {
            let inward = Mount::new("/base", service).tolerant().inward(&asked.parse().unwrap());
            assert_eq!(inward.unwrap().as_str(), expected, "{service} {asked}");
        }
    }

    #[test]
    fn references_to_the_service_lead_back_under_the_mount() {
        let own = ["box.example:8000".to_owned(), "127.0.0.1:4000".to_owned()];
        for (public, service, value, expected) in [
            ("/p/a", "", "/x?y#z", Some("/p/a/x?y#z")),
            ("/p/a", "", "/", Some("/p/a/")),
            ("/p/a", "", "/p/a/x", Some("/p/a/x")),
            ("/p/a", "", "/p/ab", Some("/p/a/p/ab")),
            ("/p/a", "", "x/y", None),
            ("/p/a", "", "../x", None),
            ("/p/a", "", "?x", None),
            ("/p/a", "", "", None),
            ("/p/a", "", "http://127.0.0.1:4000/x", Some("/p/a/x")),
            ("/p/a", "", "HTTPS://Box.Example:8000", Some("/p/a/")),
            ("/p/a", "", "//box.example:8000?q", Some("/p/a/?q")),
            ("/p/a", "", "http://127.0.0.1:4001/x", None),
            ("/p/a", "", "//elsewhere.example/x", None),
            ("/p/a", "", "https://elsewhere.example/x", None),
            ("/p/a", "", "mailto:a@b", None),
            ("/p/a", "/base", "/base/x", Some("/p/a/x")),
            ("/p/a", "/base", "/base", Some("/p/a/")),
            ("/p/a", "/base", "/other", Some("/p/a/other")),
            ("/base", "/base", "/base/x", Some("/base/x")),
            ("", "", "/x", Some("/x")),
            ("", "", "http://127.0.0.1:4000/x", Some("/x")),
        ] {
            let reference = Mount::new(public, service).reference(value, &own);
            assert_eq!(reference.as_deref(), expected, "{public} {service} {value}");
        }
    }

    #[test]
    fn cookies_of_the_service_are_kept_for_its_path_only() {
        for (public, value, expected) in [
            ("/p/a", "a=b", "a=b"),
            ("/p/a", "a=b; Path=/; HttpOnly", "a=b; Path=/p/a/; HttpOnly"),
            ("/p/a", "a=b;path=/x;Secure", "a=b; path=/p/a/x;Secure"),
            ("/p/a", "a=b; Path=/p/a/x", "a=b; Path=/p/a/x"),
            ("/p/a", "a=b; Path=x", "a=b; Path=x"),
            ("/p/a", "a=b; Domain=localhost; Max-Age=3", "a=b; Max-Age=3"),
            ("/p/a", "path=/; SameSite=Lax", "path=/; SameSite=Lax"),
            ("", "a=b; Path=/; HttpOnly", "a=b; Path=/; HttpOnly"),
        ] {
            assert_eq!(Mount::new(public, "").cookie(value), expected, "{public} {value}");
        }
    }

    #[test]
    fn a_prefix_that_an_outer_proxy_cut_off_is_part_of_the_public_path() {
        for (header, expected) in [
            (None, "/plugins/a"),
            (Some("/sandboxes/1"), "/sandboxes/1/plugins/a"),
            (Some("/sandboxes/1/"), "/sandboxes/1/plugins/a"),
            (Some("/"), "/plugins/a"),
            (Some("//evil.example"), "/plugins/a"),
            (Some("evil"), "/plugins/a"),
            (Some("/<script>"), "/plugins/a"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert("x-forwarded-prefix", HeaderValue::from_static(header));
            }
            assert_eq!(Mount::new("/plugins/a", "").seen_through(&headers).public(), expected, "{header:?}");
        }
    }
}
