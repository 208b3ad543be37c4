//! Snapshots: images that are made of sandboxes.

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::owner::{Handle, Who, json as read};
use crate::Refusal;

/// Most characters of a name.
const NAME: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SnapshotRequest {
    name: Option<String>,
    memory: Option<bool>,
}

/// Keeps the files of a sandbox. Processes are no part of an image.
pub(super) async fn snapshot(
    State(_): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let SnapshotRequest { name, memory } = read(&body)?;
    if memory == Some(true) {
        return Err(Refusal::not_offered("a snapshot with memory is"));
    }
    let sandbox = owner.find(&id).await?;
    let random = gloveport_ids::random::<8>().map_err(|error| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the system gives no random numbers: {error}"))
    })?;
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("e2b-{random}"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins_well || name.len() > NAME || !name.bytes().all(is_plain) {
        let message = format!(
            "the name of a snapshot has 1 to {NAME} letters, digits, `.`, `_` and `-`, a letter or digit first"
        );
        return Err(Refusal::wrong(message));
    }
    let image = owner.0.snapshot(&sandbox.id, &name).await?;
    Ok((StatusCode::CREATED, Json(json!({"snapshotID": image, "names": [image]}))))
}

/// Engines are not asked which of their images were snapshots.
pub(super) async fn list(State(_): Handle) -> Refusal {
    Refusal::not_offered("a list of snapshots is")
}

/// Images are removed at the engine.
pub(super) async fn delete(State(_): Handle, Path(id): Path<String>) -> Refusal {
    Refusal::not_offered(&format!("deleting `{id}` (remove the image at the engine) is"))
}
