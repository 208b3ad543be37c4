//! Headers of requests for sandboxes.

use gloveport_provider::Sandbox;
use http::{HeaderMap, HeaderName};

use crate::token::{self, Purpose};

/// The header that names the sandbox of a request.
pub const ID_HEADER: HeaderName = HeaderName::from_static("e2b-sandbox-id");
/// The header that names the port of a request.
pub const PORT_HEADER: HeaderName = HeaderName::from_static("e2b-sandbox-port");
/// The header with the token of the agent.
pub(crate) const AGENT_TOKEN: HeaderName = HeaderName::from_static("x-access-token");
/// The header with the token of ports.
pub(crate) const TRAFFIC_TOKEN: HeaderName = HeaderName::from_static("e2b-traffic-access-token");

/// Whether the headers have a token of the sandbox.
pub(crate) fn may(sandbox: &Sandbox, purpose: Purpose, headers: &HeaderMap) -> bool {
    let header = match purpose {
        Purpose::Agent => AGENT_TOKEN,
        Purpose::Traffic => TRAFFIC_TOKEN,
    };
    token::is_of(sandbox, purpose, text(headers, &header))
}

/// A header as text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
