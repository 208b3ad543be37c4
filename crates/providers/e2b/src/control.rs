//! Calls of the control plane (`hosted-apis` 2.2).

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use form_urlencoded::byte_serialize;
use gloveport_hosted::{
    fault,
    service::{Again, Answer, Request, Service},
};
use gloveport_provider::{ProviderError, SandboxId};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::{
    E2bOptions,
    names::WORDS,
    wire::{Create, Made, Snapshot, Told},
};

/// Sandboxes of a page.
const PAGE: usize = 100;
/// Most pages of a list.
const PAGES: usize = 1000;
/// How long a call may take in which the service copies or restores memory.
const SLOW: Duration = Duration::from_mins(5);

/// The control plane.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) service: Service,
    url: String,
    limit: Duration,
}

/// What came of a wish for a sandbox.
pub(crate) enum Wished {
    /// It was made.
    Made(Made),
    /// It may have been made: what was heard is no answer, or that nobody knows.
    Unsure(ProviderError),
}

impl Control {
    pub(crate) fn new(options: &E2bOptions) -> Self {
        let (url, limit) = (options.api_url.clone(), options.answer_within);
        Self { service: Service::new(WORDS, &url, options.key.clone()), url, limit }
    }

    fn request(&self, method: Method, path: &str) -> Result<Request, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", self.service.key_header("")?);
        let (url, body) = (format!("{}{path}", self.url), Bytes::new());
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

