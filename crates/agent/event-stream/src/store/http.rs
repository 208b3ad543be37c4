//! How stores reach other machines.

use std::{sync::Once, time::Duration};

use reqwest::{Client, ClientBuilder, redirect};

use super::StoreError;

/// Time that requests of a store may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// To make a connection.
    pub connect: Duration,
    /// For one request with its answer. A request with a content has a second more for each MiB of it.
    pub request: Duration,
    /// For a request to a bucket, if the first attempts fail in a way that may pass: all attempts and the pauses between
    /// them.
    pub all_attempts: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            all_attempts: Duration::from_mins(1),
        }
    }
}

impl HttpLimits {
    /// Time for one request with a content of this many bytes.
    pub(super) fn request_with(&self, bytes: usize) -> Duration {
        self.request + Duration::from_secs(u64::try_from(bytes >> 20).unwrap_or(0))
    }
}

/// An HTTP client. It also works where the system has no certificates: then the bundled ones are used.
pub(super) fn client(limits: HttpLimits) -> Result<Client, StoreError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only if one is installed already, which does as well.
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
    });
    if let Ok(client) = builder(limits).build() {
        return Ok(client);
    }
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|der| reqwest::Certificate::from_der(der))
        .collect::<Result<Vec<_>, _>>()
        .map_err(StoreError::NoHttp)?;
    builder(limits).tls_certs_only(roots).build().map_err(StoreError::NoHttp)
}

fn builder(limits: HttpLimits) -> ClientBuilder {
    // Headers with keys are not sent to where a redirect points.
    Client::builder().connect_timeout(limits.connect).redirect(redirect::Policy::none())
}
