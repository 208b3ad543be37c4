//! The API of E2B over the sandboxes of this gateway: what `gloveport_e2b_face` needs of it, and how requests get there.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gloveport_e2b_face::{E2bFace, Host, ID_HEADER, PORT_HEADER, Refusal};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{Isolation, ListFilter, Provider, Sandbox, SandboxId};
use http::{HeaderMap, HeaderValue, StatusCode, uri::Authority};

use crate::{
    caller::ClientAddress,
    fault::Fault,
    labels::LABEL,
    shared::Shared,
    tenant::Tenant,
    way::{self, AtHost},
};

/// The hosts of the domain at which clients of E2B look for the control plane, and for sandboxes that headers name.
const OWN: [&str; 2] = ["api", "sandbox"];

/// The gateway as the face needs it.
#[derive(Debug)]
pub(crate) struct E2bHost(pub(crate) Arc<Shared>);

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let refusal = Self::new(fault.status(), fault.detail());
        match fault.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => refusal.after(fault.retry_after()),
            _ => refusal,
        }
    }
}

impl Host for E2bHost {
    fn tenant<'a>(
        &'a self,
        headers: &'a HeaderMap,
        address: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Arc<dyn Provider>, Refusal>> {
        Box::pin(async move {
            let who = self.0.identify(headers, address).await?;
            let tenant: Arc<dyn Provider> = Arc::new(Tenant::in_detail(Arc::clone(&self.0), who));
            Ok(tenant)
        })
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, Refusal>> {
        Box::pin(async move { Ok(self.0.provider.find(id).await?.filter(|sandbox| self.0.is_own(sandbox))) })
    }

    fn list<'a>(&'a self, label: (&'a str, &'a str)) -> BoxFuture<'a, Result<Vec<Sandbox>, Refusal>> {
        Box::pin(async move {
            if !self.0.can.labels {
                return Ok(Vec::new());
            }
            let labels = [label, LABEL].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            Ok(self.0.provider.list(&ListFilter { labels, ended: false }).await?)
        })
    }

    fn end<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let shared = &self.0;
            let deleted = shared.provider.delete(id).await;
            shared.known.forget(id);
            deleted?;
            shared.hub.ended(id);
            shared.noted(async |store| store.ended(id.as_str(), "its time was over").await).await;
            Ok(())
        })
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let shared = &self.0;
            let paused = shared.provider.pause(id).await;
            shared.known.forget(id);
            shared.hub.nudge();
            paused?;
            shared.noted(async |store| store.paused(id.as_str()).await).await;
            Ok(())
        })
    }

    fn has_own_ports(&self) -> bool {
        matches!(self.0.can.isolation, Isolation::Container | Isolation::VirtualMachine)
    }

    fn pass(&self, id: SandboxId, port: Option<String>, mut request: Request) -> BoxFuture<'_, Response> {
        request.extensions_mut().insert(AtHost { id, port: port.map(Cow::Owned) });
        Box::pin(way::pass(State(Arc::clone(&self.0)), request))
    }
}

/// Takes a host of the domain apart as clients of E2B write it: `{port}-{id}`, or one of ours. What it names is written into
/// the headers of the request. False for every other host.
pub(crate) fn aim(label: &str, headers: &mut HeaderMap) -> bool {
    if OWN.contains(&label) {
        return true;
    }
    let Some((port, id)) = label.split_once('-') else { return false };
    let is_port = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let (true, Ok(port), Ok(id)) = (is_port, HeaderValue::from_str(port), HeaderValue::from_str(id)) else {
        return false;
    };
    headers.insert(PORT_HEADER, port);
    headers.insert(ID_HEADER, id);
    true
}

/// Leads requests that name a sandbox of E2B there, whatever their paths are.
pub(crate) async fn divert(State(face): State<E2bFace>, mut request: Request, next: Next) -> Response {
    // The face knows nothing of this gateway's own types.
    if let Some(ClientAddress(address)) = request.extensions().get::<ClientAddress>().copied() {
        request.extensions_mut().insert::<IpAddr>(address);
    }
    if request.headers().contains_key(ID_HEADER) { face.inside(request).await } else { next.run(request).await }
}

/// What clients are told where sandboxes have hosts: the domain, with the port of the URL that clients use.
pub(crate) fn domain(domain: Option<&str>, public_url: Option<&str>) -> Option<String> {
    let domain = domain?.trim_end_matches('.');
    let authority = public_url.and_then(|url| url.split_once("://")).and_then(|(_, rest)| rest.split('/').next());
    let port = authority.and_then(|text| text.parse::<Authority>().ok()).and_then(|authority| authority.port_u16());
    Some(port.map_or_else(|| domain.to_owned(), |port| format!("{domain}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_name_a_port_and_a_sandbox_or_are_none_of_e2b() {
        for (label, expected) in [
            ("49983-abc", Some(Some(("49983", "abc")))),
            ("1-a-b", Some(Some(("1", "a-b")))),
            ("api", Some(None)),
            ("sandbox", Some(None)),
            ("abc", None),
            ("vscode-abc", None),
            ("-abc", None),
            ("123456-abc", None),
        ] {
            let mut headers = HeaderMap::new();
            let is_one = aim(label, &mut headers);
            let header = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap());
            let found = is_one.then(|| header(PORT_HEADER).zip(header(ID_HEADER)));
            assert_eq!(found, expected, "{label}");
        }
    }

    #[test]
    fn the_domain_is_told_with_the_port_of_the_public_url() {
        for (name, url, expected) in [
            (Some("a.org"), None, Some("a.org")),
            (Some("a.org"), Some("https://a.org"), Some("a.org")),
            (Some("a.org"), Some("https://a.org:8443/x"), Some("a.org:8443")),
            (None, Some("https://a.org"), None),
        ] {
            assert_eq!(domain(name, url).as_deref(), expected);
        }
    }
}
