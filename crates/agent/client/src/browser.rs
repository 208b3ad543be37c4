//! The browser of a server: pages, what is done in them, and what they are like.

use std::{sync::Arc, time::Duration};

use gloveport_protocol::browser::{
    BrowserAct, BrowserStatus, NavigateRequest, PageView, PdfRequest, ScreenshotRequest, StorageState,
};
use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ActionExecutionClient, ClientError, call::Call, session::Session};

const PATH: &str = "v1/browser";
/// Longer than the server lets anything in a page take, its start included.
const LIMIT: Duration = Duration::from_mins(5);

/// The browser of a server.
#[derive(Debug, Clone)]
pub struct Browser {
    session: Arc<Session>,
}

/// What pages wrote or fetched, and where the next question goes on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BrowserLog {
    /// The `since` of the next question.
    pub next: u64,
    /// The entries, oldest first.
    pub entries: Vec<Value>,
}

impl ActionExecutionClient {
    /// The browser of the server.
    pub fn browser(&self) -> Browser {
        Browser { session: Arc::clone(&self.shared.session) }
    }
}

impl Browser {
    /// How it stands. This does not start it.
    pub async fn status(&self) -> Result<BrowserStatus, ClientError> {
        self.session.once_json(&Call::get(PATH, self.session.limits.other)).await
    }

    /// Starts it, if it is not up.
    pub async fn start(&self) -> Result<BrowserStatus, ClientError> {
        self.send("start", &Value::Object(serde_json::Map::new())).await
    }

    /// What the active page is like.
    pub async fn page(&self) -> Result<PageView, ClientError> {
        self.get("page").await
    }

    /// Leads the active page somewhere, or opens another one.
    pub async fn navigate(&self, request: &NavigateRequest) -> Result<PageView, ClientError> {
        self.send("navigate", request).await
    }

    /// Does one thing in the active page.
    pub async fn act(&self, act: &BrowserAct) -> Result<PageView, ClientError> {
        self.send("act", act).await
    }

    /// The active page as Markdown.
    pub async fn markdown(&self) -> Result<String, ClientError> {
        let path = format!("{PATH}/markdown");
        let body = self.session.once(&Call::get(&path, LIMIT)).await?;
        String::from_utf8(body.into()).map_err(|error| self.session.bad_answer(&path, error.to_string()))
    }

    /// A picture of the active page, as PNG.
    pub async fn screenshot(&self, request: &ScreenshotRequest) -> Result<Vec<u8>, ClientError> {
        self.bytes("screenshot", request).await
    }

    /// The active page on paper, as PDF.
    pub async fn pdf(&self, request: &PdfRequest) -> Result<Vec<u8>, ClientError> {
        self.bytes("pdf", request).await
    }

    /// What the last action fetched, as an HTTP archive.
    pub async fn har(&self) -> Result<Value, ClientError> {
        self.get("har").await
    }

    /// What pages wrote to their consoles since a question before; 0 is the oldest that is kept.
    pub async fn console(&self, since: u64) -> Result<BrowserLog, ClientError> {
        self.get(&format!("console?since={since}")).await
    }

    /// What pages fetched since a question before; 0 is the oldest that is kept.
    pub async fn network(&self, since: u64) -> Result<BrowserLog, ClientError> {
        self.get(&format!("network?since={since}")).await
    }

    /// Cookies and local storage.
    pub async fn storage(&self) -> Result<StorageState, ClientError> {
        self.get("storage").await
    }

    /// Puts these in the place of all cookies, and of the local storage of these origins.
    pub async fn set_storage(&self, state: &StorageState) -> Result<(), ClientError> {
        let path = format!("{PATH}/storage");
        let call = Call { method: Method::PUT, ..Call::post(&path, state, Some(LIMIT))? };
        self.session.once(&call).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.session.once_json(&Call::get(&format!("{PATH}/{path}"), LIMIT)).await
    }

    async fn send<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        self.session.once_json(&Call::post(&format!("{PATH}/{path}"), body, Some(LIMIT))?).await
    }

    async fn bytes(&self, path: &str, body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
        Ok(self.session.once(&Call::post(&format!("{PATH}/{path}"), body, Some(LIMIT))?).await?.into())
    }
}
