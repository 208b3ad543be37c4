//! What happens to files: as a stream, or kept until somebody asks.

use axum::{extract::Request, response::Response};
use futures_util::{StreamExt as _, stream};
use gloveport_client::{Watch, WatchEvent};
use gloveport_protocol::files::{FileChange, FileEvent, FileKind};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::handle::Agent;
use crate::connect::{self, Code, ConnectError, Events, KeepAlive};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchRequest {
    #[serde(default)]
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default, alias = "include_entry")]
    include_entry: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatcherRequest {
    #[serde(alias = "watcher_id")]
    watcher_id: String,
}

/// A directory that is watched.
struct Watched {
    agent: Agent,
    watch: Watch,
    base: String,
    include_entry: bool,
}

impl Watched {
    async fn new(agent: &Agent, headers: &HeaderMap, request: WatchRequest) -> Result<Self, ConnectError> {
        let path = agent.path(headers, &request.path).await?;
        let files = agent.place.client.files();
        if files.stat(&path, true).await?.kind != FileKind::Directory {
            return Err(ConnectError::wrong(format!("path is not a directory: {path}")));
        }
        let mut watch = files.watch(&path, request.recursive).await?;
        // From here on nothing is missed.
        match watch.next().await? {
            Some(WatchEvent::Ready) => {}
            Some(WatchEvent::Change(_)) | None => {
                return Err(ConnectError::new(Code::Internal, "the directory cannot be watched"));
            }
        }
        let (base, include_entry) = (format!("{}/", path.trim_end_matches('/')), request.include_entry);
        Ok(Self { agent: agent.clone(), watch, base, include_entry })
    }

    /// What happens next; none when the watch has ended.
    async fn next(&mut self) -> Result<Option<Value>, ConnectError> {
        loop {
            match self.watch.next().await? {
                None => return Ok(None),
                Some(WatchEvent::Ready) => {}
                Some(WatchEvent::Change(event)) => return self.told(&event).await.map(Some),
            }
        }
    }

    /// All that happens.
    fn events(self) -> Events {
        let told = stream::try_unfold(self, async |mut watched| Ok(watched.next().await?.map(|told| (told, watched))));
        told.boxed()
    }

    async fn told(&self, event: &FileEvent) -> Result<Value, ConnectError> {
        let kind = match event.change {
            FileChange::Created => "EVENT_TYPE_CREATE",
            FileChange::Modified => "EVENT_TYPE_WRITE",
            FileChange::Attributes => "EVENT_TYPE_CHMOD",
            FileChange::Removed => "EVENT_TYPE_REMOVE",
            FileChange::Overflow => {
                let message = "events were lost because they came faster than they were read; list the directory, and watch again";
                return Err(ConnectError::new(Code::DataLoss, message));
            }
        };
        let name = event.path.strip_prefix(&self.base).unwrap_or(&event.path);
        let mut told = json!({"name": name, "type": kind});
        if self.include_entry && event.change != FileChange::Removed {
            // It may be gone again.
            if let Ok(entry) = self.agent.entry(&event.path).await {
                told["entry"] = entry;
            }
        }
        Ok(told)
    }
}

/// Tells what happens as it happens.
pub(super) async fn stream(agent: Agent, request: Request) -> Response {
    let headers = request.headers().clone();
    let keep_alive = KeepAlive::new(&headers, json!({"keepalive": {}}));
    let events = async {
        let limit = connect::limit(&headers)?;
        let watched = Watched::new(&agent, &headers, connect::only_message(request).await?).await?;
        let start = stream::once(std::future::ready(Ok(json!({"start": {}}))));
        let rest = watched.events().map(|told| told.map(|told| json!({"filesystem": told})));
        let events: Events = start.chain(rest).boxed();
        Ok((events, limit))
    };
    match events.await {
        Ok((events, limit)) => connect::stream(Ok(events), keep_alive, limit),
        Err(error) => connect::stream(Err(error), keep_alive, None),
    }
}

/// Keeps what happens until somebody asks.
pub(super) async fn create(agent: &Agent, headers: &HeaderMap, request: Request) -> Result<Value, ConnectError> {
    let watched = Watched::new(agent, headers, connect::message(request).await?).await?;
    let id = agent.shared.watchers.add(&agent.place.sandbox.id, watched.events())?;
    Ok(json!({"watcherId": id}))
}

/// What has happened since somebody asked last.
pub(super) async fn events(agent: &Agent, request: Request) -> Result<Value, ConnectError> {
    let WatcherRequest { watcher_id } = connect::message(request).await?;
    let events = agent.shared.watchers.take(&agent.place.sandbox.id, &watcher_id)?;
    Ok(json!({"events": events}))
}

/// Ends a watch.
pub(super) async fn remove(agent: &Agent, request: Request) -> Result<Value, ConnectError> {
    let WatcherRequest { watcher_id } = connect::message(request).await?;
    agent.shared.watchers.remove(&agent.place.sandbox.id, &watcher_id)?;
    Ok(json!({}))
}
