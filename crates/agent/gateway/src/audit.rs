//! The audit log on its way to the database. Requests never wait for it: what has no place in the queue is lost, counted and
//! told.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gloveport_gateway_store::{AuditEvent, Store};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{fault::Fault, identity::Identity};

/// Most lines that wait.
const QUEUE: usize = 4096;
/// Most lines that are written at once.
const BATCH: usize = 128;
/// Pause before lines are tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Time for the rest when the gateway ends.
const FLUSH: Duration = Duration::from_secs(8);
/// Between two lines about keys that were refused to one address.
const REFUSED: Duration = Duration::from_secs(1);
/// Most addresses that are remembered for this.
const ADDRESSES: usize = 4096;

/// The lines that wait.
#[derive(Debug)]
pub(crate) struct Audit {
    sender: Sender<AuditEvent>,
    receiver: Mutex<Option<Receiver<AuditEvent>>>,
    lost: AtomicU64,
    refused: Mutex<HashMap<Option<IpAddr>, Instant>>,
}

impl Default for Audit {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Self { sender, receiver: Mutex::new(Some(receiver)), lost: AtomicU64::new(0), refused: Mutex::default() }
    }
}

/// The time, in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Audit {
    /// Notes what somebody has tried, and what came of it.
    pub(crate) fn note(&self, who: &Identity, action: &str, target: &str, outcome: Result<(), &Fault>) {
        let fault = outcome.err();
        self.push(AuditEvent {
            time: now(),
            tenant: Some(who.name().to_owned()),
            key: who.key.clone(),
            action: action.to_owned(),
            target: Some(target.to_owned()),
            address: who.address.map(|address| address.to_string()),
            result: fault.map_or("done".to_owned(), |fault| fault.status().as_u16().to_string()),
            detail: fault.map(|fault| fault.detail().to_owned()),
        });
    }

    /// Notes what the gateway itself has done with a sandbox of a tenant, with a word about why or why not, and the address of
    /// whoever made it do that.
    pub(crate) fn by_gateway(
        &self,
        action: &str,
        tenant: Option<String>,
        id: &str,
        address: Option<IpAddr>,
        outcome: Result<Option<&str>, String>,
    ) {
        self.push(AuditEvent {
            time: now(),
            tenant,
            action: action.to_owned(),
            target: Some(id.to_owned()),
            address: address.map(|address| address.to_string()),
            result: if outcome.is_ok() { "done" } else { "503" }.to_owned(),
            detail: outcome.map_or_else(Some, |why| why.map(str::to_owned)),
            ..AuditEvent::default()
        });
    }

    /// Notes a key that was refused, at most once a second for each address.
    pub(crate) fn refused(&self, address: Option<IpAddr>, key: Option<String>, why: &str) {
        {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() >= ADDRESSES {
                refused.retain(|_, since| since.elapsed() < REFUSED);
            }
            let is_known = refused.get(&address).is_some_and(|since| since.elapsed() < REFUSED);
            if is_known || refused.len() >= ADDRESSES {
                return;
            }
            refused.insert(address, Instant::now());
        }
        self.push(AuditEvent {
            time: now(),
            key,
            action: "key refused".to_owned(),
            address: address.map(|address| address.to_string()),
            result: "401".to_owned(),
            detail: Some(why.to_owned()),
            ..AuditEvent::default()
        });
    }

    fn push(&self, event: AuditEvent) {
        if self.sender.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes lines until `stop`, and then those that wait.
    pub(crate) async fn write(self: Arc<Self>, store: Store, stop: CancellationToken) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        let mut batch = Vec::new();
        let mut is_told = false;
        loop {
            if batch.is_empty() && stop.run_until_cancelled(receiver.recv_many(&mut batch, BATCH)).await.is_none() {
                break;
            }
            match store.append_audit(&batch).await {
                Ok(()) => {
                    batch.clear();
                    is_told = false;
                    self.tell_lost();
                }
                Err(error) => {
                    if !is_told {
                        tracing::warn!(%error, "lines of the audit log wait");
                        is_told = true;
                    }
                    if stop.run_until_cancelled(sleep(AGAIN)).await.is_none() {
                        break;
                    }
                }
            }
        }
        receiver.close();
        while batch.len() < 2 * QUEUE && receiver.recv_many(&mut batch, BATCH).await > 0 {}
        if batch.is_empty() {
            return;
        }
        let flushed = timeout(FLUSH, async {
            for some in batch.chunks(BATCH) {
                store.append_audit(some).await?;
            }
            Ok::<_, gloveport_gateway_store::StoreError>(())
        });
        match flushed.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, lines = batch.len(), "the rest of the audit log is lost"),
            Err(_) => tracing::error!(lines = batch.len(), "the rest of the audit log was not written in time"),
        }
        self.tell_lost();
    }

    fn tell_lost(&self) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::error!(lost, "the audit log has lost lines: more came than its database takes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_no_place_is_counted_and_the_rest_is_written_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&gloveport_gateway_store::Location::File(directory.path().join("db"))).await.unwrap();
        let audit = Arc::new(Audit::default());
        let who = Identity { tenant: None, key: None, address: None };
        for _ in 0..QUEUE + 10 {
            audit.note(&who, "start", "a", Ok(()));
        }
        assert_eq!(audit.lost.load(Ordering::Relaxed), 10);
        let stop = CancellationToken::new();
        stop.cancel();
        timeout(Duration::from_mins(1), Arc::clone(&audit).write(store.clone(), stop)).await.unwrap();
        let newest = store.audit(&gloveport_gateway_store::AuditFilter::default()).await.unwrap();
        assert_eq!(newest[0].id, i64::try_from(QUEUE).unwrap());
        assert_eq!(audit.lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn keys_that_are_refused_are_told_once_a_second_for_each_address() {
        let audit = Audit::default();
        for _ in 0..5 {
            for address in ["127.0.0.1", "127.0.0.2"] {
                audit.refused(Some(address.parse().unwrap()), None, "the key is unknown");
            }
        }
        let mut receiver = audit.receiver.lock().unwrap().take().unwrap();
        let told = std::iter::from_fn(|| receiver.try_recv().ok()).count();
        assert_eq!(told, 2);
    }
}
