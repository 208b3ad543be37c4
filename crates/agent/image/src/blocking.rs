//! Work with files, on a thread for such work.

use std::io;

use crate::error::ImageError;

/// Does the work elsewhere and waits for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, ImageError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            Err(ImageError::folder("work on the build folder in", std::env::temp_dir())(io::Error::other(error)))
        }
    }
}
