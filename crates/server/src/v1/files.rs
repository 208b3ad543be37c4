//! The native file API.

mod content;
mod entries;
mod path;
mod watch;

use super::error::ApiError;
use crate::router::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/files/stat", entries::stat),
        Route::get("/v1/files/list", entries::list),
        Route::get("/v1/files/content", content::get),
        Route::post("/v1/files/glob", entries::glob),
        Route::post("/v1/files/grep", entries::grep),
        Route::post("/v1/files/move", entries::move_to),
        Route::post("/v1/files/remove", entries::remove),
        Route::post("/v1/files/mkdir", entries::mkdir),
        Route::get("/v1/files/watch", watch::watch),
    ]
}

/// Runs file work on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a file operation failed by a defect of the server");
        Err(ApiError::Defect)
    })
}
