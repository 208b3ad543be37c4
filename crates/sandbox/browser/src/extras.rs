//! The browser for programs that are no BrowserGym agents: pages by address, elements by what they show, files,
//! traffic, pictures.

mod act;
mod fault;
mod har;
mod input;
mod navigate;
mod paper;
mod picture;
mod screencast;
mod script;
pub(crate) mod storage;
mod target;
mod traffic;
mod view;

use gloveport_protocol::browser::{
    BrowserAct, NavigateRequest, PageInfo, PageView, PdfRequest, ScreenshotRequest, StorageState,
};
use serde_json::Value;

use self::{act::Deed, fault::Fault, navigate::Goal, view::Effects};
pub use self::{
    input::{Held, KeyChange, LiveInput, MouseChange},
    screencast::{Frame, Screencast},
};
use crate::{
    browser::{Browser, BrowserError},
    script::ScriptError,
    settle::After,
    world::{ConsoleEntry, NetworkEntry},
};

impl Browser {
    /// The open pages, in the order in which they came. A browser that is not up is not started, and has none.
    pub async fn pages(&self) -> Vec<PageInfo> {
        match self.peek().await {
            Some(live) => view::pages(&live).await,
            None => Vec::new(),
        }
    }

    /// What the active page is like.
    pub async fn view(&self) -> Result<PageView, BrowserError> {
        let lease = self.lease().await?;
        lease.run(self.step_limit(), view::view(&lease.live)).await
    }

    /// Goes somewhere. Where that fails, the view has the error.
    pub async fn navigate(&self, request: NavigateRequest) -> Result<PageView, BrowserError> {
        let goal = Goal::of(request)?;
        let lease = self.lease().await?;
        let live = &*lease.live;
        let work = async {
            let effects = Effects::begin(live);
            let gone = navigate::go(live, &goal).await;
            let after = if gone.is_ok() { After::Arrival } else { After::Input };
            effects.view(live, after, gone.err()).await
        };
        lease.run(self.step_limit(), Box::pin(work)).await
    }

    /// Does one thing in the active page. Where that fails, the view has the error; what makes no sense for any page is
    /// [`BrowserError::Invalid`].
    pub async fn act(&self, act: BrowserAct) -> Result<PageView, BrowserError> {
        let deed = Deed::of(act)?;
        let lease = self.lease().await?;
        let live = &*lease.live;
        let work = async {
            let effects = Effects::begin(live);
            let error = match act::perform(live, &deed).await {
                Ok(()) => None,
                Err(Fault::Action(error)) => Some(error),
                Err(fault @ Fault::Invalid(_)) => return Ok(Err(fault)),
            };
            effects.view(live, After::Input, error).await.map(Ok)
        };
        Ok(lease.run(self.step_limit(), Box::pin(work)).await??)
    }

    /// The active page as Markdown.
    pub async fn markdown(&self) -> Result<String, BrowserError> {
        let lease = self.lease().await?;
        lease.run(self.step_limit(), view::markdown(&lease.live)).await
    }

    /// A picture of the active page or of an element of it, as PNG.
    pub async fn screenshot(&self, request: ScreenshotRequest) -> Result<Vec<u8>, BrowserError> {
        let subject = picture::Subject::of(&request)?;
        let lease = self.lease().await?;
        let work = async { Ok::<_, ScriptError>(picture::take(&lease.live, &subject).await) };
        Ok(lease.run(self.step_limit(), Box::pin(work)).await??)
    }

    /// The active page as PDF.
    pub async fn pdf(&self, request: PdfRequest) -> Result<Vec<u8>, BrowserError> {
        paper::check(&request)?;
        let lease = self.lease().await?;
        let work = async { Ok::<_, ScriptError>(paper::print(&lease.live, &request).await) };
        lease.run(self.step_limit(), work).await?
    }

    /// The requests of the last action in the form HAR 1.2, without the values of headers that are secrets. A browser
    /// that is not up is not started, and has none.
    pub async fn har(&self) -> Result<Value, BrowserError> {
        Ok(match self.peek().await {
            Some(live) => har::of_last_action(&live).await,
            None => har::empty(),
        })
    }

    /// How many lines there were in the consoles of pages, and those since so many. A count of a browser that has ended
    /// gives all. A browser that is not up is not started, and has none.
    pub async fn console(&self, since: u64) -> Result<(u64, Vec<ConsoleEntry>), BrowserError> {
        Ok(self.peek().await.map(|live| traffic::console(&live, since)).unwrap_or_default())
    }

    /// The same of requests, without the values of headers that are secrets.
    pub async fn network(&self, since: u64) -> Result<(u64, Vec<NetworkEntry>), BrowserError> {
        Ok(self.peek().await.map(|live| traffic::network(&live, since)).unwrap_or_default())
    }

    /// All cookies, and the local storage of the origins of open pages and frames.
    pub async fn storage(&self) -> Result<StorageState, BrowserError> {
        let lease = self.lease().await?;
        lease.run(self.step_limit(), storage::read(&lease.live, storage::LONGEST)).await
    }

    /// Replaces all cookies, the local storage of the given origins and of those of open pages and frames. Nothing goes
    /// to the network.
    pub async fn set_storage(&self, state: StorageState) -> Result<(), BrowserError> {
        let cookies = storage::cookies_to_set(&state)?;
        storage::check_origins(&state)?;
        let lease = self.lease().await?;
        let work = async { Ok::<_, ScriptError>(storage::write(&lease.live, &cookies, &state).await) };
        Ok(lease.run(self.step_limit(), Box::pin(work)).await??)
    }

    /// Pictures of the active page as it changes, and a way to use it. The browser stays up while this lives.
    pub async fn screencast(&self) -> Result<Screencast, BrowserError> {
        Screencast::begin(self.lease().await?).await
    }
}
