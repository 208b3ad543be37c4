//! Answers of HTTP servers, read within bounds.

use reqwest::Response;

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

/// The body of an answer, if it is not larger than the limit.
pub(crate) async fn body(mut response: Response, limit: usize) -> Result<Vec<u8>, AnswerError> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| AnswerError::Broken(causes(error)))? {
        if bytes.len() + piece.len() > limit {
            return Err(AnswerError::TooLarge(limit));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// An error of the HTTP library with its causes in one line, without the URL.
pub(crate) fn causes(error: reqwest::Error) -> String {
    gloveport_client::causes(&error.without_url())
}
