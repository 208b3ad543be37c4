//! A browser that is up: its pages, their frames, and how to ask them.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    cdp::{CdpError, Connection, Session, SessionId},
    launch::Launched,
    options::BrowserOptions,
    script::{Realm, ScriptError},
    settle::After,
    world::{Frame, FrameId, Shared, TargetId, WORLD},
};

/// Time for our script to be in a document that is there.
const SCRIPT_TIME: Duration = Duration::from_secs(2);

/// Time for a page to answer after its scripts were ended.
const ANSWER: Duration = Duration::from_secs(2);

/// A browser that is up.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) shared: Shared,
    /// One step at a time.
    pub(crate) turn: Semaphore,
    /// Time for navigations.
    pub(crate) page_limit: Duration,
    pub(crate) version: String,
    /// Where relative paths of files begin.
    pub(crate) directory: PathBuf,
    /// Where downloads go.
    pub(crate) downloads: PathBuf,
    /// Requests that were logged before the last action began.
    pub(crate) requests_before: AtomicU64,
}

/// A frame at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) target: TargetId,
    pub(crate) frame: Frame,
}

impl Live {
    /// One that has come up.
    pub(crate) fn new(launched: &Launched, options: &BrowserOptions) -> Self {
        Self {
            connection: launched.connection.clone(),
            shared: launched.shared.clone(),
            turn: Semaphore::new(1),
            page_limit: options.page_limit,
            version: launched.version.clone(),
            directory: options.surroundings.directory.clone(),
            downloads: options.downloads.clone(),
            requests_before: AtomicU64::new(0),
        }
    }

    /// An action begins: requests from now on are its.
    pub(crate) fn begin(&self) {
        let (_, requests) = self.shared.with(|world| world.log.counts());
        self.requests_before.store(requests, Ordering::Relaxed);
    }

    /// Ends what scripts of pages do, and pages that do not answer even then: the next step finds none that hang.
    pub(crate) async fn interrupt(&self) {
        let sessions: HashSet<SessionId> = self.shared.with(|world| {
            let ready = world.pages.iter().filter(|page| page.prepared && !page.crashed);
            ready.flat_map(|page| page.frames.values().map(|frame| frame.session.clone())).collect()
        });
        let all = sessions.iter().map(async |session| {
            let session = self.session(session);
            session.tell("Runtime.terminateExecution", json!({}));
            session.tell("Page.stopLoading", json!({}));
            // Timers that begin the same again are due before this one.
            let later = json!({ "expression": "new Promise((done) => setTimeout(done, 200))", "awaitPromise": true });
            let asked = session.call_within("Runtime.evaluate", later, ANSWER).await;
            if matches!(asked, Err(CdpError::TimedOut { .. })) {
                tracing::warn!("a page that does not answer is ended");
                // It is told as a crash.
                let _crashed = session.call_within("Page.crash", json!({}), ANSWER).await;
            }
        });
        join_all(all).await;
    }

    /// A session of the browser.
    pub(crate) fn session(&self, id: &SessionId) -> Session {
        self.connection.session(id.clone())
    }

    /// The page that was used last. There is always one: a new one is opened if there is none.
    pub(crate) async fn active(&self) -> Result<TargetId, CdpError> {
        match self.shared.with(|world| world.active().map(|page| page.target.clone())) {
            Some(target) => Ok(target),
            None => self.new_page().await,
        }
    }

    /// Opens a page, which is the active one then.
    pub(crate) async fn new_page(&self) -> Result<TargetId, CdpError> {
        let answer = self.connection.browser().call("Target.createTarget", json!({ "url": "about:blank" })).await?;
        let target = TargetId::from(answer.get("targetId").and_then(Value::as_str).unwrap_or_default());
        let ready = self.shared.until(Duration::from_secs(10), |world| {
            let page = world.page(&target)?;
            page.prepared.then_some(())
        });
        ready.await.ok_or(CdpError::Gone)?;
        self.shared.with(|world| world.activate(&target));
        Ok(target)
    }

    /// Shows a page, which only draws itself then.
    pub(crate) async fn bring_to_front(&self, target: &TargetId, session: &Session) -> Result<(), CdpError> {
        let is_there = self.shared.with(|world| world.front.as_ref() == Some(target));
        if !is_there {
            session.call("Page.bringToFront", json!({})).await?;
            self.shared.with(|world| world.front = Some(target.clone()));
        }
        Ok(())
    }

    /// The session of a page.
    pub(crate) fn page_session(&self, target: &TargetId) -> Result<Session, CdpError> {
        let found = self.shared.with(|world| {
            let page = world.page(target).ok_or(CdpError::Gone)?;
            if page.crashed { Err(CdpError::Crashed) } else { Ok(page.session.clone()) }
        });
        found.map(|id| self.session(&id))
    }

    /// The main frame of a page.
    pub(crate) fn main_frame(&self, target: &TargetId) -> Result<FrameId, CdpError> {
        self.shared.with(|world| world.page(target).map(|page| page.main.clone())).ok_or(CdpError::Gone)
    }

