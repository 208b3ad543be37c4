//! Who asks, and what is whose.
//!
//! Each tenant has names of its own for its sessions. The engine has one name for each session of anybody: that of the
//! tenant `default` as it is, and of others a digest, which labels translate back. Engines make ids of sandboxes of these
//! names, so the digest has a secret of the database in it.

use std::{collections::BTreeMap, net::IpAddr};

use gloveport_gateway_store::{Store, Tenant};
use gloveport_provider::{Sandbox, SessionId};

use crate::fault::Fault;

/// The tenant of the key file, and the only one without a database.
pub(crate) const DEFAULT: &str = "default";
/// The label of sandboxes of other tenants.
const TENANT: &str = "gloveport-tenant";
/// The label with the name that the tenant has for the session, where the engine's is another.
const SESSION: &str = "gloveport-session";
/// What names of sessions begin with that are digests.
const DIGEST: &str = "gps-";
/// Digits of a digest.
const DIGITS: usize = 40;

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

/// The engine's name of a session. Without a database all sessions are of one tenant.
pub(crate) fn engine_session(store: Option<&Store>, tenant: &str, session: &SessionId) -> Result<SessionId, Fault> {
    let text = session.as_str();
    let is_digest = |rest: &str| rest.len() == DIGITS && rest.bytes().all(|it| it.is_ascii_hexdigit());
    let Some(store) = store.filter(|_| tenant != DEFAULT || text.strip_prefix(DIGEST).is_some_and(is_digest)) else {
        return Ok(session.clone());
    };
    // Names of tenants have no slash, so that no two pairs are one text.
    let digest = store.digest(&format!("{tenant}/{text}"));
    SessionId::new(format!("{DIGEST}{digest}")).map_err(|error| Fault::wrong(error.to_string()))
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

    #[tokio::test]
    async fn no_two_tenants_share_a_session_of_the_engine_and_nobody_can_guess_one() {
        let directory = tempfile::tempdir().unwrap();
        let open = async |name: &str| {
            Store::open(&gloveport_gateway_store::Location::File(directory.path().join(name))).await.unwrap()
        };
        let (store, again, other) = (open("a").await, open("a").await, open("b").await);
        let name = |store: &Store, tenant: &str, session: &str| {
            engine_session(Some(store), tenant, &SessionId::new(session).unwrap()).unwrap()
        };
        assert_eq!(name(&store, DEFAULT, "a.b").as_str(), "a.b");
        let digest = name(&store, "one", "a");
        assert_eq!(digest.as_str().len(), DIGEST.len() + DIGITS);
        assert_eq!(digest, name(&again, "one", "a"));
        assert_ne!(digest, name(&store, "two", "a"));
        assert_ne!(digest, name(&store, "one", "b"));
        // Who knows the names but not the database does not find it.
        assert_ne!(digest, name(&other, "one", "a"));
        // The default tenant cannot name the session of another one.
        assert_ne!(name(&store, DEFAULT, digest.as_str()), digest);
        let long = "a".repeat(128);
        assert_ne!(name(&store, "one", &long), name(&store, DEFAULT, &long));
        let session = SessionId::new("a").unwrap();
        assert_eq!(labels("one", &session, &digest).len(), 2);
        assert!(labels(DEFAULT, &session, &session).is_empty());
    }
}
