//! Why there is no login, or no token.

use std::{io, path::PathBuf, time::Duration};

use gloveport_client::ClientError;

/// Why a login or a logout failed. Texts of foreign servers in it are one line, without control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The address is none of an HTTP server.
    #[error("{server} is no address of an MCP server: {reason}; it must begin with https://")]
    Address {
        /// The server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// Tokens would be read by others on their way.
    #[error("a login at {server} would send tokens without encryption; use its https:// address")]
    Insecure {
        /// The server.
        server: String,
    },
    /// The server does not say where to log in.
    #[error("the MCP server {server} offers no login: {reason}; if it wants a key, set its `api_key`")]
    NotOffered {
        /// The server.
        server: String,
        /// What is missing.
        reason: String,
    },
    /// What the server says about logins cannot be used.
    #[error("it cannot be found out how to log in at the MCP server {server}: {reason}")]
    Discovery {
        /// The server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// The authorization server registers nobody.
    #[error(
        "the authorization server {issuer} does not register clients by itself: register one there for the redirect \
         http://127.0.0.1/callback, and give its client ID"
    )]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The authorization server does not register this program.
    #[error("the authorization server {issuer} does not register this client: {reason}")]
    Registration {
        /// The authorization server.
        issuer: String,
        /// What it answers.
        reason: String,
    },
    /// The browser cannot be sent back.
    #[error("there is no port on 127.0.0.1 that the browser could be sent back to: {0}")]
    Listen(#[source] io::Error),
    /// A person, or the authorization server, said no.
    #[error("the login at {server} was denied{reason}")]
    Denied {
        /// The server.
        server: String,
        /// What else the authorization server says, for the end of the sentence.
        reason: String,
    },
    /// The authorization server gives no code.
    #[error("the authorization server {issuer} refuses the login: {reason}")]
    Refused {
        /// The authorization server.
        issuer: String,
        /// What it answers.
        reason: String,
    },
    /// Nobody came back from the browser.
    #[error("nobody has logged in within {} seconds; try again", limit.as_secs_f64())]
    Timeout {
        /// How long it was waited for.
        limit: Duration,
    },
    /// There are no tokens for the code.
    #[error("the authorization server {issuer} gives no tokens: {reason}")]
    Exchange {
        /// The authorization server.
        issuer: String,
        /// What it answers.
        reason: String,
    },
    /// The tokens cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This process cannot send requests over HTTP at all.
    #[error(transparent)]
    NoHttp(#[from] ClientError),
}

/// Why tokens cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file, or its directory, cannot be used.
    #[error("the tokens of MCP servers in {path} cannot be {deed}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried: `read`, `written` or `locked`.
        deed: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Others may read the tokens, or put others into their place.
    #[error("others than its owner may use {path}, which is for tokens (mode {mode:03o}); run `chmod go-rwx {path}`")]
    NotPrivate {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is somebody else's.
    #[error("{path}, which is for tokens, belongs to user {owner} instead of user {user}")]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this process.
        user: u32,
    },
    /// The content is none that this program has written.
    #[error("the tokens of MCP servers in {path} cannot be understood: {reason}; remove the file, and log in again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it is wrong. The content is secret.
        reason: String,
    },
    /// The file is, or would be, too large.
    #[error("{path} has no room for more tokens of MCP servers ({limit}); log out of servers that you do not use")]
    Full {
        /// The file.
        path: PathBuf,
        /// Which bound is reached.
        limit: String,
    },
    /// Another process does not let go of the file.
    #[error("the tokens of MCP servers in {path} are locked by another process for over {} seconds", limit.as_secs())]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        limit: Duration,
    },
}
