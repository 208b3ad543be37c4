//! What has happened to sandboxes, kept for a while, for those who listen. Each tenant has a window of its own, so that nobody
//! learns how much others do, or loses events because of them.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant, SystemTime},
};

use gloveport_provider::{Sandbox, SandboxId, SandboxState, SessionId};
use tokio::sync::{Notify, watch};

/// Events of one tenant that are kept.
const KEPT: usize = 1024;
/// How long it goes on without anybody who listens, so that who was cut off misses nothing.
const IDLE: Duration = Duration::from_mins(5);
/// How long it is remembered that a sandbox was deleted, which the engine may still list for a moment.
const GONE: Duration = Duration::from_mins(1);
/// Most events that are given at once.
const BATCH: usize = 64;

/// A sandbox as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: SandboxId,
    pub(crate) tenant: String,
    pub(crate) session: SessionId,
    pub(crate) state: SandboxState,
    pub(crate) created: Option<SystemTime>,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Created,
    StateChanged,
    Deleted,
}

/// Something that has happened to a sandbox.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    /// As it is afterwards; of one that was deleted as it was last.
    pub(crate) sandbox: Seen,
    /// What it did before, if it does something else now.
    pub(crate) before: Option<SandboxState>,
    pub(crate) at: SystemTime,
}

/// How far somebody has read: in which life of the hub, and the number of the next event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) epoch: String,
    pub(crate) next: u64,
}

/// What there is to read.
#[derive(Debug)]
pub(crate) enum Read {
    /// These, each with the position behind it.
    Events(Vec<(Position, Arc<Event>)>),
    /// Events are missing; it goes on here.
    Reset(Position),
}

#[derive(Debug, Default)]
struct Window {
    /// The number of the first event that is kept.
    first: u64,
    events: VecDeque<Arc<Event>>,
}

impl Window {
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }
}

#[derive(Debug)]
struct Known {
    seen: Seen,
    /// When the gateway itself changed it last; what was asked before is older.
    touched: Option<Instant>,
}

#[derive(Debug, Default)]
struct Inner {
    /// A name of this life of the hub; empty while nobody watches.
    epoch: String,
    /// Whether the sandboxes that there were at the beginning are known.
    is_ready: bool,
    known: BTreeMap<SandboxId, Known>,
    gone: HashMap<SandboxId, Instant>,
    windows: HashMap<String, Window>,
    /// Since when nobody listens.
    alone: Option<Instant>,
}

/// What has happened to sandboxes.
#[derive(Debug)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    listeners: Arc<AtomicUsize>,
    ticks: watch::Sender<u64>,
    nudged: Notify,
}

