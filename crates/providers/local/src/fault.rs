//! Errors of files, threads and the server, as the trait tells them.

use std::{io, path::Path};

use gloveport_provider::ProviderError;

/// Name of the provider, and how the engine is called in errors.
pub(crate) const NAME: &str = "local";

/// An error of a file.
pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ProviderError {
    let path = path.to_owned();
    move |source| ProviderError::File { action, path, source }
}

/// Something that this machine could not do.
pub(crate) fn engine(action: impl Into<String>, reason: impl std::fmt::Display) -> ProviderError {
    ProviderError::Engine { engine: "this machine".to_owned(), action: action.into(), reason: reason.to_string() }
}

/// Runs what waits for the file system where it holds up nothing else.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
) -> Result<T, ProviderError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(engine("finish a piece of work on files", error)),
    }
}
