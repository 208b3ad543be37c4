//! The certificate authority of one sandbox.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

const DAY: Duration = Duration::from_hours(24);
/// How long the sandbox can trust an authority: longer than it lives.
const LASTS: Duration = DAY.saturating_mul(3650);

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate authority: {0}")]
pub struct AuthorityError(#[from] rcgen::Error);

/// The certificate authority of one sandbox, which nobody else trusts.
#[derive(Clone, Serialize, Deserialize)]
pub struct Authority {
    #[serde(rename = "certificate")]
    certificate_pem: String,
    #[serde(rename = "key")]
    key_pem: Zeroizing<String>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new one. The name is what people read in the list of certificates.
    pub fn make(name: &str) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid_for(&mut params, LASTS);
        let certificate = params.self_signed(&key)?;
        Ok(Self { certificate_pem: certificate.pem(), key_pem: Zeroizing::new(key.serialize_pem()) })
    }

    /// What the sandbox must trust, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Its key, as PEM.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }
}

/// Makes a certificate valid for this long, from yesterday on, for clocks that differ.
pub fn valid_for(params: &mut CertificateParams, time: Duration) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = date_time_ymd(1970, 1, 1) + now;
    (params.not_before, params.not_after) = (now - DAY, now + time);
}
