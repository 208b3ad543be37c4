//! Why a request gets no answer from its service.

use std::{io, time::Duration};

use http::StatusCode;

/// Why a request gets no answer from its service.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// Nobody accepts connections.
    #[error("cannot connect to {place}: {source}; it may just have ended, so try again")]
    Unreachable {
        /// Where it should be.
        place: String,
        /// Why not.
        source: io::Error,
    },
    /// Nobody accepted the connection in time.
    #[error("{place} did not accept a connection within {} s; it may be overloaded, so try again later", limit.as_secs_f64())]
    ConnectTimeout {
        /// Where it should be.
        place: String,
        /// Time that it had.
        limit: Duration,
    },
    /// The connection ended before the head of an answer.
    #[error("no complete answer came: {0}; look into the log of the service")]
    NoAnswer(hyper::Error),
    /// The head of the answer did not come in time.
    #[error("no answer came for {} s; the service may hang, look into its log", .0.as_secs_f64())]
    AnswerTimeout(Duration),
    /// The client did not send the rest of its request in time.
    #[error("the rest of the request did not come for {} s; send it again", .0.as_secs_f64())]
    RequestTimeout(Duration),
    /// The method is one that a service must not see.
    #[error("the method {0} is not passed on")]
    Method(http::Method),
    /// The service changes the protocol without having been asked to.
    #[error("the service changed the protocol without being asked to")]
    UnaskedUpgrade,
}

impl ForwardError {
    /// What the client is told.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unreachable { .. } | Self::NoAnswer(_) | Self::UnaskedUpgrade => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout { .. } | Self::AnswerTimeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::RequestTimeout(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}
