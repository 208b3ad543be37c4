//! The certificate of the gateway: read from files, and read anew when they change. An authority may be who writes them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gloveport_acme::{Acme, AcmeError, AcmeOptions};
use rustls::{
    CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig,
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    server::{ClientHello, ParsedCertificate, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use tokio_rustls::TlsAcceptor;

/// What clients may speak over TLS, the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of a certificate, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and behind it those of who signed it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// Somebody writes these files.
    Files(TlsFiles),
    /// The gateway has it made.
    Acme(AcmeOptions),
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has something else in it.
    #[error("`{path}` has no {what} in PEM form")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is looked for.
        what: &'static str,
    },
    /// They are not a pair.
    #[error("the key in `{key}` does not belong to the certificate in `{certificate}`")]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// Clients would refuse it.
    #[error("the certificate in `{0}` has expired; put a new one there")]
    Expired(PathBuf),
    /// Clients would refuse it, or the clock is wrong.
    #[error("the certificate in `{0}` is not valid yet; look at the clock of this machine")]
    Early(PathBuf),
    /// No authority can be asked for it.
    #[error("no certificate can be had by ACME: {0}")]
    Acme(#[from] AcmeError),
    /// It is of a kind that is not known.
    #[error("the certificate in `{certificate}` cannot be used with the key in `{key}`: {reason}")]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        reason: Error,
    },
}

/// A certificate that is in use, and its files.
pub(crate) struct Tls {
    files: TlsFiles,
    /// What was read last, whether it could be used or not.
    read: Mutex<Option<Contents>>,
    current: Arc<Current>,
    acceptor: TlsAcceptor,
    acme: Option<Arc<Acme>>,
}

type Contents = [Vec<u8>; 2];

/// The certificate that clients see; none before an authority has made the first one.
#[derive(Debug)]
struct Current {
    pair: RwLock<Option<Arc<CertifiedKey>>>,
    acme: Option<Arc<Acme>>,
}

impl Current {
    fn set(&self, pair: CertifiedKey) {
        *self.pair.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pair));
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let Some(acme) = &self.acme
            && hello.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == gloveport_acme::PROTOCOL))
        {
            return acme.challenge(hello.server_name()?).map(Arc::new);
        }
        self.pair.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. Those of an authority may come later.
    pub(crate) fn new(source: TlsSource) -> Result<Self, TlsError> {
        let (files, acme) = match source {
            TlsSource::Files(files) => (files, None),
            TlsSource::Acme(options) => {
                let acme = Acme::new(options)?;
                (TlsFiles { certificate: acme.certificate(), key: acme.certificate() }, Some(Arc::new(acme)))
            }
        };
        let provider = Arc::new(ring::default_provider());
        let current = Arc::new(Current { pair: RwLock::new(None), acme: acme.clone() });
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12]);
        let builder = builder.map_err(|reason| files.unusable(reason))?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Current>::clone(&current);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        if acme.is_some() {
            config.alpn_protocols.push(gloveport_acme::PROTOCOL.to_vec());
        }
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let tls = Self { files, read: Mutex::new(None), current, acceptor, acme };
        match tls.refresh() {
            Ok(_) => {}
            // One that cannot be used is replaced by the authority.
            Err(error) if tls.acme.is_some() => tracing::info!(%error, "there is no certificate yet"),
            Err(error) => return Err(error),
        }
        Ok(tls)
    }

    /// What makes a connection a secure one.
    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Who has the certificate made, if nobody else writes its files.
    pub(crate) fn acme(&self) -> Option<&Arc<Acme>> {
        self.acme.as_ref()
    }

    /// Reads the files again, and says whether there is another certificate. With an error the old one stays in use; files
    /// that could not be used are told once, and tried again when they change.
    pub(crate) fn refresh(&self) -> Result<bool, TlsError> {
        let contents = self.files.read()?;
        {
            let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            if read.as_ref() == Some(&contents) {
                return Ok(false);
            }
            *read = Some(contents.clone());
        }
        let pair = self.files.pair(&contents, &ring::default_provider())?;
        self.current.set(pair);
        Ok(true)
    }
}

impl TlsFiles {
    /// Whether they can be used now.
    ///
    /// # Errors
    ///
    /// They cannot be read, are no pair, or clients would refuse the certificate for its dates.
    pub fn check(&self) -> Result<(), TlsError> {
        self.pair(&self.read()?, &ring::default_provider()).map(drop)
    }

    /// The names of hosts that the certificate is not for; all of them if it cannot be used.
    pub fn missing_names(&self, names: &[String]) -> Vec<String> {
        let pair = self.read().and_then(|contents| self.pair(&contents, &ring::default_provider()));
        let is_for = |name: &String| {
            let own = pair.as_ref().ok()?.end_entity_cert().and_then(ParsedCertificate::try_from).ok()?;
            verify_server_name(&own, &ServerName::try_from(name.clone()).ok()?).ok()
        };
        names.iter().filter(|name| is_for(name).is_none()).cloned().collect()
    }

    /// Whether the certificate that can be used now cannot be used after this time.
    pub fn ends_within(&self, time: Duration) -> bool {
        let provider = ring::default_provider();
        let Ok(pair) = self.read().and_then(|contents| self.pair(&contents, &provider)) else { return false };
        let later = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + time;
        matches!(self.check_dates_at(&pair, &provider, UnixTime::since_unix_epoch(later)), Err(TlsError::Expired(_)))
    }

    fn read(&self) -> Result<Contents, TlsError> {
        let read = |path: &Path| fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source });
        Ok([read(&self.certificate)?, read(&self.key)?])
    }

    fn pair(&self, [certificate, key]: &Contents, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
        let none = |path: &Path, what| TlsError::Pem { path: path.to_owned(), what };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| none(&self.certificate, "certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| none(&self.key, "private key without a password"))?;
        let pair = CertifiedKey::from_der(chain, key, provider).map_err(|reason| match reason {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { certificate: self.certificate.clone(), key: self.key.clone() }
            }
            reason => self.unusable(reason),
        })?;
        self.check_dates(&pair, provider)?;
        Ok(pair)
    }

    /// Whether clients would take the certificate at this time. Who signed it is left to them.
    fn check_dates(&self, pair: &CertifiedKey, provider: &CryptoProvider) -> Result<(), TlsError> {
        self.check_dates_at(pair, provider, UnixTime::now())
    }

    fn check_dates_at(&self, pair: &CertifiedKey, provider: &CryptoProvider, time: UnixTime) -> Result<(), TlsError> {
        let own = pair.end_entity_cert().and_then(ParsedCertificate::try_from);
        let own = own.map_err(|reason| self.unusable(reason))?;
        let (roots, algorithms) = (RootCertStore::empty(), provider.signature_verification_algorithms.all);
        match verify_server_cert_signed_by_trust_anchor(&own, &roots, &[], time, algorithms) {
            Err(Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
                Err(TlsError::Expired(self.certificate.clone()))
            }
            Err(Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => Err(TlsError::Early(self.certificate.clone())),
            _ => Ok(()),
        }
    }

    fn unusable(&self, reason: Error) -> TlsError {
        TlsError::Unusable { certificate: self.certificate.clone(), key: self.key.clone(), reason }
    }
}
