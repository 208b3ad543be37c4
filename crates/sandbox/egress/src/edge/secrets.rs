//! The edge of one sandbox: its secrets, and TLS on both sides.

use std::{fmt, sync::Arc};

use super::{
    authority::signer,
    config::check,
    error::EdgeError,
    site::{Site, Sites},
    tls::{Outside, Roots},
    used::{Used, Uses},
};
use gloveport_allow_list::Target;
use gloveport_edge::EdgeConfig;

/// The edge of one sandbox. Clones are the same edge.
#[derive(Clone)]
pub struct Edge {
    sites: Arc<Sites>,
    outside: Outside,
    uses: Uses,
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut secrets = f.debug_map();
        for (name, hosts) in self.sites.told() {
            secrets.entry(&name, &hosts.to_string());
        }
        secrets.finish()
    }
}

impl Edge {
    /// Checks what is to be done, and makes it ready. Targets must have certificates of these roots, whatever it says of them.
    pub fn new(config: EdgeConfig, roots: Roots) -> Result<Self, EdgeError> {
        let EdgeConfig { secrets, authority, .. } = config;
        check(&secrets)?;
        let sites = Arc::new(Sites::new(secrets, signer(&authority)?)?);
        Ok(Self { sites, outside: Outside::new(roots)?, uses: Uses::new() })
    }

    /// The same edge, which tells of each use of a secret. It must not wait for anything.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Fn(&Used<'_>) + Send + Sync>) -> Self {
        Self { uses: self.uses.observed_by(observer), ..self }
    }

    /// The target, if a secret goes to it.
    pub(crate) fn site(&self, target: &Target) -> Result<Option<Arc<Site>>, EdgeError> {
        self.sites.site(target)
    }

    /// TLS to targets.
    pub(crate) fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Who hears of uses.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }
}
