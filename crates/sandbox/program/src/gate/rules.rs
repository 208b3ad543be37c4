//! What a gate lets through now, kept for the one that takes its place if it is killed.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    sync::{Mutex, PoisonError},
};

use gloveport_allow_list::Rules;
use gloveport_egress::{Policy, PolicyState};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

/// Two files without a name, written in turn, so that the one before is whole while the next one is written. A copy of this process
/// has them, too.
#[derive(Debug)]
pub(super) struct KeptRules {
    files: [File; 2],
    /// Number of what was written last; its file is that one's remainder.
    last: Mutex<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    number: u64,
    allowed: Vec<String>,
    denied: Vec<String>,
}

impl KeptRules {
    pub(super) fn new() -> io::Result<Self> {
        let file = || Ok::<_, io::Error>(File::from(memfd_create("rules", MemfdFlags::CLOEXEC)?));
        Ok(Self { files: [file()?, file()?], last: Mutex::new(0) })
    }

    /// What the gate before this one let through, or these where nothing has changed. Where that cannot be known it is nobody.
    pub(super) fn policy(&self, first: &[String]) -> anyhow::Result<Policy> {
        let (mut kept, mut was_written) = (Vec::new(), true);
        for file in &self.files {
            let mut text = String::new();
            let mut file = file;
            let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
            was_written &= read.is_err() || !text.is_empty();
            kept.extend(serde_json::from_str::<Kept>(&text));
        }
        match kept.into_iter().max_by_key(|kept| kept.number) {
            Some(Kept { number, allowed, denied }) => {
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = number;
                Ok(Policy::with(Rules::parse(&allowed)?, Rules::parse(&denied)?))
            }
            // A change that nobody was told of may be there in part.
            None if !was_written => Ok(Policy::new(Rules::parse(first)?)),
            None => {
                tracing::error!("the rules of the gate are lost, so it lets nobody through");
                Ok(Policy::new(Rules::default()))
            }
        }
    }

    /// Keeps these. Where that fails, whoever comes next lets nobody through.
    pub(super) fn keep(&self, state: &PolicyState) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = Kept {
            number: *last + 1,
            allowed: state.allowed.texts().collect(),
            denied: state.denied.texts().collect(),
        };
        let [even, odd] = &self.files;
        let mut file = if kept.number.is_multiple_of(2) { even } else { odd };
        let mut write = || {
            let text = serde_json::to_vec(&kept)?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        match write() {
            Ok(()) => *last = kept.number,
            Err(error) => {
                tracing::error!(%error, "the rules of the gate cannot be kept; if it is killed, the next one lets nobody through");
                for file in &self.files {
                    // One byte is no rules. A file that cannot even be cut has what it had.
                    let _as_it_was = file.set_len(1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Rules {
        Rules::parse(texts).unwrap()
    }

    fn told(policy: &Policy) -> (Vec<String>, Vec<String>) {
        let state = policy.state();
        (state.allowed.texts().collect(), state.denied.texts().collect())
    }

    #[test]
    fn the_last_rules_that_were_whole_count() {
        let kept = KeptRules::new().unwrap();
        let first = ["a.test".to_owned()];
        let policy = kept.policy(&first).unwrap();
        assert_eq!(told(&policy), (vec!["a.test".to_owned()], Vec::new()));
        // In the middle of the first change.
        kept.files[1].set_len(1).unwrap();
        assert_eq!(told(&kept.policy(&first).unwrap()), told(&policy));
        for host in ["b.test", "c.test:443", "10.0.0.0/8"] {
            policy.change(&rules(&[host]), &rules(&["a.test"])).unwrap();
            kept.keep(&policy.state());
            assert_eq!(told(&kept.policy(&first).unwrap()), told(&policy));
        }
        // In the middle of the fourth one.
        kept.files[0].set_len(5).unwrap();
        let again = kept.policy(&first).unwrap();
        assert_eq!(told(&again), told(&policy));
        again.change(&rules(&[]), &rules(&["b.test"])).unwrap();
        kept.keep(&again.state());
        assert_eq!(told(&kept.policy(&first).unwrap()), told(&again));
        for file in &kept.files {
            file.set_len(1).unwrap();
        }
        assert_eq!(told(&kept.policy(&first).unwrap()), (Vec::new(), Vec::new()));
    }
}
