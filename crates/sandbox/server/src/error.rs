//! Why a server ends by itself.

use std::io;

/// Why a server can not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The listener is not one, or not any more. Errors that pass, such as too many open files, are waited for instead.
    #[error("cannot accept connections: {0}; the listening socket is unusable, so the server has to be started again")]
    Listener(io::Error),
}
