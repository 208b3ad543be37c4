//! Going somewhere: addresses and the history of a page (spec/browser.md 4.2, 4.4).

use std::time::Duration;

use gloveport_browsergym::ActionError;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    cdp::{CdpError, Session},
    element::failed,
    live::Live,
    world::{FrameId, Page, TargetId},
};

/// When a navigation has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// The page has loaded with all that belongs to it.
    Load,
    /// Its document is there.
    Parsed,
    /// The server has answered.
    Answer,
}

impl WaitFor {
    pub(crate) const fn event(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Parsed => "DOMContentLoaded",
            Self::Answer => "init",
        }
    }
}

/// What the browser says of requests that were under way when an interface of the machine came or went, though their server
/// is there as before: on a machine with containers, whenever one of them starts.
const NETWORK_CHANGED: &str = "net::ERR_NETWORK_CHANGED";

/// How often a navigation is begun that ends with [`NETWORK_CHANGED`].
const ATTEMPTS: u32 = 5;

/// What the browser has answered to a navigation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    loader_id: Option<String>,
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

impl Navigated {
    fn failed_with(&self) -> Option<&str> {
        self.error_text.as_deref().filter(|text| !text.is_empty())
    }
}

/// Goes to an address, and waits until it has loaded.
pub(crate) async fn goto(live: &Live, target: &TargetId, url: &str, wait: WaitFor) -> Result<(), ActionError> {
    const OPERATION: &str = "Page.goto";
    let url = &complete(url);
    // Another document brings a page that has crashed back.
    let crashed = set_crashed(live, target, false);
    let session = live.page_session(target).map_err(|error| failed(OPERATION, error))?;
    let frame = live.main_frame(target).map_err(|error| failed(OPERATION, error))?;
    let deadline = Instant::now() + live.page_limit;
    let downloads = live.shared.with(|world| world.downloads.len());
    let answer = match navigated(&session, url, deadline).await {
        Ok(answer) => answer,
        Err(CdpError::TimedOut { .. }) => return Err(late(OPERATION, live.page_limit, url)),
        Err(error) => {
            if crashed {
                set_crashed(live, target, true);
            }
            return Err(failed(OPERATION, error));
        }
    };
    let is_download = answer.is_download || live.shared.with(|world| world.downloads.len() > downloads);
    match answer.failed_with() {
        Some(_) | None if is_download => return Err(told(OPERATION, "Download is starting", url)),
        Some(text) => return Err(told(OPERATION, &format!("{text} at {url}"), url)),
        None => {}
    }
    let Some(loader) = answer.loader_id else { return Ok(()) };
    loaded(live, target, &frame, Some(&loader), wait, deadline)
        .await
        .map_err(|()| late(OPERATION, live.page_limit, url))
}

/// Lets a page go to an address, once more where the machine's network has changed meanwhile.
async fn navigated(session: &Session, url: &str, deadline: Instant) -> Result<Navigated, CdpError> {
    let mut attempt = 1;
    loop {
        let limit = deadline.saturating_duration_since(Instant::now());
        let answer = session.call_within("Page.navigate", json!({ "url": url }), limit).await?;
        let answer: Navigated = crate::cdp::understood("Page.navigate", answer)?;
        if answer.failed_with() != Some(NETWORK_CHANGED) || attempt == ATTEMPTS {
            return Ok(answer);
        }
        attempt += 1;
    }
}

/// Notes whether a page has crashed; answers what was noted before.
fn set_crashed(live: &Live, target: &TargetId, crashed: bool) -> bool {
    live.shared.with(|world| world.page_mut(target).is_some_and(|page| std::mem::replace(&mut page.crashed, crashed)))
}

/// The address with a scheme, where it is one of this machine without.
fn complete(url: &str) -> String {
    let local = ["localhost", "127.0.0.1"].iter().any(|host| url.starts_with(host));
    if local { format!("http://{url}") } else { url.to_owned() }
}

/// An error with what was tried behind it.
fn told(operation: &str, reason: &str, url: &str) -> ActionError {
    ActionError::driver(format!(
        "{operation}: {reason}\nCall log:\n  - navigating to \"{url}\", waiting until \"load\"\n"
    ))
}

fn late(operation: &str, limit: Duration, url: &str) -> ActionError {
    ActionError::timeout(format!(
        "{operation}: Timeout {}ms exceeded.\nCall log:\n  - navigating to \"{url}\", waiting until \"load\"\n",
        limit.as_millis()
    ))
}

/// Waits until a frame has loaded the document of a loader, or one that has replaced it.
async fn loaded(
    live: &Live,
    target: &TargetId,
    frame: &FrameId,
    loader: Option<&str>,
    wait: WaitFor,
    deadline: Instant,
) -> Result<(), ()> {
    let limit = deadline.saturating_duration_since(Instant::now());
    let ended = live.shared.until(limit, |world| {
        // A page that is gone has nothing to wait for.
        let Some(page) = world.page(target).filter(|page| !page.crashed) else { return Some(()) };
        let frame = page.frames.get(frame).or_else(|| page.frames.get(&page.main))?;
        let came = loader.is_none_or(|loader| frame.loaders.iter().any(|other| other == loader));
        (came && frame.lifecycle.contains(wait.event())).then_some(())
    });
    ended.await.ok_or(())
}

/// One entry of the history of a page.
#[derive(Debug, Deserialize)]
struct Entry {
    id: i64,
}

/// The history of a page.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current_index: usize,
    entries: Vec<Entry>,
}

/// Where to in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    Forward,
}

/// Goes one step in the history; without an entry there nothing happens.
pub(crate) async fn travel(live: &Live, target: &TargetId, way: Way) -> Result<(), ActionError> {
    let operation = match way {
        Way::Back => "Page.go_back",
        Way::Forward => "Page.go_forward",
    };
    let session = live.page_session(target).map_err(|error| failed(operation, error))?;
    step(live, target, &session, way)
        .await
        .map_err(|error| failed(operation, error))?
        .map_err(|()| late(operation, live.page_limit, "an entry of the history"))
}

async fn step(live: &Live, target: &TargetId, session: &Session, way: Way) -> Result<Result<(), ()>, CdpError> {
    let history: History = session.ask("Page.getNavigationHistory", json!({})).await?;
    let index = match way {
        Way::Back => history.current_index.checked_sub(1),
        Way::Forward => history.current_index.checked_add(1),
    };
    let Some(entry) = index.and_then(|index| history.entries.get(index)) else { return Ok(Ok(())) };
    let deadline = Instant::now() + live.page_limit;
    // It may be a frame in the page that goes back.
    let documents = |page: &Page| -> Vec<(String, String)> {
        page.in_order().into_iter().map(|frame| (frame.url.clone(), frame.loader.clone())).collect()
    };
    let before = live.shared.with(|world| world.page(target).map(documents));
    session.call("Page.navigateToHistoryEntry", json!({ "entryId": entry.id })).await?;
    let limit = deadline.saturating_duration_since(Instant::now());
    let arrived = live.shared.until(limit, |world| {
        let Some(page) = world.page(target).filter(|page| !page.crashed) else { return Some(()) };
        let moved = Some(documents(page)) != before;
        let loaded = page.frames.values().all(|frame| !frame.navigating && frame.lifecycle.contains("load"));
        (moved && loaded).then_some(())
    });
    Ok(arrived.await.ok_or(()))
}
