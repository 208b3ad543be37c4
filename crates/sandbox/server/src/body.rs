//! Bodies of requests, within a size and a time, and what is written in them.

use std::{future::poll_fn, pin::pin, time::Duration};

use axum::{body::Body, body::HttpBody as _, response::Response};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header::CONNECTION};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::{answer, options::ServerLimits};

/// Bytes that give a client one more second.
const BYTES_PER_SECOND: u64 = 64 * 1024;
/// Most memory that is taken in advance for a body of a known length.
const RESERVE: u64 = 1024 * 1024;

/// Most JSON values of a body. Each takes some hundred bytes of memory once it is read, however short it is written, so
/// the size of a body alone bounds nothing. An action has some dozens.
const VALUES: usize = 100_000;
/// Size of a body that is read by a thread that may take its time.
const LARGE: usize = 512 * 1024;

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("The request body is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("The request body has more than {VALUES} JSON values; put large data into files")]
    TooManyValues,
    #[error("The request body did not arrive in time ({received} bytes of it did)")]
    TooSlow { received: u64 },
    #[error("The request body stood still for {} seconds ({received} bytes of it arrived)", limit.as_secs())]
    Stalled { limit: Duration, received: u64 },
    #[error("The request body broke off: {0}")]
    Broken(axum::Error),
}

impl BodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } | Self::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow { .. } | Self::Stalled { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The answer in the form of the group `v0`.
    pub(crate) fn answer(&self) -> Response {
        closing(answer::detail(self.status(), self.to_string()))
    }
}

/// Why a body is not what it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("the work did not end: {0}")]
    Defect(#[from] tokio::task::JoinError),
}

/// Reads a whole body of JSON.
pub(crate) async fn json<T: DeserializeOwned + Send + 'static>(
    body: Body,
    limits: &ServerLimits,
) -> Result<T, JsonError> {
    json_within(limits.json_body, body, limits).await
}

/// Reads a whole body of JSON of at most `most` bytes.
pub(crate) async fn json_within<T: DeserializeOwned + Send + 'static>(
    most: usize,
    body: Body,
    limits: &ServerLimits,
) -> Result<T, JsonError> {
    let bytes = read(most, body, limits).await?;
    if bytes.len() < LARGE {
        return understand(&bytes);
    }
    tokio::task::spawn_blocking(move || understand(&bytes)).await?
}

/// Reads a whole body of at most `most` bytes that is JSON for somebody else.
pub(crate) async fn text_of_json(most: usize, body: Body, limits: &ServerLimits) -> Result<Bytes, BodyError> {
    let bytes = read(most, body, limits).await?;
    check_values(&bytes)?;
    Ok(bytes)
}

/// Reads a whole body of at most `most` bytes of whatever kind.
pub(crate) async fn bytes_within(most: usize, body: Body, limits: &ServerLimits) -> Result<Bytes, BodyError> {
    read(most, body, limits).await
}

fn understand<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    check_values(bytes)?;
    Ok(serde_json::from_slice(bytes)?)
}

fn check_values(bytes: &[u8]) -> Result<(), BodyError> {
    // Each value but the first has a sign of its own before it.
    if bytes.len() > VALUES && signs(bytes) >= VALUES { Err(BodyError::TooManyValues) } else { Ok(()) }
}

/// How many commas, colons and brackets that open there are outside texts, in what may or may not be JSON.
fn signs(bytes: &[u8]) -> usize {
    let mut signs = 0;
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b',' | b':' | b'[' | b'{' => signs += 1,
            b'"' => loop {
                match rest.next() {
                    Some(b'\\') => drop(rest.next()),
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    signs
}

/// Marks the connection as one that can not be used again, since a part of the request is still on its way.
pub(crate) fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads a whole body. Nothing beyond the limit is kept, and nothing is read if the client announces too much.
async fn read(most: usize, body: Body, limits: &ServerLimits) -> Result<Bytes, BodyError> {
    let limit = most as u64;
    let announced = body.size_hint();
    if announced.lower() > limit {
        return Err(BodyError::TooLarge { limit });
    }
    let began = Instant::now();
    let mut body = pin!(body);
    let mut whole = BytesMut::new();
    let mut first = Bytes::new();
    loop {
        let received = (first.len() + whole.len()) as u64;
        let deadline = began + limits.body_timeout + Duration::from_secs(received / BYTES_PER_SECOND);
        // Data that is there already needs no timer.
        let frame = poll_fn(|context| body.as_mut().poll_frame(context));
        let data = match timeout_at(deadline, frame).await {
            Err(_) => return Err(BodyError::TooSlow { received }),
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(BodyError::Broken(error)),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        if (first.len() + whole.len() + data.len()) as u64 > limit {
            return Err(BodyError::TooLarge { limit });
        }
        if first.is_empty() && whole.is_empty() {
            // A body in one piece, which is the rule, is not copied.
            first = data;
        } else {
            if whole.is_empty() {
                let reserve = announced.exact().unwrap_or(0).min(RESERVE);
                whole.reserve(usize::try_from(reserve).unwrap_or(0));
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn signs_in_texts_are_not_counted() {
        for (text, expected) in [
            ("", 0),
            ("1", 0),
            ("[]", 1),
            (r#"{"a": [1, 2, {"b,:[{": "\\"}], "c": "\",[{:\\"}"#, 9),
            (r#"["broken, text"#, 1),
            (r#"["broken \"#, 1),
        ] {
            assert_eq!(signs(text.as_bytes()), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn a_body_of_many_values_is_refused_however_it_is_written_and_a_long_text_is_not() {
        let limits = ServerLimits::default();
        for text in [
            format!("[{}0]", "0,".repeat(VALUES)),
            format!("{{{}\"z\":0}}", "\"a\":0,".repeat(VALUES)),
            "[".repeat(VALUES * 2),
            format!("[{}[]]", "[],".repeat(VALUES)),
        ] {
            let read = json::<Value>(text.into(), &limits).await;
            assert!(matches!(read, Err(JsonError::Body(BodyError::TooManyValues))), "{read:?}");
        }
        let text = "[{,:".repeat(VALUES);
        let read = json::<Value>(serde_json::to_vec(&text).unwrap().into(), &limits).await;
        assert_eq!(read.unwrap(), Value::String(text));
        let fewer = format!("[{}0]", "0,".repeat(VALUES - 2));
        assert_eq!(json::<Value>(fewer.into(), &limits).await.unwrap().as_array().unwrap().len(), VALUES - 1);
    }
}
