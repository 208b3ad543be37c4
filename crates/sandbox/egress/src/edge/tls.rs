//! TLS on both sides of the edge: certificates of the authority inside, those that the world trusts outside.

use std::{fmt, io, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert, ServerSessionMemoryCache},
    sign::CertifiedKey,
};

use super::error::EdgeError;
use crate::refusal::Refusal;
use gloveport_allow_list::{Host, Name, Target};

/// The versions of HTTP that are spoken, the better one first.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// Sessions of one host that clients inside can take up again.
const SESSIONS: usize = 32;

/// Which certificates of targets are trusted.
#[derive(Clone, Debug)]
pub struct Roots(RootCertStore);

impl Roots {
    /// Those that the system trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` say where they are, if they are set), and
    /// Mozilla's if it has none.
    pub fn of_system() -> Self {
        let mut store = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "some certificates of the system cannot be read");
        }
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            tracing::debug!("the system has no certificates; those of Mozilla are used");
            store.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        }
        Self(store)
    }

    /// Those of this PEM text, in which other things may stand, too.
    pub fn of_text(pem: &str) -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok));
        Self(store)
    }

    /// These and what this PEM text has.
    pub fn and(mut self, pem: &str) -> Result<Self, EdgeError> {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| EdgeError::Roots(error.to_string()))?;
            self.0.add(certificate).map_err(|error| EdgeError::Roots(error.to_string()))?;
        }
        Ok(self)
    }
}

/// TLS to targets. Sessions are taken up again over all connections of a sandbox.
#[derive(Clone)]
pub(crate) struct Outside {
    any: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
}

/// Which versions of HTTP a target is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// What the target likes best.
    Any,
    /// The one that knows upgrades.
    Http1,
}

impl Outside {
    pub(crate) fn new(roots: Roots) -> Result<Self, EdgeError> {
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let mut any = builder.with_root_certificates(roots.0).with_no_client_auth();
        let mut http1 = any.clone();
        any.alpn_protocols = HTTP.map(<[u8]>::to_vec).into();
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { any: Arc::new(any), http1: Arc::new(http1) })
    }

    pub(crate) fn connector(&self, versions: Versions) -> tokio_rustls::TlsConnector {
        let config = match versions {
            Versions::Any => &self.any,
            Versions::Http1 => &self.http1,
        };
        Arc::clone(config).into()
    }
}

/// Whom the certificate of a target must name.
pub(crate) fn server_name(target: &Target) -> Result<ServerName<'static>, Refusal> {
    match &target.host {
        Host::Address(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Name(name) => ServerName::try_from(name.to_string()).map_err(|_| Refusal::Tls {
            target: target.clone(),
            reason: "no certificate can have this name".to_owned(),
        }),
    }
}

/// Why TLS to a target did not begin.
pub(crate) fn failed(target: &Target, error: &io::Error) -> Refusal {
    let (target, reason) = (target.clone(), error.to_string());
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match of_tls {
        Some(rustls::Error::InvalidCertificate(_)) => Refusal::Untrusted { target, reason },
        _ => Refusal::Tls { target, reason },
    }
}

/// TLS for one host towards the sandbox.
pub(crate) fn inside(host: &Host, key: Arc<CertifiedKey>) -> Result<Arc<ServerConfig>, EdgeError> {
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let name = match host {
        Host::Name(name) => Some(name.clone()),
        Host::Address(_) => None,
    };
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(OneHost { name, key }));
    config.alpn_protocols = HTTP.map(<[u8]>::to_vec).into();
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificate of one host, for whoever asks for it or for none.
struct OneHost {
    /// `None` if it is an address, which a handshake does not name.
    name: Option<Name>,
    key: Arc<CertifiedKey>,
}

impl fmt::Debug for OneHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneHost").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for OneHost {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name().map(Name::parse);
        let fits = asked.is_none_or(|asked| asked.is_ok() && asked.ok() == self.name);
        fits.then(|| Arc::clone(&self.key))
    }
}