    /// The frames of a page, each behind the one that it is in.
    pub(crate) fn frames(&self, target: &TargetId) -> Vec<Place> {
        self.shared.with(|world| {
            let frames = world.page(target).map(|page| page.in_order().into_iter().cloned().collect());
            let frames: Vec<Frame> = frames.unwrap_or_default();
            frames.into_iter().map(|frame| Place { target: target.clone(), frame }).collect()
        })
    }

    /// The world of our scripts in a frame.
    pub(crate) async fn realm(&self, target: &TargetId, frame: &FrameId) -> Result<Realm, CdpError> {
        let found = self.shared.until(SCRIPT_TIME, |world| {
            let page = world.page(target)?;
            if page.crashed {
                return Some(None);
            }
            let frame = page.frames.get(frame)?;
            Some(Some((frame.session.clone(), frame.ours?)))
        });
        match found.await {
            Some(Some((session, context))) => Ok(Realm { session: self.session(&session), context }),
            Some(None) => Err(CdpError::Crashed),
            None => self.make_realm(target, frame).await,
        }
    }

    /// The world of the page's own scripts.
    pub(crate) fn main_realm(&self, target: &TargetId, frame: &FrameId) -> Result<Realm, CdpError> {
        let found = self.shared.with(|world| {
            let frame = world.page(target)?.frames.get(frame)?;
            Some((frame.session.clone(), frame.main?))
        });
        let (session, context) = found.ok_or(CdpError::Gone)?;
        Ok(Realm { session: self.session(&session), context })
    }

    /// Makes the world of our scripts in a document where it is missing.
    async fn make_realm(&self, target: &TargetId, frame: &FrameId) -> Result<Realm, CdpError> {
        let session = self
            .shared
            .with(|world| world.page(target)?.frames.get(frame).map(|frame| frame.session.clone()))
            .ok_or(CdpError::Gone)?;
        let session = self.session(&session);
        let parameters = json!({ "frameId": frame.as_str(), "worldName": WORLD });
        let answer = session.call_within("Page.createIsolatedWorld", parameters, SCRIPT_TIME).await?;
        let context = answer.get("executionContextId").and_then(Value::as_i64).ok_or(CdpError::Gone)?;
        Ok(Realm { session, context })
    }

    /// The element that a frame is in, as the session of the parent knows it.
    pub(crate) async fn owner(&self, place: &Place) -> Result<Option<(FrameId, Session, i64)>, CdpError> {
        let Some(parent) = place.frame.parent.clone() else { return Ok(None) };
        let session = self
            .shared
            .with(|world| world.page(&place.target)?.frames.get(&parent).map(|frame| frame.session.clone()))
            .ok_or(CdpError::Gone)?;
        let session = self.session(&session);
        let answer = session.call("DOM.getFrameOwner", json!({ "frameId": place.frame.id.as_str() })).await?;
        let node = answer.get("backendNodeId").and_then(Value::as_i64).ok_or(CdpError::Gone)?;
        Ok(Some((parent, session, node)))
    }

    /// Where the upper left corner of a frame's viewport is in that of the page.
    pub(crate) async fn origin(&self, target: &TargetId, frame: &FrameId) -> Result<(f64, f64), CdpError> {
        let (mut x, mut y) = (0.0, 0.0);
        let mut frame = frame.clone();
        // A frame deeper than that is not to be seen.
        for _ in 0..100 {
            let place = self.place(target, &frame)?;
            let Some((parent, session, node)) = self.owner(&place).await? else { return Ok((x, y)) };
            let answer = session.call("DOM.getBoxModel", json!({ "backendNodeId": node })).await?;
            let corner = |index: usize| answer.pointer(&format!("/model/content/{index}")).and_then(Value::as_f64);
            x += corner(0).unwrap_or_default();
            y += corner(1).unwrap_or_default();
            // The box is in the viewport of what the same process renders.
            frame = self.local_root(target, &parent)?;
        }
        Ok((x, y))
    }

    pub(crate) fn place(&self, target: &TargetId, frame: &FrameId) -> Result<Place, CdpError> {
        self.shared
            .with(|world| world.page(target)?.frames.get(frame).cloned())
            .map(|frame| Place { target: target.clone(), frame })
            .ok_or(CdpError::Gone)
    }

    /// The outermost frame that the same process renders.
    pub(crate) fn local_root(&self, target: &TargetId, frame: &FrameId) -> Result<FrameId, CdpError> {
        self.shared
            .with(|world| {
                let page = world.page(target)?;
                let mut frame = page.frames.get(frame)?;
                while let Some(parent) = frame.parent.as_ref().and_then(|parent| page.frames.get(parent))
                    && parent.session == frame.session
                {
                    frame = parent;
                }
                Some(frame.id.clone())
            })
            .ok_or(CdpError::Gone)
    }

    /// Returns when a document has not changed for a moment; at once if it has just come, and nothing in it can change
    /// it.
    pub(crate) async fn quiet(
        &self,
        place: &Place,
        after: After,
        quiet: Duration,
        limit: Duration,
    ) -> Result<(), ScriptError> {
        let realm = self.realm(&place.target, &place.frame.id).await?;
        let milliseconds = |time: Duration| crate::script::Argument::Value(json!(time.as_millis()));
        let arrived = crate::script::Argument::Value(json!(after == After::Arrival));
        realm.call_within("settled", vec![milliseconds(quiet), milliseconds(limit), arrived], limit + quiet).await
    }
}
