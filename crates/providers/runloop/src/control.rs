//! Calls of the service (`hosted-apis` 4.2).

use std::time::{Duration, Instant};

use bytes::Bytes;
use form_urlencoded::byte_serialize;
use gloveport_hosted::service::{Again, Answer, Request, Service};
use gloveport_provider::{ProviderError, SandboxId, backend};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    RunloopOptions,
    names::WORDS,
    wire::{Create, Devbox, Devboxes, Execution, Logs, Snapshot, SnapshotStatus, Snapshots},
};

/// Members of a page.
pub(crate) const PAGE: usize = 1000;
/// Most pages of a list.
const PAGES: usize = 1000;
/// Longest wait for a state in one request, in seconds.
const WAIT: u64 = 30;
/// What an answer may be later than the wait.
const LATER: Duration = Duration::from_secs(5);
/// Longest wait for a program in one request, in seconds.
const RUN: u64 = 25;

/// The service.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) service: Service,
    url: String,
    limit: Duration,
}

/// What came of a wish for a sandbox.
pub(crate) enum Wished {
    /// It was made.
    Made(Devbox),
    /// It may have been made: what was heard is no answer.
    Unsure(ProviderError),
}

impl Control {
    pub(crate) fn new(options: &RunloopOptions) -> Self {
        let (url, limit) = (options.api_url.clone(), options.answer_within);
        Self { service: Service::new(WORDS, &url, options.key.clone()), url, limit }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Result<Request, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", self.service.key_header("Bearer ")?);
        let (url, body) = (format!("{}{path}", self.url), Bytes::new());
        Ok(Request { method, url, headers, body, again: Again::Always, limit: self.limit })
    }

    /// A request with JSON. It has an id of its own, so that the service does it once, however often it hears it.
    pub(crate) fn post<B: Serialize>(&self, action: &str, path: &str, body: &B) -> Result<Request, ProviderError> {
        let mut request = self.request(Method::POST, path)?;
        let body = serde_json::to_vec(body).map_err(|error| self.service.failed(action, error))?;
        let id = backend::random().map_err(|error| self.service.failed(action, error))?;
        self.name(action, &mut request, &id)?;
        request.headers.insert("content-type", HeaderValue::from_static("application/json"));
        request.body = body.into();
        Ok(request)
    }

    fn name(&self, action: &str, request: &mut Request, id: &str) -> Result<(), ProviderError> {
        let id = HeaderValue::from_str(id).map_err(|error| self.service.failed(action, error))?;
        request.headers.insert("x-request-id", id);
        Ok(())
    }

    pub(crate) fn refused(&self, action: &str, answer: &Answer) -> ProviderError {
        self.service.refused(action, answer.status, &answer.body)
    }

