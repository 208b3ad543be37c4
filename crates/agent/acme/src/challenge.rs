//! How it is shown that names are ours.

use std::path::Path;

use instant_acme::{AuthorizationHandle, ChallengeType, Identifier};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

use crate::{
    AcmeError,
    hook::{self, Record},
    order::authority,
    store::Store,
};

/// What is there for the authority to see. It is removed when the order is over, however it ends.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    store: &'a Store,
    dns_hook: Option<&'a Path>,
    names: Vec<String>,
    records: Vec<Record>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(store: &'a Store, dns_hook: Option<&'a Path>) -> Self {
        Self { store, dns_hook, names: Vec::new(), records: Vec::new() }
    }

    /// Shows that a name is ours. The authority is not told yet.
    pub(crate) async fn show(&mut self, mut authorization: AuthorizationHandle<'_>) -> Result<(), AcmeError> {
        let kind = self.kind();
        let (identifier, wildcard) = {
            let it = authorization.identifier();
            (it.identifier.clone(), it.wildcard)
        };
        let Identifier::Dns(name) = identifier else {
            return Err(AcmeError::Name(format!("{identifier:?}")));
        };
        let shown = if wildcard { format!("*.{name}") } else { name.clone() };
        let Some(challenge) = authorization.challenge(kind) else {
            let what = if self.dns_hook.is_some() { "DNS-01" } else { "TLS-ALPN-01" };
            let reason = format!("it does not offer the challenge {what}");
            return Err(AcmeError::Refused { name: shown, reason });
        };
        let answer = challenge.key_authorization();
        if let Some(program) = self.dns_hook {
            let record = Record { name: format!("_acme-challenge.{name}"), value: answer.dns_value() };
            hook::change(program, "add", &record).await?;
            self.records.push(record);
        } else {
            self.store.set_challenge(&name, &certificate(&name, answer.digest().as_ref())?)?;
            self.names.push(name);
        }
        Ok(())
    }

    /// Tells the authority that it can look.
    pub(crate) async fn ready(&self, mut authorization: AuthorizationHandle<'_>) -> Result<(), AcmeError> {
        if let Some(mut challenge) = authorization.challenge(self.kind()) {
            challenge.set_ready().await.map_err(authority("the challenge could not be begun"))?;
        }
        Ok(())
    }

    /// Removes all of it.
    pub(crate) async fn remove(self) {
        for name in &self.names {
            self.store.remove_challenge(name);
        }
        if let Some(program) = self.dns_hook {
            for record in &self.records {
                if let Err(error) = hook::change(program, "remove", record).await {
                    tracing::warn!(%error, "a record of the DNS is left");
                }
            }
        }
    }

    fn kind(&self) -> ChallengeType {
        if self.dns_hook.is_some() { ChallengeType::Dns01 } else { ChallengeType::TlsAlpn01 }
    }
}

/// The certificate of a challenge, with its key (RFC 8737, 3).
pub(crate) fn certificate(name: &str, digest: &[u8]) -> Result<String, AcmeError> {
    let failed = |source| AcmeError::Make { what: "the certificate of a challenge", source };
    let mut made = CertificateParams::new([name.to_owned()]).map_err(failed)?;
    made.distinguished_name = DistinguishedName::new();
    made.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().map_err(failed)?;
    let signed = made.self_signed(&key).map_err(failed)?;
    Ok(format!("{}{}", key.serialize_pem(), signed.pem()))
}
