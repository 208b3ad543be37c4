//! Who asks, and what is whose.
//!
//! Each tenant has names of its own for its sessions. The engine has one name for each session of anybody: that of the
//! tenant `default` as it is, and of others a digest, which labels translate back.

use std::{collections::BTreeMap, net::IpAddr};

use gloveport_gateway_store::Tenant;
use gloveport_provider::{Sandbox, SessionId};
use sha2::{Digest as _, Sha256};

use crate::fault::Fault;

/// The tenant of the key file, and the only one without a database.
pub(crate) const DEFAULT: &str = "default";
/// The label of sandboxes of other tenants.
const TENANT: &str = "gloveport-tenant";
/// The label with the name that the tenant has for the session, where the engine's is another.
const SESSION: &str = "gloveport-session";
/// What names of sessions begin with that are digests.
const DIGEST: &str = "gps-";
/// Bytes of a digest.
const BYTES: usize = 20;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The tenant; `None` without a database.
    pub(crate) tenant: Option<Box<Tenant>>,
    /// The id of the key, if it is one of the database.
    pub(crate) key: Option<String>,
    /// Where the request comes from.
    pub(crate) address: Option<IpAddr>,
}

impl Identity {
    /// The name of the tenant.
    pub(crate) fn name(&self) -> &str {
        self.tenant.as_ref().map_or(DEFAULT, |tenant| &tenant.name)
    }
}

/// The engine's name of a session.
pub(crate) fn engine_session(tenant: &str, session: &SessionId) -> Result<SessionId, Fault> {
    let text = session.as_str();
    let is_like_digest = text
        .strip_prefix(DIGEST)
        .is_some_and(|rest| rest.len() == 2 * BYTES && rest.bytes().all(|it| it.is_ascii_hexdigit()));
    if tenant == DEFAULT && !is_like_digest {
        return Ok(session.clone());
    }
    // Names of tenants have no slash, so that no two pairs are one text.
    let digest = Sha256::digest(format!("{tenant}/{text}").as_bytes());
    SessionId::new(format!("{DIGEST}{}", gloveport_ids::hex(&digest[..BYTES])))
        .map_err(|error| Fault::wrong(error.to_string()))
}

/// The labels that tell whose a sandbox is.
pub(crate) fn labels(tenant: &str, session: &SessionId, engine: &SessionId) -> BTreeMap<String, String> {
    let tenant = (tenant != DEFAULT).then(|| (TENANT.to_owned(), tenant.to_owned()));
    let session = (session != engine).then(|| (SESSION.to_owned(), session.to_string()));
    tenant.into_iter().chain(session).collect()
}

/// The label by which sandboxes of a tenant are listed.
pub(crate) fn filter(tenant: &str) -> Option<(String, String)> {
    (tenant != DEFAULT).then(|| (TENANT.to_owned(), tenant.to_owned()))
}

/// Whose a sandbox is, by its labels.
pub(crate) fn tenant_of(sandbox: &Sandbox) -> &str {
    sandbox.labels.get(TENANT).map_or(DEFAULT, String::as_str)
}

/// What its tenant calls the session of a sandbox, by its labels.
pub(crate) fn session_of(sandbox: &Sandbox) -> SessionId {
    let told = sandbox.labels.get(SESSION).and_then(|text| SessionId::new(text).ok());
    told.unwrap_or_else(|| sandbox.session_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tenants_share_a_session_of_the_engine() {
        let engine = |tenant: &str, session: &str| engine_session(tenant, &SessionId::new(session).unwrap()).unwrap();
        assert_eq!(engine(DEFAULT, "a.b").as_str(), "a.b");
        let digest = engine("one", "a");
        assert_ne!(digest, engine("two", "a"));
        assert_ne!(digest, engine("one", "b"));
        assert_eq!(digest, engine("one", "a"));
        // The default tenant cannot name the session of another one.
        let forged = engine(DEFAULT, digest.as_str());
        assert_ne!(forged, digest);
        let long = "a".repeat(128);
        assert_ne!(engine("one", &long), engine(DEFAULT, &long));
        let session = SessionId::new("a").unwrap();
        assert_eq!(labels("one", &session, &digest).len(), 2);
        assert!(labels(DEFAULT, &session, &session).is_empty());
    }
}
