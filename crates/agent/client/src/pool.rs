//! The connections that all sessions share.

use std::{
    sync::{Once, OnceLock},
    time::Duration,
};

use reqwest::{Client, ClientBuilder, redirect};

use crate::ClientError;

/// Time to make a connection. It is one value for all requests because the connections belong to the pool and not to
/// a request; a request with a smaller limit ends earlier.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Whether certificates of servers are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certificates {
    /// They must be valid.
    #[default]
    Checked,
    /// Any is taken: for test set-ups only.
    Unchecked,
}

/// Connections that are kept and used again. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(crate) http: Client,
}

impl Pool {
    /// The pool of this process (`action-execution-client` 1), with checked certificates.
    pub fn shared() -> Result<Self, ClientError> {
        static SHARED: OnceLock<Pool> = OnceLock::new();
        if let Some(pool) = SHARED.get() {
            return Ok(pool.clone());
        }
        let pool = Self::new(Certificates::Checked)?;
        Ok(SHARED.get_or_init(|| pool).clone())
    }

    /// The HTTP client itself, for requests that this crate has no function for.
    pub const fn http(&self) -> &Client {
        &self.http
    }

    /// A pool of its own.
    ///
    /// It also works where the system has no certificates: then the bundled ones are used.
    pub fn new(certificates: Certificates) -> Result<Self, ClientError> {
        // A redirect is an answer like others, and counts as a failure (`action-execution-client` 1 and 2.1).
        Self::with_redirects(certificates, redirect::Policy::none)
    }

    /// A pool of its own that follows the redirects of this policy.
    pub fn with_redirects(certificates: Certificates, policy: fn() -> redirect::Policy) -> Result<Self, ClientError> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // Fails only if one is installed already, which does as well.
            let _installed_before = rustls::crypto::ring::default_provider().install_default();
        });
        if let Ok(http) = builder(certificates, policy()).build() {
            return Ok(Self { http });
        }
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .map(|der| reqwest::Certificate::from_der(der))
            .collect::<Result<Vec<_>, _>>()
            .map_err(ClientError::NoHttp)?;
        let http = builder(certificates, policy()).tls_certs_only(roots).build().map_err(ClientError::NoHttp)?;
        Ok(Self { http })
    }
}

fn builder(certificates: Certificates, redirects: redirect::Policy) -> ClientBuilder {
    let builder = Client::builder().connect_timeout(CONNECT_LIMIT).redirect(redirects);
    match certificates {
        Certificates::Checked => builder,
        Certificates::Unchecked => builder.tls_danger_accept_invalid_certs(true),
    }
}
