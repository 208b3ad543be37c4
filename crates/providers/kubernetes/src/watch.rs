//! One watch over the pods of all sandboxes and their gates, as long as anybody waits for one of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::{StreamExt as _, pin_mut};
use gloveport_provider::ProviderError;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{cluster::Cluster, names};

/// Pods in one answer of a list.
const PAGE: u32 = 100;
/// Longest time that one watch is kept open, in seconds; the API server takes less than five minutes.
const KEPT: u32 = 290;
/// Time for one answer of a list.
const LIST: Duration = Duration::from_secs(30);
/// Pauses after a watch that broke.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How long the watch is kept when nobody waits any more.
const LINGER: Duration = Duration::from_secs(20);

/// What is seen of a pod.
#[derive(Clone, Debug, Default)]
pub(crate) enum Seen {
    /// Nothing yet.
    #[default]
    Nothing,
    /// The pod as it is.
    Pod(Arc<Pod>),
    /// It was there, or a list did not have it.
    Absent,
}

/// Who waits for which pod.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    pods: HashMap<String, (usize, watch::Sender<Seen>)>,
    /// A task watches.
    runs: bool,
}

/// Sees one pod until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter {
    watch: Weak<Watch>,
    pod: String,
    seen: watch::Receiver<Seen>,
}

impl Waiter {
    /// Whether it sees the pod of this name.
    pub(crate) fn is_for(&self, pod: &str) -> bool {
        self.pod == pod
    }

    /// What is seen, once it is another than before.
    pub(crate) async fn next(&mut self) -> Seen {
        // The sender is there as long as this is.
        let _changed = self.seen.changed().await;
        self.seen.borrow_and_update().clone()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let Some(watch) = self.watch.upgrade() else { return };
        let mut waiters = watch.lock();
        if let Some((count, _)) = waiters.pods.get_mut(&self.pod) {
            *count -= 1;
            if *count == 0 {
                waiters.pods.remove(&self.pod);
            }
        }
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees this pod from now on.
    pub(crate) async fn pod(self: &Arc<Self>, cluster: &Cluster, pod: &str) -> Result<Waiter, ProviderError> {
        let api = cluster.api::<Pod>().await?;
        let mut waiters = self.lock();
        let (count, sender) =
            waiters.pods.entry(pod.to_owned()).or_insert_with(|| (0, watch::channel(Seen::Nothing).0));
        *count += 1;
        let mut seen = sender.subscribe();
        seen.mark_changed();
        if !waiters.runs {
            waiters.runs = true;
            tokio::spawn(run(Arc::downgrade(self), api));
        }
        Ok(Waiter { watch: Arc::downgrade(self), pod: pod.to_owned(), seen })
    }

    fn tell(&self, pod: Pod, absent: bool) {
        let waiters = self.lock();
        let Some(name) = pod.metadata.name.as_deref() else { return };
        if let Some((_, sender)) = waiters.pods.get(name) {
            sender.send_replace(if absent { Seen::Absent } else { Seen::Pod(Arc::new(pod)) });
        }
    }

    /// Those that the cluster does not have.
    fn tell_absent(&self, there: &[String]) {
        for (name, (_, sender)) in &self.lock().pods {
            if !there.contains(name) {
                sender.send_if_modified(|seen| {
                    let was = matches!(seen, Seen::Pod(_));
                    if was {
                        *seen = Seen::Absent;
                    }
                    was
                });
            }
        }
    }

    /// Whether to go on.
    fn wanted(&self) -> bool {
        let mut waiters = self.lock();
        waiters.runs = !waiters.pods.is_empty();
        waiters.runs
    }
}

async fn run(watch: Weak<Watch>, api: Api<Pod>) {
    let mut pause = PAUSES.0;
    loop {
        let Some(strong) = watch.upgrade() else { return };
        if !strong.wanted() {
            return;
        }
        let version = list(&strong, &api).await;
        drop(strong);
        if let Some(version) = version
            && follow(&watch, &api, &version).await
        {
            pause = PAUSES.0;
            continue;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

fn selector() -> String {
    let roles = [names::SANDBOX, names::WARM, names::GATE].join(",");
    format!("{}={},{} in ({roles})", names::APP.0, names::APP.1, names::ROLE)
}

/// Tells all pods, and gives the version that they have.
async fn list(watch: &Watch, api: &Api<Pod>) -> Option<String> {
    let mut parameters = ListParams::default().labels(&selector()).limit(PAGE);
    let mut there = Vec::new();
    loop {
        let page = match timeout(LIST, api.list(&parameters)).await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                tracing::debug!(%error, "pods cannot be listed");
                return None;
            }
            Err(_) => return None,
        };
        for pod in page.items {
            there.extend(pod.metadata.name.clone());
            watch.tell(pod, false);
        }
        let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) else {
            watch.tell_absent(&there);
            return Some(page.metadata.resource_version.unwrap_or_default());
        };
        parameters.continue_token = Some(token);
    }
}

/// Tells what changes, until the watch ends. Whether it was of use.
async fn follow(watch: &Weak<Watch>, api: &Api<Pod>, version: &str) -> bool {
    let parameters = WatchParams::default().labels(&selector()).timeout(KEPT);
    let events = match api.watch(&parameters, version).await {
        Ok(events) => events,
        Err(error) => {
            tracing::debug!(%error, "pods cannot be watched");
            return false;
        }
    };
    pin_mut!(events);
    let mut useful = false;
    loop {
        let Ok(event) = timeout(LINGER, events.next()).await else {
            match watch.upgrade() {
                Some(strong) if !strong.lock().pods.is_empty() => continue,
                // The loop around this one finds out that nobody waits.
                _ => return true,
            }
        };
        let Some(strong) = watch.upgrade() else { return true };
        match event {
            Some(Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))) => strong.tell(pod, false),
            Some(Ok(WatchEvent::Deleted(pod))) => strong.tell(pod, true),
            Some(Ok(WatchEvent::Bookmark(_))) => {}
            // Too old (410), or broken: all is listed anew.
            Some(Ok(WatchEvent::Error(status))) => {
                tracing::debug!(code = status.code, reason = status.reason, "the watch over pods ended");
                return useful;
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "the watch over pods broke");
                return useful;
            }
            None => return useful,
        }
        useful = true;
    }
}
