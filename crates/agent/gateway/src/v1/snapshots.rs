//! What is kept of sandboxes.

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State},
};
use gloveport_provider::Snapshot;
use http::StatusCode;
use serde::Serialize;

use super::{
    context::{Handle, Who},
    query::Query,
    view::time,
};
use crate::fault::Fault;

/// All that a tenant keeps.
#[derive(Debug, Serialize)]
pub(super) struct Snapshots {
    snapshots: Vec<View>,
}

/// A snapshot as it is told.
#[derive(Debug, Serialize)]
struct View {
    /// For `image` of another sandbox.
    image: String,
    name: String,
    session_id: Option<String>,
    created_at: Option<String>,
}

impl From<Snapshot> for View {
    fn from(Snapshot { image, name, session, created }: Snapshot) -> Self {
        Self { image, name, session_id: session, created_at: created.and_then(time) }
    }
}

pub(super) async fn list(
    State(shared): Handle,
    Extension(who): Who,
    RawQuery(query): RawQuery,
) -> Result<Json<Snapshots>, Fault> {
    Query::read(query.as_deref(), &[])?;
    let listed = shared.snapshots(&who).await?;
    Ok(Json(Snapshots { snapshots: listed.into_iter().map(View::from).collect() }))
}

pub(super) async fn delete(
    State(shared): Handle,
    Extension(who): Who,
    Path(image): Path<String>,
) -> Result<StatusCode, Fault> {
    let deleted = shared.delete_snapshot(&who, &image).await;
    let deleted = deleted.and_then(|deleted| if deleted { Ok(()) } else { Err(Fault::missing("snapshot")) });
    shared.audit(&who, "snapshot delete", &image, &deleted);
    deleted.map(|()| StatusCode::NO_CONTENT)
}