/// Somebody who listens; the hub goes on at least as long.
#[derive(Debug)]
pub(crate) struct Listener(Arc<AtomicUsize>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self { inner: Mutex::default(), listeners: Arc::default(), ticks: watch::Sender::new(0), nudged: Notify::new() }
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody listens from now on. Tells whether somebody must begin to watch, which is the caller's to start.
    pub(crate) fn listen(&self) -> Result<(Listener, bool), gloveport_ids::Error> {
        let mut inner = self.lock();
        let begins = inner.epoch.is_empty();
        if begins {
            *inner = Inner { epoch: gloveport_ids::random::<6>()?, ..Inner::default() };
        }
        self.listeners.fetch_add(1, SeqCst);
        inner.alone = None;
        Ok((Listener(Arc::clone(&self.listeners)), begins))
    }

    /// Ends this life if nobody has listened for long; or at once. Whether it has ended.
    pub(crate) fn rest(&self, at_once: bool) -> bool {
        let mut inner = self.lock();
        if !at_once {
            if self.listeners.load(SeqCst) > 0 {
                inner.alone = None;
                return false;
            }
            if inner.alone.get_or_insert_with(Instant::now).elapsed() < IDLE {
                return false;
            }
        }
        *inner = Inner::default();
        drop(inner);
        self.tick();
        true
    }

    /// Whose a sandbox is and what its session is called, if it is known and no other one has got its id.
    pub(crate) fn owner(&self, sandbox: &Sandbox) -> Option<(String, SessionId)> {
        let inner = self.lock();
        let known = &inner.known.get(&sandbox.id)?.seen;
        (!is_other(known.created, sandbox.created)).then(|| (known.tenant.clone(), known.session.clone()))
    }

    /// Hears whenever there is something new to read.
    pub(crate) fn ticks(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// Where a tenant's events end now; `None` until the sandboxes that there are are known.
    pub(crate) fn end(&self, tenant: &str) -> Option<Position> {
        let inner = self.lock();
        let next = inner.windows.get(tenant).map_or(0, Window::end);
        inner.is_ready.then(|| Position { epoch: inner.epoch.clone(), next })
    }

    /// What a tenant has to read from here on.
    pub(crate) fn read(&self, tenant: &str, from: &Position) -> Read {
        let inner = self.lock();
        let empty = Window::default();
        let window = inner.windows.get(tenant).unwrap_or(&empty);
        if from.epoch != inner.epoch || from.next < window.first || from.next > window.end() {
            return Read::Reset(Position { epoch: inner.epoch.clone(), next: window.end() });
        }
        let skipped = usize::try_from(from.next - window.first).unwrap_or(usize::MAX);
        let events = window.events.iter().skip(skipped).take(BATCH).zip(from.next + 1..);
        let position = |next| Position { epoch: inner.epoch.clone(), next };
        Read::Events(events.map(|(event, next)| (position(next), Arc::clone(event))).collect())
    }

    /// The engine should be looked at soon.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }

    /// Returns when the engine should be looked at.
    pub(crate) async fn nudged(&self) {
        self.nudged.notified().await;
    }

    /// The gateway has made a sandbox.
    pub(crate) fn made(&self, seen: Seen) {
        let mut inner = self.lock();
        if !inner.is_ready {
            return;
        }
        // The engine may show a fork before the database knows what its session is called.
        if let Some(known) = inner.known.get_mut(&seen.id) {
            known.seen.session = seen.session;
            return;
        }
        inner.gone.remove(&seen.id);
        inner.add(seen, true);
        drop(inner);
        self.tick();
    }

    /// The gateway has deleted a sandbox.
    pub(crate) fn ended(&self, id: &SandboxId) {
        let mut inner = self.lock();
        if inner.is_ready {
            inner.gone.insert(id.clone(), Instant::now());
            inner.remove(id);
        }
        drop(inner);
        self.tick();
    }

    /// The engine was asked at this time, and has these sandboxes.
    pub(crate) fn compare(&self, listed: Vec<Seen>, asked: Instant) {
        let mut inner = self.lock();
        inner.gone.retain(|_, since| since.elapsed() < GONE);
        let ids: HashSet<SandboxId> = listed.iter().map(|seen| seen.id.clone()).collect();
        for seen in listed {
            inner.take_in(seen, asked);
        }
        let is_old = |known: &Known| known.touched.is_none_or(|touched| touched < asked);
        let missing = inner.known.iter().filter(|(id, known)| !ids.contains(*id) && is_old(known));
        let missing: Vec<SandboxId> = missing.map(|(id, _)| id.clone()).collect();
        for id in missing {
            inner.remove(&id);
        }
        inner.is_ready = true;
        drop(inner);
        self.tick();
    }

    fn tick(&self) {
        self.ticks.send_modify(|ticks| *ticks = ticks.wrapping_add(1));
    }
}

impl Inner {
    fn push(&mut self, event: Event) {
        let window = self.windows.entry(event.sandbox.tenant.clone()).or_default();
        if window.events.len() >= KEPT {
            window.events.pop_front();
            window.first += 1;
        }
        window.events.push_back(Arc::new(event));
    }

    fn add(&mut self, seen: Seen, by_gateway: bool) {
        // Those that there were at the beginning are no news.
        if self.is_ready {
            let (kind, at) = (Kind::Created, SystemTime::now());
            self.push(Event { kind, sandbox: seen.clone(), before: None, at });
        }
        let touched = by_gateway.then(Instant::now);
        self.known.insert(seen.id.clone(), Known { seen, touched });
    }

    fn remove(&mut self, id: &SandboxId) {
        if let Some(known) = self.known.remove(id) {
            let (kind, at) = (Kind::Deleted, SystemTime::now());
            self.push(Event { kind, sandbox: known.seen, before: None, at });
        }
    }

    fn take_in(&mut self, seen: Seen, asked: Instant) {
        let Some(known) = self.known.get_mut(&seen.id) else {
            if self.gone.get(&seen.id).is_none_or(|since| *since < asked) {
                self.add(seen, false);
            }
            return;
        };
        if known.touched.is_some_and(|touched| touched >= asked) {
            return;
        }
        // Engines may give an id once more.
        if is_other(known.seen.created, seen.created) {
            let id = seen.id.clone();
            self.remove(&id);
            self.add(seen, false);
        } else if known.seen.state != seen.state {
            let before = std::mem::replace(&mut known.seen, seen.clone()).state;
            let (kind, at) = (Kind::StateChanged, SystemTime::now());
            self.push(Event { kind, sandbox: seen, before: Some(before), at });
        }
    }
}

/// Whether these are the beginnings of two sandboxes. An engine may round them, or learn of one late.
fn is_other(one: Option<SystemTime>, other: Option<SystemTime>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let apart = one.duration_since(other).unwrap_or_else(|error| error.duration());
    apart > Duration::from_secs(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: &str, tenant: &str, state: SandboxState) -> Seen {
        let (id, session) = (SandboxId::new(id).unwrap(), SessionId::new("s").unwrap());
        Seen { id, tenant: tenant.to_owned(), session, state, created: None }
    }

    fn kinds(read: Read) -> Vec<(Kind, String)> {
        match read {
            Read::Events(events) => {
                events.into_iter().map(|(_, event)| (event.kind, event.sandbox.id.to_string())).collect()
            }
            Read::Reset(position) => panic!("{position:?}"),
        }
    }

    #[test]
    fn what_differs_between_two_looks_has_happened_and_each_tenant_reads_what_is_theirs() {
        let hub = Hub::default();
        let (_listener, begins) = hub.listen().unwrap();
        assert!(begins && hub.end("one").is_none());
        let running = || SandboxState::Running;
        hub.compare(vec![seen("a", "one", running())], Instant::now());
        let (one, two) = (hub.end("one").unwrap(), hub.end("two").unwrap());
        hub.compare(vec![seen("a", "one", SandboxState::Paused), seen("b", "two", running())], Instant::now());
        hub.compare(vec![seen("b", "two", running())], Instant::now());
        let a = || "a".to_owned();
        assert_eq!(kinds(hub.read("one", &one)), [(Kind::StateChanged, a()), (Kind::Deleted, a())]);
        assert_eq!(kinds(hub.read("two", &two)), [(Kind::Created, "b".to_owned())]);
        assert!(kinds(hub.read("three", &hub.end("three").unwrap())).is_empty());
    }

    #[test]
    fn a_look_that_began_before_the_gateway_did_something_takes_nothing_back() {
        let hub = Hub::default();
        let _listener = hub.listen().unwrap();
        hub.compare(vec![seen("old", "one", SandboxState::Running)], Instant::now());
        let from = hub.end("one").unwrap();
        let asked = Instant::now();
        hub.made(seen("new", "one", SandboxState::Running));
        hub.ended(&SandboxId::new("old").unwrap());
        hub.compare(vec![seen("old", "one", SandboxState::Running)], asked);
        let expected = [(Kind::Created, "new".to_owned()), (Kind::Deleted, "old".to_owned())];
        assert_eq!(kinds(hub.read("one", &from)), expected);
        hub.compare(vec![seen("new", "one", SandboxState::Running)], Instant::now());
        assert_eq!(kinds(hub.read("one", &from)), expected);
    }

    #[test]
    fn a_window_is_bounded_and_who_comes_late_or_from_another_life_is_told() {
        let hub = Hub::default();
        let (listener, _) = hub.listen().unwrap();
        hub.compare(Vec::new(), Instant::now());
        let from = hub.end("one").unwrap();
        for number in 0..=KEPT {
            hub.made(seen(&format!("s{number}"), "one", SandboxState::Running));
        }
        let end = hub.end("one").unwrap();
        assert!(matches!(hub.read("one", &from), Read::Reset(position) if position == end));
        let far = Position { next: end.next + 1, ..end.clone() };
        assert!(matches!(hub.read("one", &far), Read::Reset(_)));
        assert!(!hub.rest(false));
        drop(listener);
        assert!(!hub.rest(false) && hub.rest(true));
        let (_listener, begins) = hub.listen().unwrap();
        hub.compare(Vec::new(), Instant::now());
        assert!(begins && matches!(hub.read("one", &end), Read::Reset(position) if position.epoch != end.epoch));
    }
}
