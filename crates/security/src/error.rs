//! Why an analyzer has no answer.

/// Why an analyzer could not be made, or could not rate an action.
///
/// None of these carries a text of the conversation, so that they can be logged.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzerError {
    /// No analyzer has this name.
    #[error("there is no security analyzer `{name}`; known are: invariant, llm, grayswan, rules")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The analyzer has no such operation.
    #[error("the security analyzer `{analyzer}` cannot answer {method} requests to `{path}`")]
    NoSuchRequest {
        /// The analyzer.
        analyzer: &'static str,
        /// The method of the request.
        method: String,
        /// Its path.
        path: String,
    },
    /// The work was cut off.
    #[error("the security analyzer `{analyzer}` was cut off before it had an answer")]
    Interrupted {
        /// The analyzer.
        analyzer: &'static str,
    },
}
