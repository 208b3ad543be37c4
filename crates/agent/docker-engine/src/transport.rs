//! How an engine is reached. Names are resolved by a library, never by the C library: the binary is static.

use std::{fs::File, future::Future, io, path::Path, pin::Pin, sync::Arc};

use bollard::{BollardRequest, Docker};
use gloveport_resolver::Resolver;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

use crate::{Address, Endpoint, EngineError, Tls, engine::REQUEST};

/// A client of the engine. Nothing is sent yet.
pub(crate) fn connect(endpoint: &Endpoint) -> Result<Docker, EngineError> {
    let limit = REQUEST.as_secs();
    let made = match &endpoint.address {
        Address::Unix(path) => connect_to_socket(path, limit),
        Address::Pipe(path) => connect_to_pipe(path, limit),
        Address::Tcp { host, port, tls } => {
            let scheme = if tls.is_some() { "https" } else { "http" };
            let mut connector = HttpConnector::new_with_resolver(Resolver::default());
            connector.enforce_http(false);
            connector.set_nodelay(true);
            let tls = configuration(tls.as_ref()).map_err(|error| EngineError::Unreachable {
                endpoint: endpoint.to_string(),
                reason: format!("its certificates cannot be used: {error}"),
                hint: "look at DOCKER_CERT_PATH, or at the context's files".to_owned(),
            })?;
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let address = format!("{scheme}://{host}:{port}");
            // Without TLS in the address it is not used.
            let client = Client::builder(TokioExecutor::new()).build(HttpsConnector::from((connector, tls)));
            let transport = move |request: BollardRequest| {
                let client = client.clone();
                Box::pin(async move { client.request(request).await.map_err(bollard::errors::Error::from) })
                    as Pin<Box<dyn Future<Output = _> + Send>>
            };
            Docker::connect_with_custom_transport(transport, Some(address), limit, bollard::API_DEFAULT_VERSION)
        }
    };
    made.map_err(|error| EngineError::of(endpoint, "be connected to", REQUEST, error))
}

#[cfg(unix)]
fn connect_to_socket(path: &Path, limit: u64) -> Result<Docker, bollard::errors::Error> {
    Docker::connect_with_unix(&path.to_string_lossy(), limit, bollard::API_DEFAULT_VERSION)
}

#[cfg(not(unix))]
fn connect_to_socket(path: &Path, _limit: u64) -> Result<Docker, bollard::errors::Error> {
    let reason = format!("{} is a socket, which only Unix has; use npipe:// or tcp://", path.display());
    Err(io::Error::new(io::ErrorKind::Unsupported, reason).into())
}

#[cfg(windows)]
fn connect_to_pipe(path: &Path, limit: u64) -> Result<Docker, bollard::errors::Error> {
    Docker::connect_with_named_pipe(&path.to_string_lossy(), limit, bollard::API_DEFAULT_VERSION)
}

#[cfg(not(windows))]
fn connect_to_pipe(path: &Path, _limit: u64) -> Result<Docker, bollard::errors::Error> {
    let reason = format!("{} is a named pipe, which only Windows has", path.display());
    Err(io::Error::new(io::ErrorKind::Unsupported, reason).into())
}

/// What makes sure who is who.
fn configuration(tls: Option<&Tls>) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let wrong = |error: rustls::Error| io::Error::other(error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let Some(tls) = tls else {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    };
    let builder = if tls.any_certificate {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    } else {
        let mut roots = RootCertStore::empty();
        let authority = tls.authority.as_deref().unwrap_or(Path::new("/etc/ssl/certs/ca-certificates.crt"));
        for certificate in certificates(authority)? {
            roots.add(certificate).map_err(wrong)?;
        }
        builder.with_root_certificates(roots)
    };
    match &tls.client {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| io::Error::other(format!("{}: {error}", key.display())))?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(wrong)
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let told = |error: String| io::Error::other(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| told(error.to_string()))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(file).collect();
    let all = all.map_err(|error| told(error.to_string()))?;
    if all.is_empty() { Err(told("no certificate is in it".to_owned())) } else { Ok(all) }
}

/// Takes any certificate, for contexts that say so. The signatures of the handshake are still checked.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
