//! What requests of the control plane need.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Extension, State},
};
use gloveport_provider::{Provider, Sandbox, SandboxId};
use serde::Deserialize;

use crate::{Refusal, shared::Shared};

pub(super) type Handle = State<Arc<Shared>>;
pub(super) type Who = Extension<Owner>;

/// The sandboxes of who asks.
#[derive(Clone, Debug)]
pub(super) struct Owner(pub(super) Arc<dyn Provider>);

impl Owner {
    /// A sandbox that has not ended.
    pub(super) async fn find(&self, id: &str) -> Result<Sandbox, Refusal> {
        let found = match SandboxId::new(id) {
            Ok(id) => self.0.find(&id).await?,
            Err(_) => None,
        };
        found.filter(|sandbox| sandbox.state.is_live()).ok_or_else(|| Refusal::no_sandbox(id))
    }
}

/// Reads a body that is a JSON object; nothing is one without members.
pub(super) fn json<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Refusal> {
    let body: &[u8] = if body.trim_ascii().is_empty() { b"{}" } else { body };
    // An array would be taken for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Refusal::wrong("the body of the request must be a JSON object"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Refusal::wrong(format!("the body of the request is not as it must be: {error}")))
}
