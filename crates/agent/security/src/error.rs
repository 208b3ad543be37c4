//! Why an analyzer has no answer.

use std::{error::Error, fmt, time::Duration};

/// Why an analyzer could not be made, or could not rate an action.
///
/// None of these carries a text of the conversation or a secret, so that they can be logged.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzerError {
    /// No analyzer has this name.
    #[error("there is no security analyzer `{name}`; choose one of invariant, llm, grayswan, rules")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The work was cut off.
    #[error("the security analyzer `{analyzer}` was cut off before it had an answer")]
    Interrupted {
        /// The analyzer.
        analyzer: &'static str,
    },
    /// A variable that the analyzer needs is not set (security 3.3).
    #[error("{name} environment variable is required")]
    MissingVariable {
        /// The variable.
        name: &'static str,
    },
    /// The value of a variable cannot be sent in a header.
    #[error("the value of {name} has characters that cannot be sent")]
    InvalidVariable {
        /// The variable.
        name: &'static str,
    },
    /// There is nothing of the conversation to rate.
    #[error("the conversation has no message that could be rated")]
    NoMessages,
    /// No HTTP client can be made.
    #[error("cannot create an HTTP client: {}", causes(.0))]
    NoHttp(#[source] reqwest::Error),
    /// There was no whole answer.
    #[error("no answer from {endpoint}: {}", causes(.source))]
    Unreachable {
        /// Where the request was to go.
        endpoint: String,
        /// Why not, without the URL.
        source: reqwest::Error,
    },
    /// The answer took too long.
    #[error("no answer from {endpoint} within {} s", .limit.as_secs())]
    Silent {
        /// Where the request went.
        endpoint: String,
        /// How long it may take.
        limit: Duration,
    },
    /// The answer has a status that is no success.
    #[error("{endpoint} answered with status {status}")]
    Status {
        /// Where the request went.
        endpoint: String,
        /// The status.
        status: u16,
    },
    /// The answer is not what it must be.
    #[error("{endpoint} gave an answer that cannot be used: {reason}")]
    Answer {
        /// Where the request went.
        endpoint: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No session could be made before the retries were used up (security 3.2).
    #[error("Failed to create session: Connection timed out ({attempts} attempts; the last: {last})")]
    SessionTimedOut {
        /// How often it was tried.
        attempts: u32,
        /// How the last attempt failed.
        last: Box<AnalyzerError>,
    },
    /// No session could be made (security 3.2).
    #[error("Failed to create session: {0}")]
    Session(Box<AnalyzerError>),
    /// The `docker` command cannot be run.
    #[error("cannot run `{program}`: {source}; install Docker, or give the URL of a running server")]
    NoDocker {
        /// The program.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A `docker` command failed.
    #[error("`docker {command}` failed: {reason}; check that Docker is running, or give the URL of a running server")]
    Docker {
        /// The command.
        command: &'static str,
        /// What it said, or that it took too long.
        reason: String,
    },
    /// The container did not come up.
    #[error("the container {name} is not running after {seconds} s")]
    ContainerNotRunning {
        /// The container.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
}

impl AnalyzerError {
    pub(crate) fn answer(endpoint: &str, reason: &'static str) -> Self {
        Self::Answer { endpoint: endpoint.to_owned(), reason }
    }

    /// Whether the same request may succeed a moment later: there was no answer at all.
    pub(crate) const fn is_network(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Silent { .. })
    }
}

/// An error with what led to it, since the outermost text alone says little.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a text does not fail.
        let _written = fmt::Write::write_fmt(&mut text, format_args!(": {error}"));
        cause = error.source();
    }
    text
}
