//! The certificate authority of one sandbox at work.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use gloveport_allow_list::Host;
use gloveport_edge::{Authority, valid_for};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::EdgeError;

const DAY: Duration = Duration::from_hours(24);
/// How long a certificate of a host is valid; Apple's systems take none of more than 398 days.
const LEAF_LASTS: Duration = DAY.saturating_mul(396);

/// Makes an authority ready to sign.
pub(crate) fn signer(authority: &Authority) -> Result<Signer, EdgeError> {
    let certificate = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).map_err(wrong)?;
    let key = PrivateKeyDer::from_pem_slice(authority.key_pem().as_bytes()).map_err(wrong)?;
    let key = ring::sign::any_supported_type(&key)?;
    // A key of another certificate would sign what nobody trusts.
    CertifiedKey::new(vec![certificate.clone()], key).keys_match()?;
    let key = KeyPair::from_pem(authority.key_pem()).map_err(wrong)?;
    Ok(Signer { issuer: Issuer::from_ca_cert_der(&certificate, key).map_err(wrong)? })
}

/// Signs certificates of hosts.
pub(crate) struct Signer {
    issuer: Issuer<'static, KeyPair>,
}

impl Signer {
    /// A certificate for this host, with a key of its own: serial numbers come from keys, and must differ.
    pub(crate) fn leaf(&self, host: &Host) -> Result<Arc<CertifiedKey>, EdgeError> {
        let name = match host {
            Host::Name(name) => name.to_string(),
            Host::Address(IpAddr::V4(address)) => address.to_string(),
            Host::Address(IpAddr::V6(address)) => address.to_string(),
        };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(wrong)?;
        let mut params = CertificateParams::new([name]).map_err(wrong)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "gloveport");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        valid_for(&mut params, LEAF_LASTS);
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(wrong)?;
        let key = ring::sign::any_ecdsa_type(&key)?;
        Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
    }
}

fn wrong(error: impl fmt::Display) -> EdgeError {
    EdgeError::Authority(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (one, other) = (Authority::make("one").unwrap(), Authority::make("other").unwrap());
        assert!(signer(&one).is_ok());
        let mixed = serde_json::json!({"certificate": one.certificate_pem(), "key": other.key_pem()});
        assert!(signer(&serde_json::from_value(mixed).unwrap()).is_err());
    }

    #[test]
    fn certificates_of_hosts_differ() {
        let signer = signer(&Authority::make("one").unwrap()).unwrap();
        let host = Host::parse("example.com").unwrap();
        assert_ne!(signer.leaf(&host).unwrap().cert, signer.leaf(&host).unwrap().cert);
        for host in ["a_b.example.com", "192.0.2.1", "[2001:db8::1]"] {
            signer.leaf(&Host::parse(host).unwrap()).unwrap();
        }
    }
}
