//! Bodies of requests, within a size and a time.

use std::{future::poll_fn, pin::pin, time::Duration};

use axum::{body::Body, body::HttpBody as _, response::Response};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header::CONNECTION};
use tokio::time::{Instant, timeout_at};

use crate::{answer, options::Limits};

/// Bytes that give a client one more second.
const BYTES_PER_SECOND: u64 = 64 * 1024;
/// Most memory that is taken in advance for a body of a known length.
const RESERVE: u64 = 1024 * 1024;

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("The request body is larger than {limit} bytes")]
    TooLarge { limit: u64 },
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
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow { .. } | Self::Stalled { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The answer in the form of the group `v0`.
    pub(crate) fn answer(&self) -> Response {
        closing(answer::detail(self.status(), self.to_string()))
    }
}

/// Marks the connection as one that can not be used again, since a part of the request is still on its way.
pub(crate) fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads a whole body. Nothing beyond the limit is kept, and nothing is read if the client announces too much.
pub(crate) async fn read(body: Body, limits: &Limits) -> Result<Bytes, BodyError> {
    let limit = limits.json_body as u64;
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
