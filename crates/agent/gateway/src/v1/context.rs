//! What every request of the native API begins with: what all share, who asks, and which sandbox is meant.

use std::sync::Arc;

use axum::{Extension, extract::State};
use gloveport_provider::Sandbox;
use http::StatusCode;

use crate::{fault::Fault, identity::Identity, shared::Shared};

/// What all requests share.
pub(super) type Handle = State<Arc<Shared>>;
/// Who asks.
pub(super) type Who = Extension<Identity>;

/// The sandbox of an id, if it is the tenant's.
pub(super) async fn own(shared: &Shared, who: &Identity, id: &str) -> Result<Sandbox, Fault> {
    let is_missing = |fault: &Fault| fault.status() == StatusCode::NOT_FOUND;
    let missing = |fault| if is_missing(&fault) { Fault::missing("sandbox") } else { fault };
    shared.own(who, id).await.map_err(missing)
}
