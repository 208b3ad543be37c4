//! `browser`: the plugin that browses (spec/browser.md).

mod download;
mod picture;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gloveport_browser::{Browser, BrowserError, BrowserOptions, BrowserState, Step};
use gloveport_browsergym::{
    axtree,
    content::{self, InteractiveContent, VisitContent},
    page_text,
};
use gloveport_plugin::{Plugin, PluginError, PluginHost, PluginState};
use gloveport_protocol::{
    Action, ActionEvent, BoxFuture, BrowseInteractiveAction, BrowseObservation, ErrorObservation, ExecuteError,
    Observation,
};
use serde_json::{Map, Value};
use tokio::sync::watch;

use download::Downloads;

/// When the browser is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstStart {
    /// With the sandbox, in the background.
    AtOnce,
    /// With the first use.
    WhenNeeded,
}

/// Where downloads go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadPlace {
    /// Where OpenHands expects them, made with the sandbox (spec/browser.md 1.1).
    OfOpenHands,
    /// In the workspace, made with the first start of the browser.
    Workspace,
}

/// The directory of OpenHands.
const WORKSPACE: &str = "/workspace";
/// The directory for downloads, in the workspace.
const DOWNLOADS: &str = ".downloads";

/// The browser of a sandbox as a plugin.
#[derive(Debug)]
pub struct Web {
    first: FirstStart,
    place: DownloadPlace,
    started: OnceLock<Started>,
    state: watch::Sender<PluginState>,
}

/// What there is once the sandbox is.
#[derive(Debug)]
struct Started {
    browser: Browser,
    downloads: Downloads,
    /// Where the sandbox works.
    workspace: PathBuf,
    owner: Option<(u32, u32)>,
}

impl Web {
    /// A browser that is started then, with downloads there.
    pub fn new(first: FirstStart, place: DownloadPlace) -> Arc<Self> {
        Arc::new(Self { first, place, started: OnceLock::new(), state: watch::Sender::new(PluginState::Idle) })
    }

    /// The browser; none before the sandbox has started.
    pub fn browser(&self) -> Option<&Browser> {
        self.started.get().map(|started| &started.browser)
    }

    fn start(&self, host: &PluginHost) -> Started {
        let owner = host.surroundings.identity.as_ref().map(|identity| (identity.uid, identity.gid));
        let target = match self.place {
            DownloadPlace::OfOpenHands => PathBuf::from(WORKSPACE),
            DownloadPlace::Workspace => host.workspace.clone(),
        };
        let directory = target.join(DOWNLOADS);
        if self.place == DownloadPlace::OfOpenHands
            && let Err(error) = picture::own_directory(&directory, owner)
        {
            tracing::warn!("the directory for downloads {} cannot be made: {error}", directory.display());
        }
        let browser = Browser::new(BrowserOptions::new(host.surroundings.clone(), directory.clone()));
        tokio::spawn(follow(browser.state(), self.state.clone()));
        Started {
            browser,
            downloads: Downloads::new(directory, target, owner),
            workspace: host.workspace.clone(),
            owner,
        }
    }

    async fn browse(&self, event: &ActionEvent) -> Result<Observation, ExecuteError> {
        let started =
            self.started.get().ok_or_else(|| ExecuteError::Failed("the sandbox has not started".to_owned()))?;
        match &event.action {
            Action::Browse(action) => {
                let url = content::visit_url(&action.url, &started.workspace.to_string_lossy());
                Ok(started.visit(&url, action.return_axtree).await)
            }
            Action::BrowseInteractive(action) => started.interact(action).await,
            _ => Err(ExecuteError::NotRunnable { kind: event.action.kind() }),
        }
    }
}

impl Plugin for Web {
    fn name(&self) -> &'static str {
        "browser"
    }

    /// A browser that cannot be started does not hold up the rest: it says so when it is used.
    fn initialize<'a>(&'a self, host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(async {
            let started = self.started.get_or_init(|| self.start(host));
            if self.first == FirstStart::AtOnce {
                let browser = started.browser.clone();
                tokio::spawn(async move {
                    // Its state says what became of it.
                    let _state = browser.start().await;
                });
            }
            Ok(())
        })
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.state.subscribe()
    }

    fn handles(&self) -> Vec<String> {
        vec!["browse".to_owned(), "browse_interactive".to_owned()]
    }

    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(self.browse(event))
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(started) = self.started.get() {
                started.browser.close().await;
            }
            self.state.send_replace(PluginState::Stopped);
        })
    }
}

/// The state of the plugin is that of its browser.
async fn follow(mut browser: watch::Receiver<BrowserState>, plugin: watch::Sender<PluginState>) {
    loop {
        let state = match &*browser.borrow_and_update() {
            BrowserState::Idle | BrowserState::Closed => PluginState::Idle,
            BrowserState::Starting => PluginState::Starting { step: "starting the browser".to_owned() },
            BrowserState::Ready { .. } => PluginState::Ready,
            BrowserState::Failed { reason, remedy } => {
                PluginState::Failed { reason: reason.clone(), remedy: remedy.clone() }
            }
        };
        plugin.send_if_modified(|now| {
            let changes = *now != state && *now != PluginState::Stopped;
            if changes {
                *now = state;
            }
            changes
        });
        if browser.changed().await.is_err() {
            return;
        }
    }
}

