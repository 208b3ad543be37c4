//! The service `filesystem.Filesystem`.

use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use gloveport_client::ListOptions;
use gloveport_protocol::files::{FileKind, MkdirRequest, MoveRequest, RemoveRequest};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{entries, handle::Agent, watch};
use crate::connect::{self, Code, ConnectError, Kind};

/// Entries of one list at most.
const ENTRIES: usize = 10_000;
/// Levels of one list at most.
const DEPTH: u32 = 64;

#[derive(Debug, Deserialize)]
struct PathRequest {
    #[serde(default)]
    path: String,
}

#[derive(Debug, Deserialize)]
struct ListDirRequest {
    #[serde(default)]
    path: String,
    #[serde(default)]
    depth: u32,
}

#[derive(Debug, Deserialize)]
struct MoveFileRequest {
    #[serde(default)]
    source: String,
    #[serde(default)]
    destination: String,
}

/// Answers a call.
pub(super) async fn answer(agent: Agent, method: &str, request: Request) -> Response {
    if method == "WatchDir" {
        return match connect::check(&request, Kind::Stream) {
            Ok(()) => watch::stream(agent, request).await,
            Err(refused) => refused,
        };
    }
    if let Err(refused) = connect::check(&request, Kind::Unary) {
        return refused;
    }
    let headers = request.headers().clone();
    let outcome = match method {
        "Stat" => agent.stat(&headers, request).await,
        "ListDir" => agent.list_dir(&headers, request).await,
        "MakeDir" => agent.make_dir(&headers, request).await,
        "Move" => agent.move_file(&headers, request).await,
        "Remove" => agent.remove(&headers, request).await,
        "CreateWatcher" => watch::create(&agent, &headers, request).await,
        "GetWatcherEvents" => watch::events(&agent, request).await,
        "RemoveWatcher" => watch::remove(&agent, request).await,
        other => {
            let message = format!("filesystem.Filesystem has no method {other}");
            return ConnectError::new(Code::Unimplemented, message).into_response();
        }
    };
    connect::unary(outcome)
}

impl Agent {
    async fn stat(&self, headers: &HeaderMap, request: Request) -> Result<Value, ConnectError> {
        let PathRequest { path } = connect::message(request).await?;
        let path = self.path(headers, &path).await?;
        Ok(json!({"entry": self.entry(&path).await?}))
    }

    async fn list_dir(&self, headers: &HeaderMap, request: Request) -> Result<Value, ConnectError> {
        let ListDirRequest { path, depth } = connect::message(request).await?;
        let path = self.path(headers, &path).await?;
        let options = ListOptions { depth: Some(depth.clamp(1, DEPTH)), hidden: true, limit: Some(ENTRIES) };
        let list = self.place.client.files().list(&path, &options).await?;
        if list.truncated {
            let message = format!("the directory has more than {ENTRIES} entries; list its parts, or with less depth");
            return Err(ConnectError::new(Code::ResourceExhausted, message));
        }
        let base = path.trim_end_matches('/');
        let told = list.entries.iter().map(|found| entries::entry(&format!("{base}/{}", found.path), found));
        Ok(json!({"entries": told.collect::<Vec<_>>()}))
    }

    async fn make_dir(&self, headers: &HeaderMap, request: Request) -> Result<Value, ConnectError> {
        let PathRequest { path } = connect::message(request).await?;
        let path = self.path(headers, &path).await?;
        let files = self.place.client.files();
        match files.stat(&path, true).await {
            Ok(found) if found.kind == FileKind::Directory => {
                return Err(ConnectError::new(Code::AlreadyExists, format!("directory already exists: {path}")));
            }
            Ok(_) => return Err(ConnectError::wrong(format!("path already exists and is no directory: {path}"))),
            Err(error) if error.status().is_some_and(|status| status == 404) => {}
            Err(error) => return Err(error.into()),
        }
        files.make_directory(&MkdirRequest { path: path.clone(), parents: true, mode: None }).await?;
        Ok(json!({"entry": self.entry(&path).await?}))
    }

    async fn move_file(&self, headers: &HeaderMap, request: Request) -> Result<Value, ConnectError> {
        let MoveFileRequest { source, destination } = connect::message(request).await?;
        let (from, to) = (self.path(headers, &source).await?, self.path(headers, &destination).await?);
        let request = MoveRequest { from, to: to.clone(), overwrite: true, parents: true };
        self.place.client.files().rename(&request).await?;
        Ok(json!({"entry": self.entry(&to).await?}))
    }

    async fn remove(&self, headers: &HeaderMap, request: Request) -> Result<Value, ConnectError> {
        let PathRequest { path } = connect::message(request).await?;
        let path = self.path(headers, &path).await?;
        let request = RemoveRequest { path, recursive: true, missing_ok: true };
        self.place.client.files().remove(&request).await?;
        Ok(json!({}))
    }
}