    /// Wishes for a sandbox. `name` is the wish's own: the service makes one sandbox for it, however often it hears it.
    pub(crate) async fn create(&self, wish: &Create<'_>, name: &str) -> Result<Wished, ProviderError> {
        let action = "make a sandbox";
        let name = HeaderValue::from_str(name).map_err(|error| self.service.failed(action, error))?;
        let mut request = self.post(action, "/v2/sandboxes", wish)?;
        request.headers.insert("idempotency-key", name);
        request.again = Again::Refused;
        // A sandbox takes longer than other answers.
        request.limit = self.limit.saturating_mul(2);
        let mut answer = match self.service.ask(action, &request).await {
            Err(error) if error.is_temporary() => return Ok(Wished::Unsure(error)),
            answered => answered?,
        };
        // Older servers know the older call alone, and others answer the same about a template that is not there.
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            request.url = format!("{}/sandboxes", self.url);
            let wish = Create { secure: Some(true), network: wish.network.clone(), ..*wish };
            request.body = self.post(action, "/sandboxes", &wish)?.body;
            answer = match self.service.ask(action, &request).await {
                Err(error) if error.is_temporary() => return Ok(Wished::Unsure(error)),
                answered => answered?,
            };
        }
        match answer.status {
            status if status.is_success() => self.service.read(action, &answer).map(Wished::Made),
            StatusCode::NOT_FOUND => {
                let told = fault::message(&answer.body);
                let hint = "build it there, or name another one in [extended.e2b]";
                Err(fault::wrong("image", format!("E2B has no template `{}` ({told}); {hint}", wish.template)))
            }
            // The first request with this name is still at work, or nobody knows what became of it; or a machine failed.
            StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR => {
                Ok(Wished::Unsure(self.refused(action, &answer)))
            }
            status if status.is_server_error() => Ok(Wished::Unsure(self.refused(action, &answer))),
            _ => Err(self.refused(action, &answer)),
        }
    }

    /// A sandbox by its id.
    pub(crate) async fn get(&self, id: &SandboxId) -> Result<Option<Told>, ProviderError> {
        let action = "look at a sandbox";
        let told = self.service.told(action, &self.request(Method::GET, &format!("/sandboxes/{id}"))?).await?;
        told.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// All sandboxes with these labels, those that rest among them.
    pub(crate) async fn list(&self, labels: &BTreeMap<String, String>) -> Result<Vec<Told>, ProviderError> {
        let action = "list sandboxes";
        // The value of a query, in which names and values are encoded once more.
        let pairs =
            labels.iter().map(|(name, value)| format!("{}={}", encoded(&encoded(name)), encoded(&encoded(value))));
        let labels = pairs.collect::<Vec<_>>().join("&");
        let labels = if labels.is_empty() { labels } else { format!("&metadata={}", encoded(&labels)) };
        let (mut all, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let request = self.request(Method::GET, &format!("/v2/sandboxes?limit={PAGE}{labels}{next}"))?;
            let answer = self.service.ask(action, &request).await?;
            if !answer.status.is_success() {
                return Err(self.refused(action, &answer));
            }
            all.extend(self.service.read::<Vec<Told>>(action, &answer)?);
            let token = answer.headers.get("x-next-token").and_then(|token| token.to_str().ok()).unwrap_or_default();
            if token.is_empty() {
                return Ok(all);
            }
            next = format!("&nextToken={}", encoded(token));
        }
        Err(self.service.failed(action, format!("its list has more than {PAGES} pages")))
    }

    /// Lets a sandbox live so long from now on. Whether there is one.
    pub(crate) async fn set_timeout(&self, id: &SandboxId, limit: Duration) -> Result<bool, ProviderError> {
        let action = "lengthen the time limit of a sandbox";
        let request = self.post(action, &format!("/sandboxes/{id}/timeout"), &json!({"timeout": seconds(limit)}))?;
        Ok(self.service.told(action, &request).await?.is_some())
    }

    /// Wakes a sandbox, and tells how it is reached. One that runs goes on, at least so long.
    pub(crate) async fn connect(&self, id: &SandboxId, limit: Duration) -> Result<Option<Made>, ProviderError> {
        let action = "resume a sandbox";
        let body = json!({"timeout": seconds(limit)});
        // The last of these calls is the oldest server's.
        for path in ["/v2/sandboxes/ID/connect", "/sandboxes/ID/connect", "/sandboxes/ID/resume"] {
            let mut request = self.post(action, &path.replace("ID", id.as_str()), &body)?;
            request.limit = SLOW;
            let answer = self.service.ask(action, &request).await?;
            match answer.status {
                status if status.is_success() => return self.service.read(action, &answer).map(Some),
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {}
                _ => return Err(self.refused(action, &answer)),
            }
        }
        Ok(None)
    }

    /// Lets a sandbox rest with its memory. Whether there is one.
    pub(crate) async fn pause(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let action = "pause a sandbox";
        let mut request = self.post(action, &format!("/sandboxes/{id}/pause"), &json!({}))?;
        request.limit = SLOW;
        let answer = self.service.ask(action, &request).await?;
        match answer.status {
            // It rests already.
            StatusCode::CONFLICT => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(self.refused(action, &answer)),
        }
    }

    /// Keeps the disk of a sandbox as a template.
    pub(crate) async fn snapshot(&self, id: &SandboxId, name: &str) -> Result<Option<Snapshot>, ProviderError> {
        let action = "make a snapshot";
        let body = json!({"name": name, "memory": false});
        let mut request = self.post(action, &format!("/sandboxes/{id}/snapshots"), &body)?;
        (request.limit, request.again) = (SLOW, Again::Refused);
        self.service.told(action, &request).await?.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// All snapshots; none where the service has no list of them.
    pub(crate) async fn snapshots(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let action = "list snapshots";
        let answer = self.service.ask(action, &self.request(Method::GET, "/snapshots")?).await?;
        match answer.status {
            status if status.is_success() => self.service.read(action, &answer),
            // A gateway that speaks the API of E2B says it so.
            StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED => Ok(Vec::new()),
            status => Err(self.service.refused(action, status, &answer.body)),
        }
    }

    /// Removes a snapshot. Whether there was one.
    pub(crate) async fn delete_snapshot(&self, id: &str) -> Result<bool, ProviderError> {
        let path = format!("/templates/{}", encoded(id));
        Ok(self.service.told("delete a snapshot", &self.request(Method::DELETE, &path)?).await?.is_some())
    }

    /// Ends a sandbox. Whether there was one.
    pub(crate) async fn kill(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let request = self.request(Method::DELETE, &format!("/sandboxes/{id}"))?;
        Ok(self.service.told("delete a sandbox", &request).await?.is_some())
    }
}

/// A text as a part of a URL.
fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// A time for the service, which has whole seconds, and for which none is no time.
fn seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}
