//! Whom a gate lets through now, and whom it was asked for.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use gloveport_allow_list::{Host, Rules, Target};
use gloveport_audit::{Event, record};
use tokio::sync::watch;

use crate::refusal::Refusal;

/// Most rules of each kind.
const MOST_RULES: usize = 1000;
/// Hosts that are remembered.
const MOST_ASKED: usize = 256;

/// Why rules do not change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a gate has at most {MOST_RULES} rules of each kind; name networks or `*.HOST` instead of hosts")]
pub struct TooManyRules;

/// Whom a gate lets through now, and whom it was asked for. Clones are the same policy.
#[derive(Clone, Debug)]
pub struct Policy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rules: watch::Sender<Arc<Now>>,
    asked: Mutex<VecDeque<Asked>>,
}

/// The rules of a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Now {
    pub(crate) allowed: Rules,
    denied: Rules,
}

/// What a policy is at a moment.
#[derive(Clone, Debug)]
pub struct PolicyState {
    /// What is let through …
    pub allowed: Rules,
    /// … but for this.
    pub denied: Rules,
    /// Whom it was asked for lately, the last one at the end.
    pub asked: Vec<Asked>,
}

/// A host that somebody wanted to reach.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The host, and its port.
    pub target: Target,
    /// Whether it was let through the last time.
    pub allowed: bool,
    /// How often it was asked for.
    pub times: u64,
    /// When, the last time.
    pub last: SystemTime,
}

impl Policy {
    /// One that lets these through.
    pub fn new(allowed: Rules) -> Self {
        Self::with(allowed, Rules::default())
    }

    /// One that lets these through, but for those.
    pub fn with(allowed: Rules, denied: Rules) -> Self {
        let (rules, _) = watch::channel(Arc::new(Now { allowed, denied }));
        Self(Arc::new(Shared { rules, asked: Mutex::default() }))
    }

    /// Lets more through, and less. What is the same in both lists is let through no more.
    pub fn change(&self, allow: &Rules, deny: &Rules) -> Result<(), TooManyRules> {
        let mut changed = Ok(());
        self.0.rules.send_if_modified(|now| {
            let next = Now {
                allowed: now.allowed.clone().with(allow).without(deny),
                denied: now.denied.clone().without(allow).with(deny),
            };
            if next.allowed.len().max(next.denied.len()) > MOST_RULES {
                changed = Err(TooManyRules);
                return false;
            }
            *now = Arc::new(next);
            true
        });
        changed
    }

    /// What it is now.
    pub fn state(&self) -> PolicyState {
        let Now { allowed, denied } = (*self.now()).clone();
        PolicyState { allowed, denied, asked: self.asked().iter().cloned().collect() }
    }

    pub(crate) fn now(&self) -> Arc<Now> {
        Arc::clone(&self.0.rules.borrow())
    }

    /// Remembers that somebody wanted to reach a host.
    pub(crate) fn note(&self, target: &Target, allowed: bool) {
        record(|| Event::Connection { target: target.to_string(), allowed });
        let mut asked = self.asked();
        let before = asked.iter().position(|known| known.target == *target).and_then(|index| asked.remove(index));
        let times = before.map_or(0, |known| known.times).saturating_add(1);
        if asked.len() == MOST_ASKED {
            asked.pop_front();
        }
        asked.push_back(Asked { target: target.clone(), allowed, times, last: SystemTime::now() });
    }

    fn asked(&self) -> MutexGuard<'_, VecDeque<Asked>> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a connection leads now. Clones are those of the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way(Arc<Mutex<Option<(Target, IpAddr)>>>);

impl Way {
    /// It leads to this target from now on, at this address, unless that is denied.
    pub(crate) fn lead(&self, target: &Target, address: IpAddr, policy: &Policy) -> Result<(), Refusal> {
        *self.place() = Some((target.clone(), address.to_canonical()));
        // Whoever waits for its end sees what changes later.
        if self.is_denied(&policy.now()) { Err(Refusal::Denied { target: target.clone() }) } else { Ok(()) }
    }

