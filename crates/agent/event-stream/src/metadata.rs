//! What is known about conversations beside their events, and their list (event-stream 2).

use std::{cmp::Reverse, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    layout::{CONVERSATIONS, ConversationPaths},
    store::{FileStore, StoreError},
};

/// How many conversations a page has when nothing is said.
pub const DEFAULT_LIMIT: usize = 20;
/// How many files are read at a time.
const CONCURRENT_READS: usize = 8;

/// Who made a conversation begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationTrigger {
    /// The issue resolver.
    Resolver,
    /// A person in the web interface.
    Gui,
    /// A task that was suggested.
    SuggestedTask,
    /// A program with an API key.
    OpenhandsApi,
    /// A message in Slack.
    Slack,
    /// The management of microagents.
    MicroagentManagement,
    /// A Jira issue.
    Jira,
    /// An issue of a Jira that its users run.
    JiraDc,
    /// A Linear issue.
    Linear,
    /// Bitbucket.
    Bitbucket,
}

/// Who hosts a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitProvider {
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Bitbucket.
    Bitbucket,
    /// The sign-on of a company.
    EnterpriseSso,
}

/// What is known about a conversation. Times are ISO 8601 texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationMetadata {
    /// Its name.
    pub conversation_id: String,
    /// The repository it is about: `owner/name`.
    #[serde(default)]
    pub selected_repository: Option<String>,
    /// Whose it is.
    #[serde(default)]
    pub user_id: Option<String>,
    /// The branch it is about.
    #[serde(default)]
    pub selected_branch: Option<String>,
    /// Who hosts the repository.
    #[serde(default)]
    pub git_provider: Option<GitProvider>,
    /// What it is called for people.
    #[serde(default)]
    pub title: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub last_updated_at: Option<String>,
    /// Who made it begin.
    #[serde(default)]
    pub trigger: Option<ConversationTrigger>,
    /// The pull requests that came of it.
    #[serde(default)]
    pub pr_number: Vec<i64>,
    /// When it began.
    pub created_at: String,
    /// The model in use.
    #[serde(default)]
    pub llm_model: Option<String>,
    /// What it has cost, in US dollars.
    #[serde(default)]
    pub accumulated_cost: f64,
    /// Tokens that were sent.
    #[serde(default)]
    pub prompt_tokens: i64,
    /// Tokens that came back.
    #[serde(default)]
    pub completion_tokens: i64,
    /// Both.
    #[serde(default)]
    pub total_tokens: i64,
    /// The sandbox it runs in.
    #[serde(default)]
    pub sandbox_id: Option<String>,
    /// The version of its form.
    #[serde(default)]
    pub conversation_version: Option<String>,
}

impl ConversationMetadata {
    /// A conversation that begins now, of which nothing else is known.
    pub fn new(conversation_id: impl Into<String>) -> Self {
        Self {
            conversation_id: conversation_id.into(),
            selected_repository: None,
            user_id: None,
            selected_branch: None,
            git_provider: None,
            title: None,
            last_updated_at: None,
            trigger: None,
            pr_number: Vec::new(),
            created_at: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            llm_model: None,
            accumulated_cost: 0.0,
            prompt_tokens: 0,
            completion_tokens: 0,
            total_tokens: 0,
            sandbox_id: None,
            conversation_version: None,
        }
    }
}

/// Some conversations of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversationPage {
    /// The conversations, newest first.
    pub results: Vec<ConversationMetadata>,
    /// What the next page is asked for with; nothing if this is the last.
    pub next_page_id: Option<String>,
}

