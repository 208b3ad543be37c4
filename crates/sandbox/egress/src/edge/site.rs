//! What is known of one target that secrets go to.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustls::ServerConfig;

use super::{
    authority::Signer,
    config::{HTTPS_PORT, names},
    error::EdgeError,
    rewrite::Bound,
    tls,
};
use gloveport_allow_list::{Rules, Target};
use gloveport_edge::EdgeSecret;

/// Targets that are remembered; the oldest is forgotten for the next, and made anew when it is asked for again.
const MOST_SITES: usize = 256;
/// Time after which a certificate is made anew, long before it ends.
const RENEWED_AFTER: Duration = Duration::from_hours(24 * 30);

/// A target that secrets go to.
pub(crate) struct Site {
    pub(crate) bound: Bound,
    pub(crate) tls: Arc<ServerConfig>,
    made: Instant,
}

/// All of a sandbox.
pub(crate) struct Sites {
    secrets: Vec<(Rules, Arc<EdgeSecret>)>,
    signer: Signer,
    known: Mutex<Known>,
}

/// Those of the last time, in the order in which they came.
#[derive(Default)]
struct Known {
    sites: HashMap<Target, Arc<Site>>,
    order: VecDeque<Target>,
}

impl Sites {
    pub(crate) fn new(secrets: Vec<EdgeSecret>, signer: Signer) -> Result<Self, EdgeError> {
        let with_ports = |secret: EdgeSecret| (secret.hosts.clone().at_port(HTTPS_PORT), Arc::new(secret));
        let secrets: Vec<_> = secrets.into_iter().map(with_ports).collect();
        // What cannot be looked for in answers is told now, not when it is needed.
        Bound::new(secrets.iter().map(|(_, secret)| Arc::clone(secret)).collect())?;
        Ok(Self { secrets, signer, known: Mutex::default() })
    }

    /// Whether a secret goes to this target.
    pub(crate) fn has(&self, target: &Target) -> bool {
        self.of(target).next().is_some()
    }

    /// The target, if a secret goes to it.
    pub(crate) fn site(&self, target: &Target) -> Result<Option<Arc<Site>>, EdgeError> {
        if !self.has(target) {
            return Ok(None);
        }
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).find(target) {
            return Ok(Some(known));
        }
        let bound = Bound::new(self.of(target).cloned().collect())?;
        let tls = tls::inside(&target.host, self.signer.leaf(&target.host)?)?;
        let site = Arc::new(Site { bound, tls, made: Instant::now() });
        self.known.lock().unwrap_or_else(PoisonError::into_inner).add(target, &site);
        Ok(Some(site))
    }

    /// The names of all secrets, with where they go.
    pub(crate) fn told(&self) -> impl Iterator<Item = (&str, &Rules)> {
        self.secrets.iter().map(|(hosts, secret)| (secret.name.as_str(), hosts))
    }

    fn of(&self, target: &Target) -> impl Iterator<Item = &Arc<EdgeSecret>> {
        self.secrets.iter().filter(|(hosts, _)| names(hosts, target)).map(|(_, secret)| secret)
    }
}

impl Known {
    fn find(&self, target: &Target) -> Option<Arc<Site>> {
        self.sites.get(target).filter(|site| site.made.elapsed() < RENEWED_AFTER).cloned()
    }

    fn add(&mut self, target: &Target, site: &Arc<Site>) {
        if self.sites.insert(target.clone(), Arc::clone(site)).is_none() {
            self.order.push_back(target.clone());
        }
        if self.order.len() > MOST_SITES
            && let Some(oldest) = self.order.pop_front()
        {
            self.sites.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::authority::signer;
    use gloveport_edge::Authority;
    use zeroize::Zeroizing;

    fn sites(hosts: &[&str]) -> Sites {
        let secret = EdgeSecret {
            name: "A".to_owned(),
            placeholder: "placeholder-of-a-1".to_owned(),
            value: Zeroizing::new("value-of-a".to_owned()),
            hosts: Rules::parse(hosts).unwrap(),
        };
        Sites::new(vec![secret], signer(&Authority::make("box").unwrap()).unwrap()).unwrap()
    }

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    #[test]
    fn targets_are_those_that_secrets_name() {
        let sites = sites(&["a.test", "*.b.test:8443", "10.0.0.0/8"]);
        for (text, expected) in [
            ("a.test:443", true),
            ("a.test:22", false),
            ("x.a.test:443", false),
            ("x.b.test:8443", true),
            ("x.b.test:443", false),
            ("b.test:8443", false),
            ("10.1.2.3:443", true),
            ("10.1.2.3:80", false),
        ] {
            assert_eq!(sites.site(&target(text)).unwrap().is_some(), expected, "{text}");
        }
    }

    #[test]
    fn sites_are_remembered_and_not_without_end() {
        let sites = sites(&["*.a.test"]);
        let first = sites.site(&target("first.a.test:443")).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &sites.site(&target("first.a.test:443")).unwrap().unwrap()));
        for index in 0..MOST_SITES {
            sites.site(&target(&format!("{index}.a.test:443"))).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &sites.site(&target("first.a.test:443")).unwrap().unwrap()));
        assert_eq!(sites.known.lock().unwrap().sites.len(), MOST_SITES);
    }
}
