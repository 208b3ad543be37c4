//! What is kept of a session beside its history: what it was asked to be, what it has become, and its secrets.
//!
//! | path below the directory | what |
//! |---|---|
//! | `users/TENANT/conversations/SESSION/` | the history, in the layout of OpenHands, and `session.json` |
//! | `secrets/TENANT/SESSION.json` | secrets and variables; gone when the session has ended |
//! | `served/TENANT/SESSION` | some server serves it, or has died when it did |
//! | `wanted/TENANT/SESSION` | another server wants to serve it |
//!
//! All files are for their owner only. Who keeps the history open is the only one who writes them, apart from the last.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use gloveport_event_stream::{
    ConversationPaths, EventStore, EventStream, FileStore, HistoryError, LocalStore, StoreError,
};
use gloveport_protocol::Secret;
use gloveport_provider::SessionId;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};

/// The directories of marks.
const SERVED: &str = "served";
const WANTED: &str = "wanted";

/// A session of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) tenant: String,
    pub(crate) id: SessionId,
}

/// What a session has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Its sandbox is being made or set up.
    Starting,
    /// Actions are executed.
    Ready,
    /// Its sandbox rests.
    Paused,
    /// It was deleted; its history stays.
    Ended,
    /// Its sandbox could not be made, or is gone.
    Failed,
}

impl State {
    /// Whether there is nothing more to come.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed)
    }
}

/// A program that is an MCP server in the sandbox. Its variables are among what is hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct McpServer {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
}

/// What a session was asked to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) image: Option<String>,
    pub(crate) runtime_class: Option<String>,
    pub(crate) resource_factor: Option<u32>,
    pub(crate) plugins: Vec<String>,
    pub(crate) repository: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) confirmation_mode: bool,
    pub(crate) analyzer: Option<String>,
    /// Seconds that an action may take that says nothing of it.
    pub(crate) timeout: Option<u32>,
    pub(crate) mcp_servers: Vec<McpServer>,
}

/// What nobody is shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Hidden {
    /// Variables of the tools.
    #[serde(serialize_with = "exposed")]
    pub(crate) environment: BTreeMap<String, Secret>,
    /// Variables of the tools that are masked in the history.
    #[serde(serialize_with = "exposed")]
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Tokens at git providers, by the names of these.
    #[serde(serialize_with = "exposed")]
    pub(crate) git_tokens: BTreeMap<String, Secret>,
    /// Variables of MCP servers, by their names.
    #[serde(serialize_with = "all_exposed")]
    pub(crate) mcp_environments: BTreeMap<String, BTreeMap<String, Secret>>,
}

impl Hidden {
    /// What must not be seen in the history.
    pub(crate) fn masked(&self) -> BTreeMap<String, Secret> {
        let mcp = self.mcp_environments.iter().flat_map(|(server, variables)| {
            variables.iter().map(move |(name, value)| (format!("{server} {name}"), value.clone()))
        });
        let tokens = self.git_tokens.iter().map(|(name, value)| (format!("token {name}"), value.clone()));
        self.secrets.clone().into_iter().chain(tokens).chain(mcp).collect()
    }

    /// The variables of the tools.
    pub(crate) fn variables(&self) -> BTreeMap<String, Secret> {
        self.environment.clone().into_iter().chain(self.secrets.clone()).collect()
    }
}

/// Secrets as they are: for the file alone.
fn exposed<S: Serializer>(secrets: &BTreeMap<String, Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(secrets.len()))?;
    for (name, value) in secrets {
        map.serialize_entry(name, value.expose())?;
    }
    map.end()
}

fn all_exposed<S: Serializer>(
    all: &BTreeMap<String, BTreeMap<String, Secret>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(all.len()))?;
    for (name, secrets) in all {
        let plain: BTreeMap<&str, &str> = secrets.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        map.serialize_entry(name, &plain)?;
    }
    map.end()
}

/// What is known of a session. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) state: State,
    /// Why it is over, or what of it did not work.
    pub(crate) reason: Option<String>,
    pub(crate) created: f64,
    pub(crate) changed: f64,
    pub(crate) sandbox: Option<String>,
    /// The directory of the clone, in the workspace.
    #[serde(default)]
    pub(crate) cloned: Option<String>,
    /// All actions before this number are answered.
    pub(crate) settled: i64,
    pub(crate) wanted: Wanted,
}

impl Record {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let now = now();
        Self {
            state: State::Starting,
            reason: None,
            created: now,
            changed: now,
            sandbox: None,
            cloned: None,
            settled: 0,
            wanted,
        }
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The files of all sessions.
#[derive(Clone)]
pub(crate) struct Files {
    store: Arc<dyn FileStore>,
}

impl Files {
    pub(crate) fn open(directory: &std::path::Path) -> Result<Self, StoreError> {
        Ok(Self { store: Arc::new(LocalStore::new(directory, None)?) })
    }

    /// The history, for reading.
    pub(crate) fn events(&self, key: &Key) -> EventStore {
        EventStore::new(Arc::clone(&self.store), key.id.as_str(), Some(&key.tenant))
    }

