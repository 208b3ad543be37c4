//! Who hears what a server tells: all clients that are connected, each as far as it wants and keeps up.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, ServerNotification},
};
use tokio::sync::mpsc;

use crate::names;

/// What waits for one client; more is left out.
const WAITING: usize = 256;
/// Resources that one client can subscribe to.
const SUBSCRIPTIONS: usize = 1000;

/// The clients that are connected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audience(Arc<Hall>);

#[derive(Debug, Default)]
struct Hall {
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// Whether names carry those of their servers.
    has_prefixes: AtomicBool,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Listener {
    queue: mpsc::Sender<ServerNotification>,
    waiting: Mutex<Option<mpsc::Receiver<ServerNotification>>>,
    level: Mutex<Option<LoggingLevel>>,
    subscriptions: Mutex<HashSet<String>>,
}

impl Audience {
    /// Another client. It hears until it is dropped.
    pub(crate) fn join(&self) -> Arc<Listener> {
        let (queue, waiting) = mpsc::channel(WAITING);
        let listener = Arc::new(Listener {
            queue,
            waiting: Mutex::new(Some(waiting)),
            level: Mutex::default(),
            subscriptions: Mutex::default(),
        });
        let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        listener
    }

    /// How many clients there are.
    pub(crate) fn size(&self) -> usize {
        self.listeners().len()
    }

    /// Sets whether names carry those of their servers.
    pub(crate) fn set_prefixes(&self, has_prefixes: bool) {
        self.0.has_prefixes.store(has_prefixes, Ordering::Relaxed);
    }

    /// Whether names carry those of their servers.
    pub(crate) fn has_prefixes(&self) -> bool {
        self.0.has_prefixes.load(Ordering::Relaxed)
    }

    /// Passes on what a server tells, for as long as it runs.
    pub(crate) async fn pass_on(&self, server: &str, mut told: mpsc::Receiver<ServerNotification>) {
        while let Some(told) = told.recv().await {
            self.tell(server, told);
        }
    }

    /// Tells all clients that want to know.
    pub(crate) fn tell(&self, server: &str, mut told: ServerNotification) {
        if let ServerNotification::ResourceUpdatedNotification(updated) = &mut told
            && self.has_prefixes()
        {
            updated.params.uri = names::prefixed_uri(server, &updated.params.uri);
        }
        for listener in self.listeners() {
            if listener.wants(&told) {
                // A client that does not keep up misses some of it.
                let _full = listener.queue.try_send(told.clone());
            }
        }
    }

    /// The lowest level of log lines that a client wants.
    pub(crate) fn lowest_level(&self) -> Option<LoggingLevel> {
        let levels = self.listeners().into_iter().filter_map(|listener| listener.level());
        levels.min_by_key(|level| *level as u8)
    }

    /// Whether a client wants to know about a resource.
    pub(crate) fn subscribes(&self, uri: &str) -> bool {
        self.listeners().iter().any(|listener| listener.subscriptions().contains(uri))
    }

    fn listeners(&self) -> Vec<Arc<Listener>> {
        let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Listener {
    /// Begins to tell the client at the other end. What was told before waits for that.
    pub(crate) fn listen(self: &Arc<Self>, peer: Peer<RoleServer>) {
        if let Some(mut waiting) = self.take() {
            tokio::spawn(async move {
                while let Some(told) = waiting.recv().await {
                    if peer.send_notification(told).await.is_err() {
                        return;
                    }
                }
            });
        }
    }

    /// What the client will be told, for whoever passes it on; once.
    pub(crate) fn take(&self) -> Option<mpsc::Receiver<ServerNotification>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sets from which level on the client wants log lines.
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the client wants to know about a resource; false if it wants to know about too many.
    pub(crate) fn subscribe(&self, uri: String) -> bool {
        let mut subscriptions = self.subscriptions();
        let has_room = subscriptions.len() < SUBSCRIPTIONS || subscriptions.contains(&uri);
        if has_room {
            subscriptions.insert(uri);
        }
        has_room
    }

    /// Notes that it does not any more.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.subscriptions().remove(uri);
    }

    fn subscriptions(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wants(&self, told: &ServerNotification) -> bool {
        match told {
            ServerNotification::LoggingMessageNotification(line) => {
                // Without a level the server decides.
                self.level().is_none_or(|level| line.params.level as u8 >= level as u8)
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.subscriptions().contains(&updated.params.uri)
            }
            _ => true,
        }
    }
}
