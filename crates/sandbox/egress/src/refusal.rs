//! Why a request is not passed on, as people and programs in the sandbox see it.

use std::{net::IpAddr, time::Duration};

use http::StatusCode;

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
}

impl Refusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotAllowed { .. } | Self::Closed { .. } => StatusCode::FORBIDDEN,
            Self::NoAddress { .. } | Self::LookUp { .. } | Self::Connect { .. } | Self::Answer { .. } => {
                StatusCode::BAD_GATEWAY
            }
            Self::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Target(_) | Self::Request(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The kind for `Proxy-Status` (RFC 9209, 2.3).
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } => "http_request_denied",
            Self::Closed { .. } => "destination_ip_prohibited",
            Self::NoAddress { .. } | Self::LookUp { .. } => "dns_error",
            Self::Connect { .. } => "connection_refused",
            Self::Late { .. } => "connection_timeout",
            Self::Answer { .. } => "http_protocol_error",
            Self::Target(_) | Self::Request(_) => "http_request_error",
        }
    }

    /// What was asked for, if the policy is why it is refused.
    pub(crate) fn denied(&self) -> Option<&Target> {
        match self {
            Self::NotAllowed { target, .. } | Self::Closed { target, .. } => Some(target),
            _ => None,
        }
    }
}
