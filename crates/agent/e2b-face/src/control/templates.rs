//! What sandboxes are made from. Templates are names of images in the configuration; nothing is built.

use axum::{
    Extension, Json,
    extract::{Path, State},
};
use gloveport_provider::Capabilities;
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    owner::{Handle, Who},
    view::AGENT_VERSION,
};
use crate::{FaceOptions, Refusal, Template};

/// A time for what has none.
const BEGINNING: &str = "1970-01-01T00:00:00Z";

/// The template of this name: one of the configuration, or an image.
pub(super) fn named(options: &FaceOptions, name: &str, can: &Capabilities) -> Result<Template, Refusal> {
    if let Some(template) = options.templates.get(name) {
        return Ok(template.clone());
    }
    if can.images && !name.is_empty() {
        return Ok(Template { image: Some(name.to_owned()), code_interpreter: false });
    }
    Err(missing(options, name))
}

fn missing(options: &FaceOptions, name: &str) -> Refusal {
    let known = options.templates.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = format!(
        "template '{name}' not found; there are {known}, and the gateway's file names others in [e2b.templates]"
    );
    Refusal::new(StatusCode::NOT_FOUND, message)
}

fn told(options: &FaceOptions, name: &str) -> Value {
    json!({
        "templateID": name, "buildID": name, "aliases": [name], "names": [name], "public": true, "buildStatus": "ready",
        "cpuCount": options.cpus, "memoryMB": options.memory_mib, "diskSizeMB": 0, "envdVersion": AGENT_VERSION,
        "createdAt": BEGINNING, "updatedAt": BEGINNING, "createdBy": null, "lastSpawnedAt": null, "spawnCount": 0,
        "buildCount": 0,
    })
}

pub(super) async fn list(State(shared): Handle, Extension(_): Who) -> Json<Vec<Value>> {
    let options = &shared.options;
    Json(options.templates.keys().map(|name| told(options, name)).collect())
}

pub(super) async fn find(State(shared): Handle, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let options = &shared.options;
    if !options.templates.contains_key(&id) {
        return Err(missing(options, &id));
    }
    let mut template = told(options, &id);
    template["builds"] = json!([]);
    Ok(Json(template))
}

pub(super) async fn alias(State(shared): Handle, Path(alias): Path<String>) -> Result<Json<Value>, Refusal> {
    if !shared.options.templates.contains_key(&alias) {
        return Err(missing(&shared.options, &alias));
    }
    Ok(Json(json!({"templateID": alias, "public": true})))
}
