//! The URLs that the gateway tells of its sandboxes (remote-runtime-api 4): below its own, or with hosts of their own.

use gloveport_provider::SandboxId;

use crate::domain::Domain;

/// How whoever asks reaches the gateway.
#[derive(Debug)]
pub(crate) struct Public {
    base: String,
    domain: Option<Domain>,
}

impl Public {
    /// By this URL of the gateway, without a slash at the end.
    pub(crate) fn new(base: String, domain: Option<Domain>) -> Self {
        Self { base, domain }
    }

    /// Its own URL.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The URL of the server of a sandbox.
    pub(crate) fn sandbox(&self, id: &SandboxId) -> String {
        self.at_host(id, None).unwrap_or_else(|| format!("{}/{id}", self.base))
    }

    /// The URL of a port of a sandbox.
    pub(crate) fn port(&self, id: &SandboxId, name: &str) -> String {
        self.at_host(id, Some(name)).unwrap_or_else(|| format!("{}/{id}/{name}", self.base))
    }

    /// With the scheme and the port of the gateway.
    fn at_host(&self, id: &SandboxId, port: Option<&str>) -> Option<String> {
        let host = self.domain.as_ref()?.host(id, port)?;
        let (scheme, rest) = self.base.split_once("://")?;
        let authority = rest.split('/').next()?;
        let number = authority.rsplit_once(':').map(|(_, number)| number);
        let number = number.filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        Some(match number {
            Some(number) => format!("{scheme}://{host}:{number}"),
            None => format!("{scheme}://{host}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_have_hosts_of_their_own_where_they_can_and_are_below_the_gateway_elsewhere() {
        let id = |text: &str| SandboxId::new(text).unwrap();
        let public = |base: &str, domain: Option<&str>| Public::new(base.to_owned(), domain.and_then(Domain::new));
        for (base, domain, sandbox, expected) in [
            ("http://a:1", None, "x", ["http://a:1/x", "http://a:1/x/work-1"]),
            ("http://a:1", Some("b.c"), "x", ["http://x.b.c:1", "http://work-1-x.b.c:1"]),
            ("http://[::1]:80", Some("b.c"), "x", ["http://x.b.c:80", "http://work-1-x.b.c:80"]),
            ("http://[::1]", Some("b.c"), "x", ["http://x.b.c", "http://work-1-x.b.c"]),
            ("https://a/base", Some("b.c"), "x", ["https://x.b.c", "https://work-1-x.b.c"]),
            ("https://a/base", Some("b.c"), "X_y", ["https://x--x-0y.b.c", "https://work-1-x--x-0y.b.c"]),
            ("https://a/base", Some("b.c"), "x-", ["https://a/base/x-", "https://a/base/x-/work-1"]),
        ] {
            let public = public(base, domain);
            assert_eq!([public.sandbox(&id(sandbox)), public.port(&id(sandbox), "work-1")], expected);
        }
        assert_eq!(public("http://a", Some("b.c")).port(&id("x"), "mine"), "http://a/x/mine");
    }
}
