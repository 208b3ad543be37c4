//! What can go wrong with an edit by a model. No text holds a key.

/// Why an edit gave no observation.
#[derive(Debug, thiserror::Error)]
pub enum LlmEditError {
    /// The file cannot be read (runtime-interface 15).
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The model gave no answer.
    #[error("the draft editor gave no answer: {0}")]
    Llm(#[from] LlmError),
    /// The process is about to end.
    #[error("the search for similar lines was interrupted")]
    Interrupted,
}

/// Why a model gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    /// No HTTP client can be made.
    #[error(transparent)]
    Http(#[from] gloveport_client::ClientError),
    /// A header cannot be sent.
    #[error("the header `{0}` has a name or a value that cannot be sent")]
    Header(String),
    /// The URL of the endpoint cannot be used.
    #[error("the URL of the endpoint has to begin with http:// or https:// and a host")]
    Url,
    /// The endpoint refuses the key.
    #[error("the endpoint refuses the key (status {0}): check `api_key` of [llm.draft_editor]")]
    Refused(u16),
    /// The endpoint answered something else than success.
    #[error("the endpoint answered with status {status}{}", .message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// The status.
        status: u16,
        /// What it says about it.
        message: Option<String>,
    },
    /// No answer came in time.
    #[error("the endpoint did not answer within {0} s")]
    Silent(u64),
    /// The endpoint cannot be reached, or the connection broke.
    #[error("the endpoint cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is not what it must be.
    #[error("the answer of the endpoint cannot be understood: {0}")]
    Answer(String),
    /// It failed as often as allowed.
    #[error("gave up after {attempts} attempts: {last}")]
    Exhausted {
        /// How many requests were sent.
        attempts: u32,
        /// How the last one failed.
        last: Box<LlmError>,
    },
}

impl LlmError {
    /// Whether the same request may succeed a little later.
    pub(super) const fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::Silent(_) | Self::Unreachable(_) => true,
            _ => false,
        }
    }

    /// Whether the endpoint understood the request and does not want it in this form.
    pub(super) const fn is_bad_request(&self) -> bool {
        matches!(self, Self::Status { status: 400 | 404 | 422, .. })
    }
}
