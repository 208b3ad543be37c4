//! What can go wrong with services that host repositories. No text holds a token.

use super::ProviderType;

/// Why there is no URL to clone from.
#[derive(Debug, thiserror::Error)]
pub enum GitProviderError {
    /// No configured service has the repository, or none is configured (runtime-interface 11.2).
    #[error("Unable to access repo {repository}")]
    Inaccessible {
        /// Its name.
        repository: String,
        /// What each service answered, in the order they were asked.
        failures: Vec<(ProviderType, ProviderFailure)>,
    },
    /// The name cannot be one.
    #[error("`{name}` is not a valid name for a repository: {reason}")]
    Name {
        /// The name, made printable.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The repository was found, but not where it can be cloned from.
    #[error("{provider}: {failure}")]
    Provider {
        /// The service.
        provider: ProviderType,
        /// What is wrong.
        failure: ProviderFailure,
    },
    /// No HTTP client can be made.
    #[error(transparent)]
    Http(#[from] gloveport_client::ClientError),
}

/// Why one service has no repository for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFailure {
    /// It knows no repositories.
    #[error("it hosts no repositories")]
    NoRepositories,
    /// The token names a host that nothing may be sent to.
    #[error("the host `{0}` is not a domain such as git.example.com")]
    Host(String),
    /// The name does not have the parts that names have there.
    #[error("a repository is named {0} there")]
    Form(&'static str),
    /// The token cannot be sent.
    #[error("the token has characters that cannot be sent")]
    Token,
    /// It refuses access, with the token or without one.
    #[error("it refuses access (status {0})")]
    Refused(u16),
    /// It has no such repository, or does not show it.
    #[error("it has no such repository, or does not show it")]
    NotFound,
    /// It was asked too often.
    #[error("it was asked too often (status 429)")]
    RateLimit,
    /// It sent us elsewhere. The token stays here.
    #[error(
        "it redirects to another address (status {0}), which is not followed: the repository may have been renamed"
    )]
    Redirect(u16),
    /// It answered something else.
    #[error("it answered with status {0}")]
    Status(u16),
    /// It did not answer in time.
    #[error("it did not answer within {0} s")]
    Silent(u64),
    /// It cannot be reached, or the connection broke.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is not what it must be.
    #[error("its answer cannot be understood: {0}")]
    Answer(String),
}
