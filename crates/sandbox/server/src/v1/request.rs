//! What handlers take out of a request.

use axum::{
    body::Body,
    extract::{Path, rejection::PathRejection},
};
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::{app::App, body};

/// The id in a path.
/// The id in a path.
pub(super) type Id = Result<Path<String>, PathRejection>;

/// The JSON of a request.
pub(super) async fn parse<T: DeserializeOwned + Send + 'static>(app: &App, body: Body) -> Result<T, ApiError> {
    let limits = &app.options.limits;
    Ok(body::json_within(limits.command.min(limits.json_body), body, limits).await?)
}
