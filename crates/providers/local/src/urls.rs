//! URLs of sandboxes (`local-and-cli-runtime` A8).

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

/// Where sandboxes of this machine are reached.
#[derive(Clone, Debug)]
pub(crate) struct Urls {
    /// Scheme and host of the servers.
    local: String,
    /// Scheme, host and path from which people reach ports.
    public: String,
    /// Id of the machine in public URLs.
    runtime_id: Option<String>,
}

impl Urls {
    /// The rules of the configuration (`sandbox.local_runtime_url`) and of the backend's environment.
    pub(crate) fn new(local: &str, environment: &BTreeMap<String, String>) -> Self {
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let local = local.trim_end_matches('/').to_owned();
        let runtime_id = variable("RUNTIME_ID");
        let pattern = || Some(variable("RUNTIME_URL_PATTERN")?.replace("{runtime_id}", runtime_id.as_deref()?));
        let public = variable("RUNTIME_URL").or_else(pattern).unwrap_or_else(|| local.clone());
        Self { local, public: public.trim_end_matches('/').to_owned(), runtime_id }
    }

    /// Address that servers listen on: loopback, unless they are to be reached under another name.
    pub(crate) fn listen(&self) -> IpAddr {
        if is_loopback(host(&self.local)) { Ipv4Addr::LOCALHOST.into() } else { Ipv4Addr::UNSPECIFIED.into() }
    }

    /// URL of the server at this port. `localhost` becomes the address that the server listens on: it may have another
    /// address as well, at which somebody else listens.
    pub(crate) fn server(&self, port: u16) -> String {
        if self.local == "http://localhost" {
            return format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
        }
        format!("{}:{port}", self.local)
    }

    /// Public URL of a port.
    pub(crate) fn port(&self, name: &str, port: u16) -> String {
        let host = host(&self.public);
        if self.public.contains("localhost") || host.parse::<IpAddr>().is_ok() || host.starts_with('[') {
            return format!("{}:{port}", self.public);
        }
        let (scheme, rest) = self.public.split_once("://").unwrap_or(("http", &self.public));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        match &self.runtime_id {
            Some(id) if path == id || path.starts_with(&format!("{id}/")) => {
                format!("{scheme}://{authority}/{id}/{name}")
            }
            _ => format!("{scheme}://{name}-{authority}"),
        }
    }
}

/// The host of a URL without its port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(local: &str, variables: &[(&str, &str)]) -> Urls {
        Urls::new(local, &variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn ports_get_urls_by_the_rules_of_the_reference() {
        let id = ("RUNTIME_ID", "abc");
        for (variables, expected) in [
            (vec![], "http://localhost:50001"),
            (vec![("RUNTIME_URL", "http://localhost")], "http://localhost:50001"),
            (vec![("RUNTIME_URL", "https://abc.example.org")], "https://work-1-abc.example.org"),
            (vec![("RUNTIME_URL", "https://example.org/abc"), id], "https://example.org/abc/work-1"),
            (vec![("RUNTIME_URL", "https://example.org/abcd"), id], "https://work-1-example.org"),
            (vec![("RUNTIME_URL_PATTERN", "https://{runtime_id}.x.org"), id], "https://work-1-abc.x.org"),
            (vec![("RUNTIME_URL_PATTERN", "https://{runtime_id}.x.org")], "http://localhost:50001"),
        ] {
            assert_eq!(urls("http://localhost", &variables).port("work-1", 50_001), expected, "{variables:?}");
        }
        assert_eq!(urls("http://10.0.0.7", &[]).port("work-1", 5), "http://10.0.0.7:5");
    }

    #[test]
    fn servers_listen_on_loopback_unless_they_are_reached_from_elsewhere() {
        for (local, listen, server) in [
            ("http://localhost", "127.0.0.1", "http://127.0.0.1:7"),
            ("http://localhost/", "127.0.0.1", "http://127.0.0.1:7"),
            ("http://127.0.0.1", "127.0.0.1", "http://127.0.0.1:7"),
            ("http://box.example.org", "0.0.0.0", "http://box.example.org:7"),
        ] {
            let urls = urls(local, &[]);
            assert_eq!((urls.listen().to_string().as_str(), urls.server(7).as_str()), (listen, server), "{local}");
        }
    }
}
