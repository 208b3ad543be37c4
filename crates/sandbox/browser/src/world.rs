//! What is known of the browser: pages, frames, documents, requests, downloads. Events keep it up to date, and whoever
//! waits for something is woken by them.

mod events;
mod frame;
mod log;
mod prepare;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use crate::cdp::SessionId;
pub(crate) use frame::{ContextId, Frame, FrameId};
pub(crate) use log::Log;
pub use log::{ConsoleEntry, NetworkEntry};
pub(crate) use prepare::{HEIGHT as PAGE_HEIGHT, WIDTH as PAGE_WIDTH, WORLD};

/// Pages that may be open at once; one more is closed as soon as it opens.
pub(crate) const MOST_PAGES: usize = 64;
/// Downloads that are remembered.
const MOST_DOWNLOADS: usize = 1024;

/// What names a page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TargetId(Arc<str>);

impl From<&str> for TargetId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl TargetId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A page, or tab.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) target: TargetId,
    pub(crate) session: SessionId,
    /// All that it needs has been set up.
    pub(crate) prepared: bool,
    /// Its process has ended; nothing of it answers.
    pub(crate) crashed: bool,
    pub(crate) main: FrameId,
    pub(crate) frames: HashMap<FrameId, Frame>,
    /// Requests under way that its look may depend on, with when they began.
    pub(crate) requests: HashMap<String, Instant>,
    /// What a chooser of files was opened for: the input element, and whether it takes several.
    pub(crate) chooser: Option<(Value, bool)>,
    /// What is being dragged.
    pub(crate) drag: Option<Value>,
    /// Where the mouse is.
    pub(crate) mouse: (f64, f64),
}

impl Page {
    /// Its address.
    pub(crate) fn url(&self) -> &str {
        self.frames.get(&self.main).map_or("about:blank", |frame| frame.url.as_str())
    }

    /// Whether a frame is one that this session speaks for.
    fn renders(&self, frame: Option<&FrameId>, session: &SessionId) -> bool {
        frame.and_then(|id| self.frames.get(id)).is_some_and(|frame| frame.session == *session)
    }

    /// Its frames, each behind the one that it is in, in the order in which they came.
    pub(crate) fn in_order(&self) -> Vec<&Frame> {
        let mut order = Vec::new();
        let mut waiting = vec![&self.main];
        let mut seen = HashSet::new();
        while let Some(id) = waiting.pop() {
            if let Some(frame) = self.frames.get(id)
                && seen.insert(id)
            {
                order.push(frame);
                waiting.extend(frame.children.iter().rev());
            }
        }
        order
    }
}

/// A file that the browser fetched or fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Its name in the directory for downloads.
    pub guid: String,
    /// Where it comes from.
    pub url: String,
    /// The name that its server proposes.
    pub suggested_name: String,
    /// How far it is.
    pub state: DownloadState,
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadState {
    /// It is being fetched.
    Running,
    /// It is complete.
    Completed,
    /// It was given up.
    Canceled,
}

/// All that is known of a browser.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Pages in the order in which they came.
    pub(crate) pages: Vec<Page>,
    /// Targets by activity, the latest last.
    pub(crate) activity: Vec<TargetId>,
    /// The page that is shown, as far as we know.
    pub(crate) front: Option<TargetId>,
    /// The size of the page that is about to be opened, if its opener wants one.
    wanted_size: Option<(u32, u32)>,
    /// Which page a session belongs to.
    sessions: HashMap<SessionId, TargetId>,
    pub(crate) downloads: VecDeque<Download>,
    pub(crate) log: Log,
    /// Pages that were closed because there were too many.
    pub(crate) refused_pages: usize,
    pub(crate) closed: bool,
}

impl World {
    pub(crate) fn page(&self, target: &TargetId) -> Option<&Page> {
        self.pages.iter().find(|page| page.target == *target)
    }

    pub(crate) fn page_mut(&mut self, target: &TargetId) -> Option<&mut Page> {
        self.pages.iter_mut().find(|page| page.target == *target)
    }

    fn page_of(&mut self, session: &SessionId) -> Option<&mut Page> {
        let target = self.sessions.get(session)?;
        self.pages.iter_mut().find(|page| page.target == *target)
    }

    /// A page was used.
    pub(crate) fn activate(&mut self, target: &TargetId) {
        self.activity.retain(|other| other != target);
        self.activity.push(target.clone());
    }

    /// The page that was used last and is still open.
    pub(crate) fn active(&self) -> Option<&Page> {
        self.activity.iter().rev().find_map(|target| self.page(target)).or_else(|| self.pages.last())
    }

    fn remove_page(&mut self, target: &TargetId) {
        self.pages.retain(|page| page.target != *target);
        self.activity.retain(|other| other != target);
        self.sessions.retain(|_, other| other != target);
        self.front = None;
    }
}

/// The state, for everybody who needs it.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    world: Arc<Mutex<World>>,
    changes: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self { world: Arc::default(), changes: watch::Sender::new(0) }
    }

    /// Looks at the state, or changes it.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn changed(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
    }

    /// Changes that have happened.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until a look at the state finds something, at most so long; `None` when it did not.
    pub(crate) async fn until<T>(&self, limit: Duration, mut look: impl FnMut(&mut World) -> Option<T>) -> Option<T> {
        let mut changes = self.changes.subscribe();
        let deadline = Instant::now() + limit;
        loop {
            changes.borrow_and_update();
            if let Some(found) = self.with(&mut look) {
                return Some(found);
            }
            if self.with(|world| world.closed) {
                return None;
            }
            if tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                return self.with(&mut look);
            }
        }
    }
}
