//! Why nothing can be done at the edge.

/// Why nothing can be done at the edge.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// A secret cannot be put in.
    #[error("the secret `{name}` cannot be put in at the edge: {reason}")]
    Secret {
        /// Its name.
        name: String,
        /// What is wrong with it, without its value.
        reason: String,
    },
    /// The authority cannot sign.
    #[error("the certificate authority of the sandbox cannot be used: {0}; make a new one")]
    Authority(String),
    /// Certificates of targets cannot be checked.
    #[error("the certificates of servers to trust cannot be used: {0}")]
    Roots(String),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}
