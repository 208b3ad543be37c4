//! The histories of sessions, in the store that the configuration names.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gloveport_event_stream::{
    ConversationPaths, EventStore, SharedHistory,
    store::{StoreError, StoreOptions, open_store},
};
use gloveport_protocol::{Event, EventSource, Secret};
use gloveport_provider::ProviderContext;
use serde::{Deserialize, Serialize};

/// The directory of all histories.
const CONVERSATIONS: &str = "sessions";
/// What is in the history's directory beside the events.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// The name by which the runtime of the session is chosen.
    runtime: String,
}

/// Whether there is a store. To open one of this machine makes it.
fn has_store(context: &ProviderContext) -> bool {
    let path = Path::new(&context.config.file_store_path);
    let path = match (path.strip_prefix("~"), context.environment.get(gloveport_platform::HOME)) {
        (Ok(rest), Some(home)) => Path::new(home).join(rest),
        _ => path.to_owned(),
    };
    context.config.file_store != "local" || path.is_dir()
}

/// The history of one session.
pub(super) struct History {
    shared: SharedHistory,
}

impl History {
    /// `None` if the configuration keeps histories in memory only.
    pub(super) fn of(context: &ProviderContext, sid: &str) -> anyhow::Result<Option<Self>> {
        let config = &context.config;
        if !["local", "s3", "google_cloud"].contains(&config.file_store.as_str()) {
            return Ok(None);
        }
        let environment = |name: &str| context.environment.get(name).cloned();
        let store = open_store(StoreOptions {
            kind: config.file_store.clone(),
            path: Some(config.file_store_path.clone()),
            web_hook_url: config.file_store_web_hook_url.clone(),
            web_hook_headers: config.file_store_web_hook_headers.clone(),
            web_hook_batch: config.file_store_web_hook_batch,
            home: environment(gloveport_platform::HOME).filter(|home| !home.is_empty()).map(PathBuf::from),
            environment: &environment,
        })?;
        Ok(Some(Self { shared: SharedHistory::new(store, sid) }))
    }

    /// The sessions that have a history. Stores without directories cannot tell.
    pub(super) async fn kept(context: &ProviderContext) -> anyhow::Result<Vec<String>> {
        if !has_store(context) {
            return Ok(Vec::new());
        }
        let Some(any) = Self::of(context, "")? else { return Ok(Vec::new()) };
        let entries = match any.shared.store().list(CONVERSATIONS).await {
            Ok(entries) => entries,
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let name = |entry: &String| Some(entry.strip_suffix('/')?.rsplit('/').next()?.to_owned());
        Ok(entries.iter().filter_map(name).collect())
    }

    /// The runtime that hosts the session, as its commands wrote it down; none if they did not.
    pub(super) async fn runtime(&self) -> anyhow::Result<Option<String>> {
        match self.shared.store().read(&self.mark()).await {
            Ok(content) => Ok(serde_json::from_slice::<Mark>(&content).ok().map(|mark| mark.runtime)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes down which runtime hosts the session, so that its history is not removed while it runs there.
    pub(super) async fn hosted_by(&self, runtime: &str) -> anyhow::Result<()> {
        if self.runtime().await?.is_some_and(|known| known == runtime) {
            return Ok(());
        }
        let mark = serde_json::to_vec(&Mark { runtime: runtime.to_owned() })?;
        Ok(self.shared.store().write(&self.mark(), mark.into()).await?)
    }

    fn mark(&self) -> String {
        format!("{}gloveport.json", ConversationPaths::new(self.shared.sid(), None).directory())
    }

    /// For reading, also while others write.
    pub(super) fn events(&self) -> EventStore {
        self.shared.events()
    }

    /// Whether there is any.
    pub(super) async fn exists(&self) -> anyhow::Result<bool> {
        Ok(self.shared.exists().await?)
    }

    /// Adds an event without these secrets, and gives its number.
    pub(super) async fn add(
        &self,
        event: Event,
        source: EventSource,
        secrets: BTreeMap<String, Secret>,
    ) -> anyhow::Result<Option<i64>> {
        Ok(self.shared.add(event, source, secrets).await?)
    }

    /// Removes it; `false` if there was none.
    pub(super) async fn remove(&self) -> anyhow::Result<bool> {
        if !self.exists().await? {
            return Ok(false);
        }
        // Nobody may be writing it.
        self.shared.open().await?.close().await;
        let directory = ConversationPaths::new(self.shared.sid(), None);
        self.shared.store().delete(directory.directory().trim_end_matches('/')).await?;
        self.shared.store().flush().await;
        Ok(true)
    }
}
