//! Going somewhere, in the active page or in one of its own.

use gloveport_browsergym::ActionError;
use gloveport_protocol::browser::{NavigateRequest, NavigateWait};
use serde_json::json;

use crate::{
    browser::BrowserError,
    cdp::CdpError,
    element::failed,
    live::Live,
    navigate::{self, WaitFor, Way},
    world::TargetId,
};

/// Where to.
#[derive(Debug)]
pub(super) enum Goal {
    Address { url: String, new_page: bool, wait: WaitFor },
    History(Way),
    Again(WaitFor),
}

impl Goal {
    /// Reads what a program says.
    pub(super) fn of(request: NavigateRequest) -> Result<Self, BrowserError> {
        let NavigateRequest { url, new_page, wait } = request;
        let wait = match wait {
            NavigateWait::Load => WaitFor::Load,
            NavigateWait::Parsed => WaitFor::Parsed,
            NavigateWait::Answer => WaitFor::Answer,
        };
        match url.as_str() {
            "back" | "forward" | "reload" if new_page => {
                Err(BrowserError::Invalid(format!("a new page has nothing to go {url} to: leave out `new_page`")))
            }
            "back" => Ok(Self::History(Way::Back)),
            "forward" => Ok(Self::History(Way::Forward)),
            "reload" => Ok(Self::Again(wait)),
            "" => Err(BrowserError::Invalid("`url` is empty".to_owned())),
            _ => Ok(Self::Address { url, new_page, wait }),
        }
    }
}

/// Goes there.
pub(super) async fn go(live: &Live, goal: &Goal) -> Result<(), ActionError> {
    let page = match goal {
        Goal::Address { new_page: true, .. } => live.new_page().await,
        Goal::Address { .. } | Goal::History(_) | Goal::Again(_) => live.active().await,
    };
    let page = page.map_err(|error| failed("Page", error))?;
    match goal {
        Goal::Address { url, wait, .. } => navigate::goto(live, &page, url, *wait).await,
        Goal::History(way) => navigate::travel(live, &page, *way).await,
        Goal::Again(wait) => reload(live, &page, *wait).await,
    }
}

async fn reload(live: &Live, page: &TargetId, wait: WaitFor) -> Result<(), ActionError> {
    const OPERATION: &str = "Page.reload";
    let refused = |error: CdpError| failed(OPERATION, error);
    let session = live.page_session(page).map_err(refused)?;
    let loader = |world: &mut crate::world::World| {
        let page = world.page(page)?;
        page.frames.get(&page.main).map(|frame| (frame.loader.clone(), frame.url.clone(), frame.lifecycle.clone()))
    };
    let before = live.shared.with(loader).map(|(loader, ..)| loader).unwrap_or_default();
    let (_, requests) = live.shared.with(|world| world.log.counts());
    session.call("Page.reload", json!({})).await.map_err(refused)?;
    let arrived = live.shared.until(live.page_limit, |world| {
        let Some(_) = world.page(page).filter(|page| !page.crashed) else { return Some(String::new()) };
        let (loader, url, lifecycle) = loader(world)?;
        (loader != before && lifecycle.contains(wait.event())).then_some(url)
    });
    let Some(address) = arrived.await else {
        let limit = live.page_limit.as_millis();
        return Err(ActionError::timeout(format!("{OPERATION}: Timeout {limit}ms exceeded.")));
    };
    if !address.starts_with("chrome-error:") {
        return Ok(());
    }
    let entries = live.shared.with(|world| world.log.network_since(requests));
    let failure = entries.into_iter().rev().find(|entry| entry.kind == "Document" && entry.error.is_some());
    let (reason, url) = failure
        .map_or_else(|| ("net::ERR_FAILED".to_owned(), address), |entry| (entry.error.unwrap_or_default(), entry.url));
    Err(ActionError::driver(format!("{OPERATION}: {reason} at {url}")))
}
