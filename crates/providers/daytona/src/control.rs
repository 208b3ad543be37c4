//! Calls of the API (`hosted-apis` 3.2).

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use form_urlencoded::byte_serialize;
use gloveport_hosted::service::{Again, Answer, Request, Service};
use gloveport_provider::{ProviderError, SandboxId};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::{
    DaytonaOptions,
    names::WORDS,
    wire::{Create, Page, Preview, Snapshot, Snapshots, Told},
};

/// Sandboxes of a page, and snapshots.
const PAGE: usize = 100;
/// Most pages of a list.
const PAGES: u64 = 1000;
/// The release of the service's own SDK whose formats are spoken: the service chooses formats by it.
const SPOKEN: &str = "0.226.1";

/// The API.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) service: Service,
    url: String,
    pub(crate) limit: Duration,
}

/// What came of a wish for a sandbox.
pub(crate) enum Wished {
    /// It is being made.
    Made(Told),
    /// There is one of this name.
    Taken,
    /// It may have been made: what was heard is no answer, or that nobody knows.
    Unsure(ProviderError),
}

impl Control {
    pub(crate) fn new(options: &DaytonaOptions) -> Self {
        let (url, limit) = (options.api_url.clone(), options.answer_within);
        Self { service: Service::new(WORDS, &url, options.key.clone()), url, limit }
    }

