//! Answers that last: logs that are followed, and events. Each tenant may have some.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::StatusCode;

use crate::fault::Fault;

/// Most of one tenant.
const MOST_OF_TENANT: usize = 128;
/// Most of all.
const MOST: usize = 4096;

/// How many there are, by tenant.
#[derive(Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<String, usize>>>);

/// One of them; its place is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    all: Arc<Mutex<HashMap<String, usize>>>,
    tenant: String,
}

fn lock(all: &Mutex<HashMap<String, usize>>) -> MutexGuard<'_, HashMap<String, usize>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    /// A place for one more.
    pub(crate) fn take(&self, tenant: &str) -> Result<Ticket, Fault> {
        let mut all = lock(&self.0);
        let theirs = all.get(tenant).copied().unwrap_or_default();
        if theirs >= MOST_OF_TENANT || all.values().sum::<usize>() >= MOST {
            let detail = format!(
                "too many logs and events are followed, {theirs} of them by the tenant, which may follow {MOST_OF_TENANT}"
            );
            return Err(Fault::new(StatusCode::TOO_MANY_REQUESTS, detail));
        }
        all.insert(tenant.to_owned(), theirs + 1);
        Ok(Ticket { all: Arc::clone(&self.0), tenant: tenant.to_owned() })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        let left = all.get(&self.tenant).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            all.remove(&self.tenant);
        } else {
            all.insert(self.tenant.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_may_follow_so_much_and_others_do_not_notice() {
        let streams = Streams::default();
        let mut tickets: Vec<Ticket> = (0..MOST_OF_TENANT).map(|_| streams.take("one").unwrap()).collect();
        assert_eq!(streams.take("one").unwrap_err().status(), StatusCode::TOO_MANY_REQUESTS);
        let other = streams.take("two").unwrap();
        tickets.pop();
        let again = streams.take("one").unwrap();
        drop((tickets, other, again));
        assert!(lock(&streams.0).is_empty());
    }
}
