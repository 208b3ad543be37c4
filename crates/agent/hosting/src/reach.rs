//! From a sandbox to a client of its server.

use gloveport_client::{ActionExecutionClient, ClientError, ClientOptions};
use gloveport_protocol::Secret;
use gloveport_provider::{Sandbox, SandboxId};

/// Why nobody can ask the server of a sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// Its engine gives it no URL, or not yet.
    #[error("the sandbox `{0}` has no URL, and so cannot be reached")]
    NoUrl(SandboxId),
    /// Its URL or its headers cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// These options for the server of a sandbox: with its URL, its key, and the headers that its engine asks for. `None`
/// where it has no URL.
pub fn client_options(sandbox: &Sandbox, options: ClientOptions) -> Option<ClientOptions> {
    let mut headers = options.headers;
    headers.extend(sandbox.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
    Some(ClientOptions {
        url: sandbox.url.clone()?,
        session_key: sandbox.session_key.as_ref().map(|key| Secret::expose(key).to_owned()),
        headers,
        ..options
    })
}

/// A client of the server of a sandbox.
///
/// # Errors
///
/// The sandbox has no URL, or one that cannot be used.
pub fn client(sandbox: &Sandbox) -> Result<ActionExecutionClient, Unreachable> {
    let options = client_options(sandbox, ClientOptions::new(""));
    Ok(ActionExecutionClient::new(&options.ok_or_else(|| Unreachable::NoUrl(sandbox.id.clone()))?)?)
}
