//! What the active page is like, and what an action led to.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use gloveport_browsergym::{ActionError, Snapshot, axtree, page_text};
use gloveport_protocol::browser::{PageInfo, PageView};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    live::Live,
    observe::{self, Picture},
    script::ScriptError,
    settle::{self, After},
    world::DownloadState,
};

/// Time for a download that an action began to end.
const DOWNLOAD: Duration = Duration::from_secs(3);
/// Time for the browser to tell the titles of pages.
const TITLES: Duration = Duration::from_secs(5);

/// The open pages, in the order in which they came.
pub(super) async fn pages(live: &Live) -> Vec<PageInfo> {
    let titles = titles(live).await;
    live.shared.with(|world| {
        let active = world.active().map(|page| page.target.clone());
        let info = |page: &crate::world::Page| {
            let title = titles.get(page.target.as_str()).cloned().unwrap_or_default();
            PageInfo {
                id: page.target.as_str().to_owned(),
                url: page.url().to_owned(),
                title: if is_address(&title, page.url()) { String::new() } else { title },
                active: active.as_ref() == Some(&page.target),
            }
        };
        world.pages.iter().map(info).collect()
    })
}

/// Pages without a title are called by their address.
fn is_address(title: &str, url: &str) -> bool {
    let bare = |text: &str| {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        text.trim_end_matches('/').to_owned()
    };
    bare(title) == bare(url)
}

/// The titles of pages, also of those that do not answer.
async fn titles(live: &Live) -> HashMap<String, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Target {
        target_id: String,
        title: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Targets {
        target_infos: Vec<Target>,
    }
    let answer = live.connection.browser().call_within("Target.getTargets", json!({}), TITLES).await;
    let targets = answer.and_then(|answer| crate::cdp::understood::<Targets>("Target.getTargets", answer));
    match targets {
        Ok(targets) => targets.target_infos.into_iter().map(|target| (target.target_id, target.title)).collect(),
        Err(error) => {
            tracing::debug!(%error, "titles are not known");
            HashMap::new()
        }
    }
}

/// What the active page is like.
pub(super) async fn view(live: &Live) -> Result<PageView, ScriptError> {
    let seen = observe::observe_with(live, Picture::Left).await?;
    let tree = axtree::flatten(&seen.axtree, &seen.properties)
        .unwrap_or_else(|error| format!("(the tree of the page cannot be read: {error})"));
    let pages = pages(live).await;
    let title = pages.iter().find(|page| page.active).map(|page| page.title.clone()).unwrap_or_default();
    Ok(PageView {
        url: seen.url,
        title,
        pages,
        tree,
        focused: seen.focused,
        error: None,
        downloads: Vec::new(),
        dialogs: Vec::new(),
    })
}

/// The active page as Markdown.
pub(super) async fn markdown(live: &Live) -> Result<String, ScriptError> {
    let session = live.page_session(&live.active().await?)?;
    let parameters = json!({ "computedStyles": [] });
    let snapshot: Snapshot = session.ask("DOMSnapshot.captureSnapshot", parameters).await?;
    Ok(page_text(&snapshot))
}

/// What has happened before an action, to tell what happens because of it.
pub(super) struct Effects {
    began: Instant,
    console: u64,
    /// Downloads that had begun.
    begun: HashSet<String>,
    /// Downloads that had ended.
    ended: HashSet<String>,
}

impl Effects {
    /// An action begins.
    pub(super) fn begin(live: &Live) -> Self {
        live.begin();
        live.shared.with(|world| Self {
            began: Instant::now(),
            console: world.log.counts().0,
            begun: world.downloads.iter().map(|download| download.guid.clone()).collect(),
            ended: world
                .downloads
                .iter()
                .filter(|download| download.state != DownloadState::Running)
                .map(|download| download.guid.clone())
                .collect(),
        })
    }

    /// Waits for the effects of the action, and looks at the page.
    pub(super) async fn view(
        self,
        live: &Live,
        after: After,
        error: Option<ActionError>,
    ) -> Result<PageView, ScriptError> {
        settle::settle(live, self.began, after).await?;
        let ended = live.shared.until(DOWNLOAD, |world| {
            let runs = |download: &crate::Download| {
                download.state == DownloadState::Running && !self.begun.contains(&download.guid)
            };
            (!world.downloads.iter().any(runs)).then_some(())
        });
        // One that takes longer is told of by a later action.
        let _in_time = ended.await;
        let seen = view(live).await?;
        let (dialogs, downloads) = live.shared.with(|world| {
            let dialogs = world.log.console_since(self.console).into_iter().filter(|entry| entry.level == "dialog");
            let downloads = world
                .downloads
                .iter()
                .filter(|download| download.state == DownloadState::Completed && !self.ended.contains(&download.guid));
            let path = |download: &crate::Download| live.downloads.join(&download.guid).to_string_lossy().into_owned();
            (dialogs.map(|entry| entry.text).collect(), downloads.map(path).collect())
        });
        Ok(PageView { error: error.map(|error| error.to_string()), downloads, dialogs, ..seen })
    }
}