    /// What lets a request in, at the API and at the daemon of a sandbox.
    pub(crate) fn headers(&self) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", self.service.key_header("Bearer ")?);
        headers.insert("x-daytona-source", HeaderValue::from_static("gloveport"));
        headers.insert("x-daytona-sdk-version", HeaderValue::from_static(SPOKEN));
        Ok(headers)
    }

    fn request(&self, method: Method, path: &str) -> Result<Request, ProviderError> {
        let (url, headers, body) = (format!("{}{path}", self.url), self.headers()?, Bytes::new());
        Ok(Request { method, url, headers, body, again: Again::Always, limit: self.limit })
    }

    fn post<B: Serialize>(&self, action: &str, path: &str, body: &B) -> Result<Request, ProviderError> {
        let mut request = self.request(Method::POST, path)?;
        let body = serde_json::to_vec(body).map_err(|error| self.service.failed(action, error))?;
        request.headers.insert("content-type", HeaderValue::from_static("application/json"));
        request.body = body.into();
        Ok(request)
    }

    fn refused(&self, action: &str, answer: &Answer) -> ProviderError {
        self.service.refused(action, answer.status, &answer.body)
    }

    /// Whether the key is accepted.
    pub(crate) async fn check(&self) -> Result<(), ProviderError> {
        let action = "tell whose key it is";
        let answer = self.service.ask(action, &self.request(Method::GET, "/api-keys/current")?).await?;
        // Older services do not have this call, and have let the key in.
        let is_fine = answer.status.is_success() || answer.status == StatusCode::NOT_FOUND;
        if is_fine { Ok(()) } else { Err(self.refused(action, &answer)) }
    }

    /// Wishes for a sandbox. Its name makes sure that there is one at most.
    pub(crate) async fn create(&self, wish: &Create<'_>) -> Result<Wished, ProviderError> {
        let action = "make a sandbox";
        let mut request = self.post(action, "/sandbox", wish)?;
        request.again = Again::Refused;
        // A sandbox takes longer than other answers.
        request.limit = self.limit.saturating_mul(2);
        let answer = match self.service.ask(action, &request).await {
            Err(error) if error.is_temporary() => return Ok(Wished::Unsure(error)),
            answered => answered?,
        };
        match answer.status {
            status if status.is_success() => match self.service.read(action, &answer) {
                Ok(told) => Ok(Wished::Made(told)),
                // It was made; what it is called is known.
                Err(error) => Ok(Wished::Unsure(error)),
            },
            StatusCode::CONFLICT => Ok(Wished::Taken),
            status if status.is_server_error() => Ok(Wished::Unsure(self.refused(action, &answer))),
            _ => Err(self.refused(action, &answer)),
        }
    }

    /// A sandbox by its id or its name.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Told>, ProviderError> {
        let action = "look at a sandbox";
        let request = self.request(Method::GET, &format!("/sandbox/{}", encoded(id)))?;
        let told = self.service.told(action, &request).await?;
        told.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// All sandboxes with these labels. What has just been made may be missing, and what is told may be old.
    pub(crate) async fn list(&self, labels: &BTreeMap<String, String>) -> Result<Vec<Told>, ProviderError> {
        let action = "list sandboxes";
        let labels = serde_json::to_string(labels).map_err(|error| self.service.failed(action, error))?;
        let (mut all, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let path = format!("/sandbox?labels={}&limit={PAGE}{next}", encoded(&labels));
            let answer = self.service.ask(action, &self.request(Method::GET, &path)?).await?;
            if !answer.status.is_success() {
                return Err(self.refused(action, &answer));
            }
            let page: Page = self.service.read(action, &answer)?;
            all.extend(page.items);
            match page.next_cursor.filter(|cursor| !cursor.is_empty()) {
                None => return Ok(all),
                Some(cursor) => next = format!("&cursor={}", encoded(&cursor)),
            }
        }
        Err(self.service.failed(action, format!("its list has more than {PAGES} pages")))
    }

    /// Does something with a sandbox (`start`, `stop`, `pause`, `last-activity`, `autodelete/5`). Whether there is one.
    pub(crate) async fn act(&self, action: &str, id: &SandboxId, call: &str) -> Result<bool, ProviderError> {
        let mut request = self.request(Method::POST, &format!("/sandbox/{id}/{call}"))?;
        request.limit = self.limit.saturating_mul(2);
        Ok(self.service.told(action, &request).await?.is_some())
    }

    /// Ends a sandbox. Whether there was one.
    pub(crate) async fn delete(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let mut request = self.request(Method::DELETE, &format!("/sandbox/{id}"))?;
        request.limit = self.limit.saturating_mul(2);
        Ok(self.service.told("delete a sandbox", &request).await?.is_some())
    }

    /// How a port of a sandbox is reached.
    pub(crate) async fn preview(&self, id: &SandboxId, port: u16) -> Result<Option<Preview>, ProviderError> {
        let action = "tell how a port of a sandbox is reached";
        let request = self.request(Method::GET, &format!("/sandbox/{id}/ports/{port}/preview-url"))?;
        let told = self.service.told(action, &request).await?;
        told.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// Keeps the files of a sandbox as a snapshot of this name. Whether there is such a sandbox; the snapshot is made meanwhile.
    pub(crate) async fn keep(&self, id: &SandboxId, name: &str) -> Result<bool, ProviderError> {
        let action = "make a snapshot";
        let mut request = self.post(action, &format!("/sandbox/{id}/snapshot"), &json!({"name": name}))?;
        (request.again, request.limit) = (Again::Refused, self.limit.saturating_mul(2));
        let answer = match self.service.ask(action, &request).await {
            // Names of snapshots are used once, so it is looked for by its name.
            Err(error) if error.is_temporary() && self.snapshot(name).await?.is_some() => return Ok(true),
            answered => answered?,
        };
        match answer.status {
            status if status.is_success() => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(self.refused(action, &answer)),
        }
    }

    /// A snapshot by its id or its name.
    pub(crate) async fn snapshot(&self, name: &str) -> Result<Option<Snapshot>, ProviderError> {
        let action = "look at a snapshot";
        let request = self.request(Method::GET, &format!("/snapshots/{}", encoded(name)))?;
        let told = self.service.told(action, &request).await?;
        told.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// All snapshots.
    pub(crate) async fn snapshots(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let action = "list snapshots";
        let mut all = Vec::new();
        for page in 1..=PAGES {
            let request = self.request(Method::GET, &format!("/snapshots?page={page}&limit={PAGE}"))?;
            let Some(answer) = self.service.told(action, &request).await? else { break };
            let told: Snapshots = self.service.read(action, &answer)?;
            let is_last = page >= told.total_pages || told.items.is_empty();
            all.extend(told.items);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    /// Removes a snapshot by its id. Whether there was one.
    pub(crate) async fn delete_snapshot(&self, id: &str) -> Result<bool, ProviderError> {
        let path = format!("/snapshots/{}", encoded(id));
        let request = self.request(Method::DELETE, &path)?;
        Ok(self.service.told("delete a snapshot", &request).await?.is_some())
    }
}

/// A text as a part of a URL.
pub(crate) fn encoded(text: &str) -> String {
    // In a path, a plus is one.
    byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
