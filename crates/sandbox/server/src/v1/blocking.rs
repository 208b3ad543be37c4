//! File work on a thread for that.

use super::error::ApiError;

/// Runs file work on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(ApiError::Defect)?
}
