//! A connection to an engine, made when it is needed first.

use std::{future::Future, time::Duration};

use bollard::Docker;
use tokio::{sync::OnceCell, time::timeout};

use crate::{Endpoint, EngineError, transport};

/// Limit of the first question.
const HELLO: Duration = Duration::from_secs(10);
const SAY_VERSION: &str = "say its version";
/// Limit of one request, until its answer begins.
pub(crate) const REQUEST: Duration = Duration::from_mins(2);

/// An engine. The connection is made, and its version asked for, when it is used first; each request has a time limit.
#[derive(Debug)]
pub struct Engine {
    endpoint: Endpoint,
    connected: OnceCell<(Docker, About)>,
}

/// What an engine says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its version, such as `20.10.24`.
    pub version: String,
    /// The version of its interface, such as `1.41`.
    pub api: String,
    /// It is Podman.
    pub podman: bool,
    /// Its processors in the words of images: `amd64`, `arm64`.
    pub architecture: String,
    /// Its system: `linux`.
    pub system: String,
}

impl Engine {
    /// An engine that is not connected yet.
    pub const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, connected: OnceCell::const_new() }
    }

    /// Which engine it is.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The client of the library, for requests by [`ask`](Self::ask).
    pub async fn docker(&self) -> Result<&Docker, EngineError> {
        Ok(&self.connect().await?.0)
    }

    /// What it says about itself.
    pub async fn about(&self) -> Result<&About, EngineError> {
        Ok(&self.connect().await?.1)
    }

    /// Whoever comes while another one connects waits for that, but not for all who come before.
    async fn connect(&self) -> Result<&(Docker, About), EngineError> {
        let connected = self.connected.get_or_try_init(|| async {
            let docker = transport::connect(&self.endpoint)?;
            let docker = self.within(HELLO, SAY_VERSION, docker.negotiate_version()).await?;
            let version = self.within(HELLO, SAY_VERSION, docker.version()).await?;
            let podman = version.components.iter().flatten().any(|part| part.name.starts_with("Podman"));
            let about = About {
                version: version.version.unwrap_or_default(),
                api: docker.client_version().to_string(),
                podman,
                architecture: version.arch.unwrap_or_default(),
                system: version.os.unwrap_or_default(),
            };
            Ok((docker, about))
        });
        timeout(HELLO, connected).await.unwrap_or_else(|_| {
            let (endpoint, action) = (self.endpoint.to_string(), SAY_VERSION.to_owned());
            Err(EngineError::Timeout { endpoint, action, limit: HELLO })
        })
    }

    /// Waits for an answer, and explains what is wrong. `action` completes "the engine could not …".
    pub async fn ask<T>(
        &self,
        action: &str,
        request: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, EngineError> {
        self.within(REQUEST, action, request).await
    }

    /// The same with a limit of its own.
    pub async fn within<T>(
        &self,
        limit: Duration,
        action: &str,
        request: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, EngineError> {
        match timeout(limit, request).await {
            Ok(answer) => answer.map_err(|error| self.explain(action, limit, error)),
            Err(_) => {
                Err(EngineError::Timeout { endpoint: self.endpoint.to_string(), action: action.to_owned(), limit })
            }
        }
    }

    /// An error of the library in words.
    pub fn explain(&self, action: &str, limit: Duration, error: bollard::errors::Error) -> EngineError {
        EngineError::of(&self.endpoint, action, limit, error)
    }
}