    /// What a request tells that is not about one thing.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, action: &str, request: &Request) -> Result<T, ProviderError> {
        let answer = self.service.ask(action, request).await?;
        if answer.status.is_success() { self.service.read(action, &answer) } else { Err(self.refused(action, &answer)) }
    }

    /// What the account says; for checks.
    pub(crate) async fn account(&self) -> Result<(), ProviderError> {
        let request = self.request(Method::GET, "/v1/accounts/me")?;
        self.ask::<Value>("ask for the account", &request).await.map(drop)
    }

    /// Wishes for a sandbox. `name` is the wish's own: the service makes one sandbox for it, however often it hears it.
    pub(crate) async fn create(&self, wish: &Create<'_>, name: &str) -> Result<Wished, ProviderError> {
        let action = "make a sandbox";
        let mut request = self.post(action, "/v1/devboxes", wish)?;
        self.name(action, &mut request, name)?;
        let answer = match self.service.ask(action, &request).await {
            Err(error) if error.is_temporary() => return Ok(Wished::Unsure(error)),
            answered => answered?,
        };
        match answer.status {
            status if status.is_success() => self.service.read(action, &answer).map(Wished::Made),
            StatusCode::NOT_FOUND => {
                let told = gloveport_hosted::fault::message(&answer.body);
                let hint = "look for it on the dashboard, or name another one in [extended.runloop]";
                Err(gloveport_hosted::fault::wrong("image", format!("{told}; {hint}")))
            }
            // The first request with this id is still at work; or a machine failed.
            status if status == StatusCode::CONFLICT || status.is_server_error() => {
                Ok(Wished::Unsure(self.refused(action, &answer)))
            }
            _ => Err(self.refused(action, &answer)),
        }
    }

    /// A sandbox by its id.
    pub(crate) async fn get(&self, id: &SandboxId) -> Result<Option<Devbox>, ProviderError> {
        let action = "look at a sandbox";
        let told = self.service.told(action, &self.request(Method::GET, &format!("/v1/devboxes/{id}"))?).await?;
        told.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// All sandboxes of the account that have not ended. The service cannot be asked for those with a label.
    pub(crate) async fn list(&self) -> Result<Vec<Devbox>, ProviderError> {
        let action = "list sandboxes";
        let (mut all, mut after) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let path = format!("/v1/devboxes?limit={PAGE}&include_total_count=false{after}");
            let page: Devboxes = self.ask(action, &self.request(Method::GET, &path)?).await?;
            let last = page.devboxes.last().map(|devbox| format!("&starting_after={}", devbox.id));
            all.extend(page.devboxes.into_iter().filter(|devbox| devbox.status != "shutdown"));
            match last {
                Some(last) if page.has_more => after = last,
                _ => return Ok(all),
            }
        }
        Err(self.service.failed(action, format!("its list has more than {PAGES} pages")))
    }

    /// Waits until a sandbox is in one of these states. None if there is no such sandbox.
    pub(crate) async fn wait(
        &self,
        action: &str,
        id: &SandboxId,
        statuses: &[&str],
        limit: Duration,
    ) -> Result<Option<Devbox>, ProviderError> {
        let began = Instant::now();
        loop {
            let left = limit.saturating_sub(began.elapsed()).as_secs().min(WAIT);
            let body = json!({"statuses": statuses, "timeout_seconds": left.max(1)});
            let mut request = self.post(action, &format!("/v1/devboxes/{id}/wait_for_status"), &body)?;
            request.limit = Duration::from_secs(left) + self.limit.max(LATER);
            let answer = self.service.ask(action, &request).await?;
            match answer.status {
                status if status.is_success() => return self.service.read(action, &answer).map(Some),
                StatusCode::NOT_FOUND => return Ok(None),
                // It takes longer.
                StatusCode::REQUEST_TIMEOUT => {}
                _ => return Err(self.refused(action, &answer)),
            }
            if began.elapsed() >= limit {
                return Err(ProviderError::Timeout { action: format!("waiting for Runloop to {action}"), limit });
            }
        }
    }

    /// Does something with a sandbox that has no answer worth reading. Whether there is one.
    pub(crate) async fn change(&self, action: &str, id: &SandboxId, what: &str) -> Result<bool, ProviderError> {
        let request = self.post(action, &format!("/v1/devboxes/{id}/{what}"), &json!({}))?;
        Ok(self.service.told(action, &request).await?.is_some())
    }

    /// Takes its labels from a sandbox.
    pub(crate) async fn disown(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let action = "take the labels from a sandbox";
        let request = self.post(action, &format!("/v1/devboxes/{id}"), &json!({"metadata": {}}))?;
        self.service.told(action, &request).await.map(drop)
    }

    /// Runs a short script in a sandbox, and gives its code and what it wrote. None if there is no such sandbox.
    pub(crate) async fn run(
        &self,
        action: &str,
        id: &SandboxId,
        command: &str,
    ) -> Result<Option<(i64, String)>, ProviderError> {
        let body = json!({"command": command, "command_id": command_id(), "optimistic_timeout": RUN});
        let mut request = self.post(action, &format!("/v1/devboxes/{id}/execute"), &body)?;
        request.limit = Duration::from_secs(RUN) + self.limit.max(LATER);
        let Some(answer) = self.service.told(action, &request).await? else { return Ok(None) };
        let ran: Execution = self.service.read(action, &answer)?;
        match (ran.status.as_str(), ran.exit_status) {
            ("completed", Some(code)) => {
                let said = ran.stdout.unwrap_or_default() + &ran.stderr.unwrap_or_default();
                Ok(Some((code, said.trim().to_owned())))
            }
            _ => Err(self.service.failed(action, format!("a script was not over within {RUN} seconds"))),
        }
    }

    /// Starts a program in a sandbox whose output is followed. Gives its id.
    pub(crate) async fn start(
        &self,
        action: &str,
        id: &SandboxId,
        command: &str,
    ) -> Result<Option<String>, ProviderError> {
        let request = self.post(action, &format!("/v1/devboxes/{id}/execute_async"), &json!({"command": command}))?;
        let Some(answer) = self.service.told(action, &request).await? else { return Ok(None) };
        self.service.read::<Execution>(action, &answer).map(|started| Some(started.id))
    }

    /// What a program writes from this byte on, as events.
    pub(crate) async fn updates(
        &self,
        action: &str,
        id: &SandboxId,
        execution: &str,
        offset: u64,
    ) -> Result<reqwest::Response, ProviderError> {
        let path = format!("/v1/devboxes/{id}/executions/{}/stream_stdout_updates?offset={offset}", encoded(execution));
        let mut request = self.request(Method::GET, &path)?;
        request.headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        let answer = self.service.send(action, &request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(self.service.refused(action, answer.status(), b""))
    }

    /// Whether a program has not ended. None if nobody knows of it.
    pub(crate) async fn runs(&self, id: &SandboxId, execution: &str) -> Result<Option<bool>, ProviderError> {
        let action = "look at a program";
        let path = format!("/v1/devboxes/{id}/executions/{}", encoded(execution));
        let told = self.service.told(action, &self.request(Method::GET, &path)?).await?;
        let read = |answer| self.service.read::<Execution>(action, &answer).map(|it| it.status != "completed");
        told.map(read).transpose()
    }

    /// Ends a program and what it has started.
    pub(crate) async fn kill(&self, id: &SandboxId, execution: &str) -> Result<(), ProviderError> {
        let action = "end a program";
        let path = format!("/v1/devboxes/{id}/executions/{}/kill", encoded(execution));
        let request = self.post(action, &path, &json!({"kill_process_group": true}))?;
        self.service.told(action, &request).await.map(drop)
    }

    /// A file of a sandbox. None if there is none.
    pub(crate) async fn file(&self, id: &SandboxId, path: &str) -> Result<Option<Vec<u8>>, ProviderError> {
        let action = "read a file of a sandbox";
        let request = self.post(action, &format!("/v1/devboxes/{id}/download_file"), &json!({"path": path}))?;
        Ok(self.service.told(action, &request).await?.map(|answer| answer.body))
    }

    /// What the service has written about a sandbox, a line each.
    pub(crate) async fn words(&self, id: &SandboxId) -> Result<Vec<String>, ProviderError> {
        let action = "read what it says of a sandbox";
        let logs: Logs = self.ask(action, &self.request(Method::GET, &format!("/v1/devboxes/{id}/logs"))?).await?;
        Ok(logs.logs.into_iter().filter_map(|line| line.message).collect())
    }

    /// Begins to keep the disk of a sandbox.
    pub(crate) async fn snapshot(&self, id: &SandboxId, body: &Value) -> Result<Option<Snapshot>, ProviderError> {
        let action = "make a snapshot";
        let request = self.post(action, &format!("/v1/devboxes/{id}/snapshot_disk_async"), body)?;
        self.service.told(action, &request).await?.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// How far a snapshot is. None if there is none.
    pub(crate) async fn snapshot_status(&self, snapshot: &str) -> Result<Option<SnapshotStatus>, ProviderError> {
        let action = "look at a snapshot";
        let path = format!("/v1/devboxes/disk_snapshots/{}/status", encoded(snapshot));
        let told = self.service.told(action, &self.request(Method::GET, &path)?).await?;
        told.map(|answer| self.service.read(action, &answer)).transpose()
    }

    /// All snapshots of the account.
    pub(crate) async fn snapshots(&self) -> Result<Vec<Snapshot>, ProviderError> {
        let action = "list snapshots";
        let (mut all, mut after) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let path = format!("/v1/devboxes/disk_snapshots?limit={PAGE}&include_total_count=false{after}");
            let page: Snapshots = self.ask(action, &self.request(Method::GET, &path)?).await?;
            let last = page.snapshots.last().map(|snapshot| format!("&starting_after={}", encoded(&snapshot.id)));
            all.extend(page.snapshots);
            match last {
                Some(last) if page.has_more => after = last,
                _ => return Ok(all),
            }
        }
        Err(self.service.failed(action, format!("its list has more than {PAGES} pages")))
    }

    /// Removes a snapshot. Whether there was one.
    pub(crate) async fn delete_snapshot(&self, snapshot: &str) -> Result<bool, ProviderError> {
        let action = "delete a snapshot";
        let path = format!("/v1/devboxes/disk_snapshots/{}/delete", encoded(snapshot));
        Ok(self.service.told(action, &self.post(action, &path, &json!({}))?).await?.is_some())
    }
}

/// A name for a command: a UUID, version 7, of the time and of chance.
fn command_id() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let random = gloveport_ids::random::<10>().unwrap_or_else(|_| "0".repeat(20));
    let part = |from: usize, to: usize| random.get(from..to).unwrap_or_default();
    let time = format!("{:012x}", since.as_millis());
    let (high, low) = time.split_at(8);
    format!("{high}-{low}-7{}-8{}-{}", part(0, 3), part(3, 6), part(6, 18))
}

/// A text as a part of a URL.
pub(crate) fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_command_is_a_uuid_of_version_7() {
        let id = command_id();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!((lengths, &id[14..15], &id[19..20]), (vec![8, 4, 4, 4, 12], "7", "8"), "{id}");
    }
}
