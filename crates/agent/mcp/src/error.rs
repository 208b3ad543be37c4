//! Why a server could not be used.

use std::{io, time::Duration};

use gloveport_client::{ClientError, causes};
use rmcp::{
    ServiceError,
    service::ClientInitializeError,
    transport::{DynamicTransportError, auth::AuthError, streamable_http_client::StreamableHttpError},
};

use crate::{Server, StoreError, fate::Fate, oauth::clean};

/// Why there is no connection to a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program is not installed.
    #[error(
        "the MCP server `{server}` cannot be started: there is no program `{command}` in PATH; install it, or take the \
         server out of the configuration"
    )]
    NoProgram {
        /// The server.
        server: String,
        /// Its program.
        command: String,
    },
    /// The program cannot be started.
    #[error("the MCP server `{server}` cannot be started: `{command}`: {source}")]
    Start {
        /// The server.
        server: String,
        /// Its program.
        command: String,
        /// What the system says.
        source: io::Error,
    },
    /// The address is none of an HTTP server.
    #[error("the MCP server {server} cannot be reached: {reason}; its URL must begin with http:// or https://")]
    Address {
        /// The server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// A header cannot be sent.
    #[error(
        "the MCP server {server} cannot be asked: the header `{header}` has characters that HTTP does not allow; check \
         the server's `api_key`"
    )]
    Header {
        /// The server.
        server: String,
        /// The header.
        header: String,
    },
    /// The server wants another key, or somebody to log in.
    #[error("the MCP server {server} lets nobody in without the right key: {reason}; set or correct its `api_key`")]
    Unauthorized {
        /// The server.
        server: String,
        /// What it answered.
        reason: String,
    },
    /// The server wants somebody to log in, or to do it again.
    #[error("the MCP server {server} wants a login; run `gloveport mcp login {server}`")]
    LoginRequired {
        /// The server.
        server: String,
    },
    /// The tokens of logins cannot be used.
    #[error(transparent)]
    Tokens(#[from] StoreError),
    /// There is no connection, or no agreement on the protocol.
    #[error("the MCP server {server} cannot be used: {reason}")]
    Failed {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The server takes too long.
    #[error("the MCP server {server} did not answer `initialize` within {} seconds{last}", limit.as_secs_f64())]
    Silent {
        /// The server.
        server: String,
        /// How long it was waited for.
        limit: Duration,
        /// What its program wrote last, for the end of the sentence.
        last: String,
    },
    /// This process cannot send requests over HTTP at all.
    #[error(transparent)]
    NoHttp(#[from] ClientError),
}

impl ConnectError {
    /// What failed while the protocol was agreed on.
    pub(crate) fn of_start(server: &Server, error: &ClientInitializeError, fate: &Fate) -> Self {
        let name = server.name();
        if error.is_authorization_required() {
            if server.can_login() {
                return Self::LoginRequired { server: name };
            }
            return Self::Unauthorized { server: name, reason: "it asks for authorization".to_owned() };
        }
        let reason = match error {
            ClientInitializeError::TransportError { error, .. } => transport(error),
            ClientInitializeError::ConnectionClosed(_) => fate.told("it closed the connection before it had answered"),
            ClientInitializeError::JsonRpcError(error) => {
                format!("it answers `initialize` with the error {}: {}", error.code.0, error.message)
            }
            ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ConflictInitResponseId(..) => {
                "what it answers to `initialize` is not what MCP says; is it an MCP server?".to_owned()
            }
            other => causes(other),
        };
        let reason = server.mask(&reason);
        if ["401", "403"].iter().any(|status| reason.contains(&format!("HTTP {status}"))) {
            return Self::Unauthorized { server: name, reason };
        }
        Self::Failed { server: name, reason }
    }

    /// What failed with the tokens of a login, which the server does not take any more.
    pub(crate) fn after_login(self) -> Self {
        match self {
            Self::Unauthorized { server, .. } => Self::LoginRequired { server },
            other => other,
        }
    }
}

/// Why a request to a connected server gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server takes too long. It was asked to stop.
    #[error("the MCP server {server} did not answer within {} seconds", limit.as_secs_f64())]
    Timeout {
        /// The server.
        server: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The server answers with an error of the protocol.
    #[error("{message}")]
    Protocol {
        /// The error's number.
        code: i32,
        /// Its text.
        message: String,
    },
    /// The server wants somebody to log in, or to do it again. It has not done what it was asked for.
    #[error("the MCP server {server} wants a login; run `gloveport mcp login {server}`")]
    LoginRequired {
        /// The server.
        server: String,
    },
    /// The connection is lost. Whether the server did what it was asked for is not known.
    #[error("the connection to the MCP server {server} is lost: {reason}")]
    Lost {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The answer is none.
    #[error("the MCP server {server} gives an answer that cannot be used: {reason}")]
    Answer {
        /// The server.
        server: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl CallError {
    pub(crate) fn of(server: &Server, error: ServiceError, fate: &Fate) -> Self {
        let name = server.name();
        if server.can_login() && error.is_authorization_required() {
            return Self::LoginRequired { server: name };
        }
        match error {
            ServiceError::McpError(error) => {
                Self::Protocol { code: error.code.0, message: server.mask(&error.message) }
            }
            ServiceError::TransportSend(error) => Self::Lost { server: name, reason: server.mask(&transport(&error)) },
            ServiceError::TransportClosed => {
                Self::Lost { server: name, reason: server.mask(&fate.told("the server closed it")) }
            }
            ServiceError::UnexpectedResponse => {
                Self::Answer { server: name, reason: "it has parts that MCP does not know".to_owned() }
            }
            other => Self::Answer { server: name, reason: server.mask(&causes(&other)) },
        }
    }

    pub(crate) fn answer(server: &Server, reason: impl Into<String>) -> Self {
        Self::Answer { server: server.name(), reason: reason.into() }
    }
}

/// Why a transport failed. Errors of requests over streamable HTTP do not name their causes themselves.
fn transport(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => causes(error),
        // What the SDK says of its own errors in front of them is of no use to anybody.
        Some(StreamableHttpError::Auth(
            AuthError::CredentialStoreError(reason) | AuthError::TokenRefreshFailed(reason),
        )) => reason.clone(),
        Some(StreamableHttpError::InsufficientScope(error)) => {
            let scope =
                error.required_scope.as_deref().map(|scope| format!(": the server wants the scope `{}`", clean(scope)));
            format!("its token does not allow this{}", scope.unwrap_or_default())
        }
        _ => causes(&*error.error),
    }
}