    /// Returns when it leads to what is denied.
    pub(crate) async fn closed(&self, policy: &Policy) {
        let mut rules = policy.0.rules.subscribe();
        // The other end is here.
        let _ends_with_the_policy = rules.wait_for(|now| self.is_denied(now)).await;
    }

    fn is_denied(&self, now: &Now) -> bool {
        self.place()
            .as_ref()
            .is_some_and(|(target, address)| now.denies(target) || now.denies_address(*address, target.port))
    }

    fn place(&self) -> MutexGuard<'_, Option<(Target, IpAddr)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Now {
    /// Whether a host is kept from everybody as it is asked for.
    pub(crate) fn denies(&self, target: &Target) -> bool {
        match &target.host {
            Host::Name(name) => self.denied.allow_name(name, target.port),
            Host::Address(address) => self.denies_address(*address, target.port),
        }
    }

    /// Whether an address is, whatever name leads there.
    pub(crate) fn denies_address(&self, address: IpAddr, port: u16) -> bool {
        self.denied.allow_address(address, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Rules {
        Rules::parse(texts).unwrap()
    }

    fn target(text: &str) -> Target {
        Target::parse(text, Some(443)).unwrap()
    }

    #[test]
    fn the_last_word_about_a_host_counts_and_denials_count_more_than_wider_rules() {
        let policy = Policy::new(rules(&["*.a.test", "10.0.0.0/8"]));
        policy.change(&rules(&["b.test"]), &rules(&["x.a.test", "10.1.0.0/16"])).unwrap();
        let now = policy.now();
        assert!(now.denies(&target("x.a.test")) && !now.denies(&target("y.a.test")));
        assert!(now.denies(&target("10.1.2.3")) && !now.denies(&target("10.2.2.3")));
        policy.change(&rules(&["x.a.test"]), &rules(&["b.test"])).unwrap();
        let state = policy.state();
        assert_eq!(state.allowed.to_string(), "*.a.test, 10.0.0.0/8, x.a.test");
        assert_eq!(state.denied.to_string(), "10.1.0.0/16, b.test");
    }

    #[test]
    fn there_are_bounds_for_rules_and_for_what_is_remembered() {
        let policy = Policy::new(Rules::default());
        let many = |count: usize| Rules::parse((0..count).map(|number| format!("h{number}.test"))).unwrap();
        assert_eq!(policy.change(&many(MOST_RULES + 1), &Rules::default()), Err(TooManyRules));
        assert!(policy.state().allowed.is_empty());
        policy.change(&many(MOST_RULES), &Rules::default()).unwrap();
        for number in 0..=MOST_ASKED {
            policy.note(&target(&format!("h{number}.test")), true);
        }
        policy.note(&target("h1.test"), false);
        let asked = policy.state().asked;
        let last = asked.last().unwrap();
        assert_eq!(
            (asked.len(), last.target.to_string(), last.times, last.allowed),
            (MOST_ASKED, "h1.test:443".to_owned(), 2, false)
        );
    }

    #[tokio::test]
    async fn who_has_a_connection_hears_of_its_denial() {
        let policy = Policy::new(rules(&["a.test"]));
        let way = Way::default();
        way.lead(&target("a.test"), "10.0.0.1".parse().unwrap(), &policy).unwrap();
        let closed = way.closed(&policy);
        tokio::pin!(closed);
        assert!(futures_util::poll!(closed.as_mut()).is_pending());
        policy.change(&Rules::default(), &rules(&["b.test"])).unwrap();
        assert!(futures_util::poll!(closed.as_mut()).is_pending());
        policy.change(&Rules::default(), &rules(&["10.0.0.0/24"])).unwrap();
        closed.await;
        assert!(way.lead(&target("b.test"), "10.1.0.1".parse().unwrap(), &policy).is_err());
    }
}
