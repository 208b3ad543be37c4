//! What the runtime can do for clients of the gateway.

use axum::{Extension, Json, extract::State};
use gloveport_provider::Capabilities;
use serde::Serialize;

use super::context::{Handle, Who};
use crate::fault::Fault;

/// What the runtime can do, and who says so.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    /// The version of the native API.
    api: &'static str,
    gateway_version: &'static str,
    /// The name of the runtime.
    runtime: String,
    /// The tenant of the key.
    tenant: String,
    capabilities: Capabilities,
}

/// What of it is of use behind a gateway: directories and volumes of its machine are not, and whom sandboxes are held by and
/// those that wait are its own affair.
pub(super) async fn tell(State(shared): Handle, Extension(who): Who) -> Result<Json<Told>, Fault> {
    let capabilities =
        Capabilities { host_directories: false, volumes: false, orphans: false, warm: false, ..shared.can.clone() };
    Ok(Json(Told {
        api: "v1",
        gateway_version: env!("CARGO_PKG_VERSION"),
        runtime: shared.provider.name().to_owned(),
        tenant: who.name().to_owned(),
        capabilities,
    }))
}
