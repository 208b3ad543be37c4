//! Why a request is not passed on, as people and programs in the sandbox see it.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;

use gloveport_allow_list::{HostError, Rules, Target, in_words, rule_for};

/// Why a request is not passed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// No rule names the target.
    #[error(
        "this sandbox may not reach {target}: its network policy lets through {}; to allow it, add `{}` to the policy of \
         the sandbox (`--network`)",
        in_words(.rules), rule_for(.target)
    )]
    NotAllowed { target: Target, rules: Rules },
    /// Somebody has closed the way there while the sandbox runs.
    #[error("this sandbox may not reach {target} any more; to allow it again, use `gloveport session network allow`")]
    Denied { target: Target },
    /// A rule names the name, and the name leads to the gate's own machine.
    #[error(
        "{target} is {address}, an address of the machine or the link itself, which a rule for a name does not open; to \
         allow it, add the address to the policy of the sandbox (`--network`)"
    )]
    Closed { target: Target, address: IpAddr },
    /// There is no such name.
    #[error("there is no address for the name in {target}; check how it is spelled")]
    NoAddress { target: Target },
    /// The name cannot be looked up.
    #[error("cannot look up the name in {target}: {reason}; try again later")]
    LookUp { target: Target, reason: String },
    /// It is not there.
    #[error("cannot connect to {target}: {reason}")]
    Connect { target: Target, reason: String },
    /// It did not answer in time.
    #[error("cannot connect to {target}: no answer in {} s", .limit.as_secs())]
    Late { target: Target, limit: Duration },
    /// It does not speak HTTP.
    #[error("{target} did not answer the request: {reason}")]
    Answer { target: Target, reason: String },
    /// The request names no target that can be understood.
    #[error("the target of the request cannot be used: {0}")]
    Target(HostError),
    /// The request is for the proxy itself, or for something that goes through tunnels only.
    #[error("{0}")]
    Request(&'static str),
    /// A tunnel to a host that secrets go to has no such requests.
    #[error("{0} requests do not go through a tunnel to a host that secrets go to")]
    Method(Method),
    /// A request in a tunnel is for somebody else.
    #[error("the request names another host than {target}, which the tunnel leads to; open a tunnel to that host")]
    Misdirected { target: Target },
    /// A value does not fit into a header.
    #[error(
        "a value that belongs into the header `{header}` has characters that a header cannot have, such as the end of a \
         line; check how it was stored: {secrets}"
    )]
    NoHeader { header: HeaderName, secrets: String },
    /// With the values the head is too large.
    #[error("with the secrets in it, the head of the request has more than {limit} bytes")]
    HeadTooLarge { limit: usize },
    /// The gate cannot stand in for the target.
    #[error("the secrets for {target} cannot be put in: {reason}")]
    Edge { target: Target, reason: String },
    /// The gate was started again, and its memory is gone.
    #[error(
        "the secrets for {target} cannot be put in: the gate of this sandbox was started again, and only its memory had \
         them; start the sandbox anew with its secrets (`--secret NAME@HOST`)"
    )]
    Lost { target: Target },
    /// The certificate of the target is not one to trust.
    #[error(
        "the certificate of {target} cannot be trusted: {reason}; secrets go only to servers whose certificates the \
         machine of the gate trusts"
    )]
    Untrusted { target: Target, reason: String },
    /// It does not speak TLS.
    #[error("{target} cannot be spoken to over TLS: {reason}")]
    Tls { target: Target, reason: String },
    /// The answer cannot be looked through.
    #[error(
        "the answer of {target} is encoded (`{coding}`) although it was not to be, so that secrets in it could not be \
         hidden"
    )]
    Coding { target: Target, coding: String },
}

impl Refusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotAllowed { .. } | Self::Denied { .. } | Self::Closed { .. } => StatusCode::FORBIDDEN,
            Self::NoAddress { .. }
            | Self::LookUp { .. }
            | Self::Connect { .. }
            | Self::Answer { .. }
            | Self::Untrusted { .. }
            | Self::Tls { .. }
            | Self::Coding { .. } => StatusCode::BAD_GATEWAY,
            Self::Edge { .. } | Self::Lost { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Target(_) | Self::Request(_) | Self::NoHeader { .. } => StatusCode::BAD_REQUEST,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Misdirected { .. } => StatusCode::MISDIRECTED_REQUEST,
            Self::HeadTooLarge { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    /// The kind for `Proxy-Status` (RFC 9209, 2.3).
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } | Self::Denied { .. } => "http_request_denied",
            Self::Closed { .. } => "destination_ip_prohibited",
            Self::NoAddress { .. } | Self::LookUp { .. } => "dns_error",
            Self::Connect { .. } => "connection_refused",
            Self::Late { .. } => "connection_timeout",
            Self::Answer { .. } => "http_protocol_error",
            Self::Target(_)
            | Self::Request(_)
            | Self::Method(_)
            | Self::Misdirected { .. }
            | Self::NoHeader { .. }
            | Self::HeadTooLarge { .. } => "http_request_error",
            Self::Edge { .. } | Self::Lost { .. } => "proxy_internal_error",
            Self::Untrusted { .. } => "tls_certificate_error",
            Self::Tls { .. } => "tls_protocol_error",
            Self::Coding { .. } => "http_response_content_coding",
        }
    }

    /// What was asked for, if the policy is why it is refused.
    pub(crate) fn denied(&self) -> Option<&Target> {
        match self {
            Self::NotAllowed { target, .. } | Self::Denied { target } | Self::Closed { target, .. } => Some(target),
            _ => None,
        }
    }
}

/// The answer to a request that is not passed on.
pub(crate) fn refused(refusal: &Refusal) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("gloveport: {refusal}\n"))));
    *response.status_mut() = refusal.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if let Ok(value) = format!("gloveport; error={}", refusal.kind()).parse() {
        headers.insert("proxy-status", value);
    }
    response
}

/// An error with what led to it.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