/// What a sandbox without a browser says (spec/browser.md 1); behind it, what can be done.
fn unsupported(more: Option<&BrowserError>) -> Observation {
    let content = match more {
        Some(error) => format!("{}\n[{error}]", content::UNSUPPORTED),
        None => content::UNSUPPORTED.to_owned(),
    };
    Observation::Error(ErrorObservation::new(content))
}

/// A sandbox whose browser was switched off.
#[derive(Debug)]
pub struct NoWeb(watch::Sender<PluginState>);

impl NoWeb {
    /// Says for every action that there is no browser.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(PluginState::Stopped)))
    }
}

impl Plugin for NoWeb {
    fn name(&self) -> &'static str {
        "browser"
    }

    fn initialize<'a>(&'a self, _host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(async { Ok(()) })
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.0.subscribe()
    }

    fn handles(&self) -> Vec<String> {
        vec!["browse".to_owned(), "browse_interactive".to_owned()]
    }

    fn execute<'a>(&'a self, _event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(async { Ok(unsupported(None)) })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// What both actions tell of a page.
struct Told {
    observation: BrowseObservation,
    /// The page as its tree.
    tree: Result<String, String>,
    /// The page as text.
    text: String,
}

impl Started {
    async fn visit(&self, url: &str, return_axtree: bool) -> Observation {
        let text = content::visit_action(url);
        let told = match self.browser.step(&text).await {
            Err(error @ (BrowserError::NotStarted { .. } | BrowserError::Closed)) => return unsupported(Some(&error)),
            Ok(step) => self.tell(step, text, "browse", return_axtree, true).await,
            Err(error) => Err(error.to_string()),
        };
        let Told { mut observation, text, .. } = told.unwrap_or_else(|error| failed(error, url, "browse"));
        let error = observation.error.then_some(observation.last_browser_action_error.as_str());
        observation.content = VisitContent { url: &observation.url, error, page: &text }.text();
        Observation::Browse(observation)
    }

    async fn interact(&self, action: &BrowseInteractiveAction) -> Result<Observation, ExecuteError> {
        let text = action.browser_actions.clone();
        let told = match self.browser.step(&text).await {
            Err(error @ (BrowserError::NotStarted { .. } | BrowserError::Closed)) => {
                return Ok(unsupported(Some(&error)));
            }
            Ok(step) => self.tell(step, text.clone(), "browse_interactive", action.return_axtree, false).await,
            Err(error) => Err(error.to_string()),
        };
        let Told { mut observation, tree, .. } = told.unwrap_or_else(|error| failed(error, "", "browse_interactive"));
        if observation.error
            && let Some(download) = self.downloads.newest(&self.browser, &text).await?
        {
            return Ok(Observation::Download(download));
        }
        let error = observation.error.then_some(observation.last_browser_action_error.as_str());
        let content = InteractiveContent {
            url: &observation.url,
            focused_element_bid: observation.focused_element_bid.as_deref(),
            screenshot_path: observation.screenshot_path.as_deref(),
            error,
            tree: tree.as_deref().map_err(String::as_str),
        };
        observation.content = content.text();
        Ok(Observation::Browse(observation))
    }

    /// What a step tells, its picture stored. Texts and pictures of large pages take their time, so they are made where
    /// nothing waits for them.
    async fn tell(
        &self,
        step: Step,
        action: String,
        trigger: &'static str,
        return_axtree: bool,
        as_text: bool,
    ) -> Result<Told, String> {
        let (workspace, owner) = (self.workspace.clone(), self.owner);
        let made =
            tokio::task::spawn_blocking(move || make(step, action, trigger, return_axtree, as_text, &workspace, owner));
        made.await.unwrap_or_else(|_| Err("the page cannot be told by a defect of the server".to_owned()))
    }
}

fn make(
    step: Step,
    action: String,
    trigger: &str,
    return_axtree: bool,
    as_text: bool,
    workspace: &Path,
    owner: Option<(u32, u32)>,
) -> Result<Told, String> {
    let Step { observation: seen, error } = step;
    let picture = picture::Pictures::of(&seen)?;
    let path = picture::store(workspace, &picture.screenshot, owner)?;
    let tree = if as_text { Ok(String::new()) } else { axtree::flatten(&seen.axtree, &seen.properties) };
    let text = if as_text { page_text(&seen.snapshot) } else { String::new() };
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    let members = |value: Value| match value {
        Value::Object(members) if return_axtree => members,
        _ => Map::new(),
    };
    let observation = BrowseObservation {
        screenshot: picture.screenshot_url(),
        set_of_marks: picture.set_of_marks_url(),
        screenshot_path: Some(path),
        error: !error.is_empty(),
        active_page_index: i64::try_from(seen.active_index).unwrap_or(-1),
        open_pages_urls: seen.open_pages,
        extra_element_properties: if return_axtree {
            members(serde_json::to_value(&seen.properties).unwrap_or_default())
        } else {
            Map::new()
        },
        axtree_object: members(seen.axtree),
        last_browser_action: action,
        last_browser_action_error: error,
        focused_element_bid: seen.focused,
        ..BrowseObservation::new(String::new(), seen.url, trigger.to_owned())
    };
    Ok(Told { observation, tree, text })
}

/// What is told when there is nothing to be seen (spec/browser.md 8.3).
fn failed(error: String, url: &str, trigger: &str) -> Told {
    let observation = BrowseObservation {
        error: true,
        last_browser_action_error: error.clone(),
        ..BrowseObservation::new(String::new(), url.to_owned(), trigger.to_owned())
    };
    Told { observation, tree: Err(content::NO_TREE.to_owned()), text: error }
}