    /// Opens the history for writing, which keeps all others out.
    pub(crate) async fn stream(&self, key: &Key) -> Result<EventStream, HistoryError> {
        EventStream::open(Arc::clone(&self.store), key.id.as_str(), Some(&key.tenant)).await
    }

    /// The record; none if there is no such session.
    pub(crate) async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let path = record(key);
        let content = match self.store.read(&path).await {
            Ok(content) => content,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&content) {
            Ok(record) => Ok(Some(record)),
            Err(error) => Err(unreadable(path, error)),
        }
    }

    pub(crate) async fn save(&self, key: &Key, what: &mut Record) -> Result<(), StoreError> {
        what.changed = now();
        let content = serde_json::to_vec(what).map_err(|error| unreadable(record(key), error))?;
        self.store.write(&record(key), content.into()).await
    }

    pub(crate) async fn hidden(&self, key: &Key) -> Result<Hidden, StoreError> {
        let path = hidden(key);
        match self.store.read(&path).await {
            Ok(content) => serde_json::from_slice(&content).map_err(|error| unreadable(path, error)),
            Err(StoreError::NotFound { .. }) => Ok(Hidden::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn hide(&self, key: &Key, what: &Hidden) -> Result<(), StoreError> {
        let content = serde_json::to_vec(what).map_err(|error| unreadable(hidden(key), error))?;
        self.store.write(&hidden(key), content.into()).await
    }

    /// Forgets what nobody is shown.
    pub(crate) async fn forget_hidden(&self, key: &Key) -> Result<(), StoreError> {
        self.store.delete(&hidden(key)).await
    }

    /// Says that somebody serves it.
    pub(crate) async fn mark(&self, key: &Key) -> Result<(), StoreError> {
        self.store.write(&mark(key), Vec::new().into()).await
    }

    pub(crate) async fn unmark(&self, key: &Key) -> Result<(), StoreError> {
        self.store.delete(&mark(key)).await
    }

    /// Asks whoever serves it to let it go.
    pub(crate) async fn want(&self, key: &Key) -> Result<(), StoreError> {
        self.store.write(&want(key), Vec::new().into()).await
    }

    pub(crate) async fn unwant(&self, key: &Key) -> Result<(), StoreError> {
        self.store.delete(&want(key)).await
    }

    /// The sessions that somebody serves, or has served when it died.
    pub(crate) async fn marked(&self) -> Result<Vec<Key>, StoreError> {
        self.all_in(SERVED).await
    }

    /// The sessions that somebody wants to serve.
    pub(crate) async fn wanted(&self) -> Result<Vec<Key>, StoreError> {
        self.all_in(WANTED).await
    }

    async fn all_in(&self, directory: &str) -> Result<Vec<Key>, StoreError> {
        let mut all = Vec::new();
        for tenant in self.names(directory).await? {
            let ids = self.names(&format!("{directory}/{tenant}")).await?;
            all.extend(keys(&tenant, ids));
        }
        Ok(all)
    }

    /// All sessions of a tenant, by their names.
    pub(crate) async fn of_tenant(&self, tenant: &str) -> Result<Vec<Key>, StoreError> {
        let ids = self.names(&format!("users/{tenant}/conversations")).await?;
        let mut found: Vec<Key> = keys(tenant, ids).collect();
        found.sort();
        Ok(found)
    }

    /// Removes all of it.
    pub(crate) async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        self.forget_hidden(key).await?;
        self.store.delete(directory(key).trim_end_matches('/')).await?;
        self.unwant(key).await?;
        self.unmark(key).await
    }

    /// The last parts of what is in a directory.
    async fn names(&self, path: &str) -> Result<Vec<String>, StoreError> {
        let listed = match self.store.list(path).await {
            Ok(listed) => listed,
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let name = |path: &String| path.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
        Ok(listed.iter().filter_map(name).collect())
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Files").field("directory", &self.store.directory()).finish()
    }
}

fn keys(tenant: &str, ids: Vec<String>) -> impl Iterator<Item = Key> {
    ids.into_iter().filter_map(move |id| Some(Key { tenant: tenant.to_owned(), id: SessionId::new(id).ok()? }))
}

fn directory(key: &Key) -> String {
    ConversationPaths::new(key.id.as_str(), Some(&key.tenant)).directory().to_owned()
}

fn record(key: &Key) -> String {
    format!("{}session.json", directory(key))
}

fn hidden(key: &Key) -> String {
    format!("secrets/{}/{}.json", key.tenant, key.id)
}

fn mark(key: &Key) -> String {
    format!("{SERVED}/{}/{}", key.tenant, key.id)
}

fn want(key: &Key) -> String {
    format!("{WANTED}/{}/{}", key.tenant, key.id)
}

/// An error of a content that is not as it was written. It says nothing of what is in it.
fn unreadable(path: String, error: serde_json::Error) -> StoreError {
    StoreError::Io { operation: "understand", path: path.into(), source: error.into() }
}
