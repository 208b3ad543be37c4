//! What requests for the agent need.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::{entries, paths, user};
use crate::{
    Refusal,
    connect::ConnectError,
    place::{Place, no_answer},
    shared::Shared,
};

/// What calls need.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Arc<Place>,
}

/// Nobody has shown the token.
pub(super) fn unknown() -> Refusal {
    let message = "unauthorized access: the header X-Access-Token is missing or wrong; it is `envdAccessToken` of the answer to \
        the creation of the sandbox";
    Refusal::new(StatusCode::UNAUTHORIZED, message)
}

impl Agent {
    /// Whether the server of the sandbox answers.
    pub(super) async fn health(&self) -> Result<Response, Refusal> {
        let id = &self.place.sandbox.id;
        if self.place.client.probe().await.is_ok() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        self.shared.places.forget(id);
        Err(no_answer(id))
    }

    /// A path of a call by the user of the sandbox.
    pub(super) async fn path(&self, headers: &HeaderMap, path: &str) -> Result<String, ConnectError> {
        let facts = self.place.facts().await?;
        user::only_own(user::named(headers, facts)?.as_deref(), facts)?;
        paths::absolute(path, facts)
    }

    /// What is at a path.
    pub(super) async fn entry(&self, path: &str) -> Result<Value, ConnectError> {
        let found = self.place.client.files().stat(path, false).await?;
        Ok(entries::entry(&found.path, &found))
    }

    /// A path of a request by this user.
    pub(super) async fn file(&self, path: &str, user: &str) -> Result<String, ConnectError> {
        let facts = self.place.facts().await?;
        user::only_own(user::other(user, facts)?.as_deref(), facts)?;
        paths::absolute(path, facts)
    }
}