/// Why what is known about a conversation could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// There is no such conversation.
    #[error("there is no conversation '{conversation_id}'")]
    NotFound {
        /// Its name.
        conversation_id: String,
    },
    /// The name cannot be one.
    #[error("'{conversation_id}' cannot be the name of a conversation: it must be the name of a directory")]
    Id {
        /// The name.
        conversation_id: String,
    },
    /// The file is not understood.
    #[error("'{path}' cannot be read: {reason}")]
    Corrupt {
        /// Where it is stored.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The page is not one that was given out.
    #[error("'{page_id}' is not the id of a page")]
    Page {
        /// What was given.
        page_id: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is known about the conversations in a store: those that belong to nobody in particular.
#[derive(Clone)]
pub struct ConversationStore {
    store: Arc<dyn FileStore>,
}

impl ConversationStore {
    /// The conversations of a store.
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store }
    }

    /// Writes down what is known.
    pub async fn save(&self, metadata: &ConversationMetadata) -> Result<(), MetadataError> {
        let path = path(&metadata.conversation_id)?.metadata();
        match serde_json::to_vec(metadata) {
            Ok(text) => Ok(self.store.write(&path, Bytes::from(text)).await?),
            Err(error) => Err(MetadataError::Corrupt { path, reason: error.to_string() }),
        }
    }

    /// What is known. A file that does not say when the conversation began counts as missing.
    pub async fn get(&self, conversation_id: &str) -> Result<ConversationMetadata, MetadataError> {
        let path = path(conversation_id)?.metadata();
        let missing = || MetadataError::NotFound { conversation_id: conversation_id.to_owned() };
        let content = match self.store.read(&path).await {
            Ok(content) => content,
            Err(StoreError::NotFound { .. }) => return Err(missing()),
            Err(error) => return Err(error.into()),
        };
        let corrupt = |reason: String| MetadataError::Corrupt { path: path.clone(), reason };
        let value: Value = serde_json::from_slice(&content).map_err(|error| corrupt(error.to_string()))?;
        if value.as_object().is_some_and(|members| !members.contains_key("created_at")) {
            return Err(missing());
        }
        let metadata: ConversationMetadata =
            serde_json::from_value(value).map_err(|error| corrupt(error.to_string()))?;
        for time in [Some(&metadata.created_at), metadata.last_updated_at.as_ref()].into_iter().flatten() {
            if instant(time).is_none() {
                return Err(corrupt(format!("'{time}' is not a time")));
            }
        }
        Ok(metadata)
    }

    /// Whether something is known.
    pub async fn exists(&self, conversation_id: &str) -> Result<bool, MetadataError> {
        match self.store.read(&path(conversation_id)?.metadata()).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the conversation with its events. A missing one is no error.
    pub async fn delete(&self, conversation_id: &str) -> Result<(), MetadataError> {
        let paths = path(conversation_id)?;
        Ok(self.store.delete(paths.directory().trim_end_matches('/')).await?)
    }

    /// A page of the list, newest first. What cannot be read is left out with a warning.
    pub async fn search(&self, page_id: Option<&str>, limit: usize) -> Result<ConversationPage, MetadataError> {
        let start = page_id.filter(|id| !id.is_empty()).map_or(Ok(0), offset)?;
        let names = match self.store.list(CONVERSATIONS).await {
            Ok(names) => names,
            Err(StoreError::NotFound { .. }) => return Ok(ConversationPage::default()),
            Err(error) => return Err(error.into()),
        };
        let ids: Vec<_> = names
            .iter()
            .filter_map(|path| path.trim_end_matches('/').rsplit('/').next())
            .filter(|name| !name.is_empty() && !name.starts_with('.'))
            .map(str::to_owned)
            .collect();
        let reads = ids.into_iter().map(|id| async move { (self.get(&id).await, id) });
        let mut found = Vec::new();
        let reads: Vec<_> = reads.collect();
        let mut reads = stream::iter(reads).buffered(CONCURRENT_READS);
        while let Some((read, conversation_id)) = reads.next().await {
            match read {
                Ok(metadata) => found.push(metadata),
                Err(error) => tracing::warn!("Could not load conversation metadata: {conversation_id}: {error}"),
            }
        }
        found.sort_by_cached_key(|metadata| Reverse(instant(&metadata.created_at)));
        let end = start.saturating_add(limit).min(found.len());
        let next_page_id = (end < found.len()).then(|| BASE64.encode(end.to_string()));
        Ok(ConversationPage { results: found.drain(start.min(end)..end).collect(), next_page_id })
    }
}

fn path(conversation_id: &str) -> Result<ConversationPaths, MetadataError> {
    if matches!(conversation_id, "" | "." | "..") || conversation_id.contains(['/', '\0']) {
        return Err(MetadataError::Id { conversation_id: conversation_id.to_owned() });
    }
    Ok(ConversationPaths::new(conversation_id, None))
}

fn offset(page_id: &str) -> Result<usize, MetadataError> {
    let text = BASE64.decode(page_id).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let offset = text.and_then(|text| text.parse().ok());
    offset.ok_or_else(|| MetadataError::Page { page_id: page_id.to_owned() })
}

/// The time that a text says. One without a zone counts as UTC.
fn instant(text: &str) -> Option<Timestamp> {
    let local = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
    text.parse().ok().or_else(local)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::LocalStore;

    fn store() -> (tempfile::TempDir, Arc<LocalStore>, ConversationStore) {
        let directory = tempfile::tempdir().unwrap();
        let files = Arc::new(LocalStore::new(directory.path(), None).unwrap());
        let store = ConversationStore::new(files.clone());
        (directory, files, store)
    }

    fn created(id: &str, time: &str) -> ConversationMetadata {
        ConversationMetadata { created_at: time.to_owned(), ..ConversationMetadata::new(id) }
    }

    #[tokio::test]
    async fn what_is_saved_is_read_again_and_deleted_with_the_events() {
        let (directory, files, store) = store();
        let metadata = ConversationMetadata {
            title: Some("Grüße".to_owned()),
            trigger: Some(ConversationTrigger::OpenhandsApi),
            git_provider: Some(GitProvider::EnterpriseSso),
            pr_number: vec![7],
            accumulated_cost: 0.25,
            ..ConversationMetadata::new("c")
        };
        assert!(!store.exists("c").await.unwrap());
        store.save(&metadata).await.unwrap();
        files.write("sessions/c/events/0.json", Bytes::from("{}")).await.unwrap();
        assert!(store.exists("c").await.unwrap());
        assert_eq!(store.get("c").await.unwrap(), metadata);
        store.delete("c").await.unwrap();
        assert!(!directory.path().join("sessions/c").exists());
        assert!(
            matches!(store.get("c").await, Err(MetadataError::NotFound { conversation_id }) if conversation_id == "c")
        );
        store.delete("c").await.unwrap();
    }

    #[tokio::test]
    async fn the_list_is_newest_first_and_comes_in_pages() {
        let (_directory, files, store) = store();
        assert_eq!(store.search(None, DEFAULT_LIMIT).await.unwrap(), ConversationPage::default());
        for (id, time) in [
            ("a", "2025-01-01T10:00:00Z"),
            ("b", "2025-01-01T10:00:00.5Z"),
            ("c", "2025-01-01T10:00:00.25"),
            ("d", "2025-01-01T11:00:00+02:00"),
        ] {
            store.save(&created(id, time)).await.unwrap();
        }
        for (path, content) in [
            ("sessions/e/metadata.json", "{"),
            ("sessions/f/metadata.json", "{\"conversation_id\": \"f\"}"),
            ("sessions/g/metadata.json", "{\"conversation_id\": \"g\", \"created_at\": \"yesterday\"}"),
            ("sessions/h/events/0.json", "{}"),
            ("sessions/.hidden/metadata.json", "{"),
        ] {
            files.write(path, Bytes::from(content)).await.unwrap();
        }
        let ids = |page: &ConversationPage| -> Vec<String> {
            page.results.iter().map(|metadata| metadata.conversation_id.clone()).collect()
        };
        let all = store.search(None, DEFAULT_LIMIT).await.unwrap();
        assert_eq!((ids(&all), all.next_page_id), (["b", "c", "a", "d"].map(str::to_owned).into(), None));
        let first = store.search(None, 3).await.unwrap();
        assert_eq!((ids(&first).len(), first.next_page_id.as_deref()), (3, Some("Mw==")));
        let second = store.search(first.next_page_id.as_deref(), 3).await.unwrap();
        assert_eq!((ids(&second), second.next_page_id), (vec!["d".to_owned()], None));
        let beyond = BASE64.encode("99");
        assert_eq!(store.search(Some(&beyond), 3).await.unwrap(), ConversationPage::default());
        assert!(matches!(store.search(Some("x"), 3).await, Err(MetadataError::Page { .. })));
    }

    #[tokio::test]
    async fn older_files_are_read() {
        let (_directory, files, store) = store();
        let old = json!({
            "conversation_id": "c", "github_user_id": 7, "selected_repository": null,
            "created_at": "2025-01-01T10:00:00.123456",
        });
        files.write("sessions/c/metadata.json", Bytes::from(old.to_string())).await.unwrap();
        assert_eq!(store.get("c").await.unwrap(), created("c", "2025-01-01T10:00:00.123456"));
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_is_refused() {
        let (directory, _files, store) = store();
        std::fs::create_dir_all(directory.path().join("sessions/x")).unwrap();
        for id in ["", ".", "..", "a/b", "../x"] {
            assert!(matches!(store.delete(id).await, Err(MetadataError::Id { .. })), "{id}");
        }
        assert!(directory.path().join("sessions/x").exists());
    }
}
