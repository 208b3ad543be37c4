//! The Connect protocol with messages in JSON: unary calls, streams, errors (`hosted-apis` 2.3).

mod envelope;
mod error;
mod stream;

use std::time::Duration;

use axum::{
    Json,
    body::to_bytes,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderName, Method, StatusCode, header::CONTENT_ENCODING, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

pub(crate) use envelope::Envelopes;
pub(crate) use error::{Code, ConnectError};
use error::{MESSAGE, too_large};
use stream::STREAM;
pub(crate) use stream::{Events, KeepAlive, answer_one, stream};

use crate::headers::text;

/// Time for the message of a unary call to come.
const TIME: Duration = Duration::from_mins(1);
const UNARY: &str = "application/json";
const VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const LIMIT: HeaderName = HeaderName::from_static("connect-timeout-ms");

/// How a call sends its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unary,
    Stream,
}

/// Checks that a request is a call of this kind, in the one form that is understood here.
#[expect(clippy::result_large_err, reason = "it is the answer, and is given at once")]
pub(crate) fn check(request: &Request, kind: Kind) -> Result<(), Response> {
    let refuse = |status: StatusCode, message: String| {
        Err((status, Json(serde_json::json!({"code": "unimplemented", "message": message}))).into_response())
    };
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "calls are made with POST".to_owned());
    }
    let expected = match kind {
        Kind::Unary => UNARY,
        Kind::Stream => STREAM,
    };
    let headers = request.headers();
    let found = text(headers, &CONTENT_TYPE).unwrap_or_default();
    if found.split(';').next().map(str::trim) != Some(expected) {
        let message =
            format!("this call takes {expected}, and got `{found}`; messages are JSON here, and not protobuf");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    if text(headers, &VERSION).is_some_and(|version| version != "1") {
        return refuse(StatusCode::BAD_REQUEST, "connect-protocol-version must be 1".to_owned());
    }
    let encoding = HeaderName::from_static("connect-content-encoding");
    let name = if kind == Kind::Unary { CONTENT_ENCODING } else { encoding };
    if text(headers, &name).is_some_and(|encoding| encoding != "identity") {
        return refuse(StatusCode::NOT_IMPLEMENTED, "messages must not be compressed".to_owned());
    }
    Ok(())
}

/// The time limit that a call has.
pub(crate) fn limit(headers: &HeaderMap) -> Result<Option<Duration>, ConnectError> {
    let Some(text) = text(headers, &LIMIT) else { return Ok(None) };
    let is_number = (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let millis = text.parse().ok().filter(|_| is_number);
    let millis = millis.ok_or_else(|| ConnectError::wrong("connect-timeout-ms must have 1 to 10 digits"))?;
    Ok(Some(Duration::from_millis(millis)))
}

/// The message of a unary call.
pub(crate) async fn message<T: DeserializeOwned>(request: Request) -> Result<T, ConnectError> {
    let read = timeout(TIME, to_bytes(request.into_body(), MESSAGE)).await;
    let bytes = read
        .map_err(|_| ConnectError::new(Code::DeadlineExceeded, "the message did not come in time"))?
        .map_err(|_| too_large())?;
    parse(&bytes)
}

/// The only message of a call that is answered with a stream. The request is read to its end: one that is not closes the
/// connection when it is answered, and the client may lose what it has not read of the answer.
pub(crate) async fn only_message<T: DeserializeOwned>(request: Request) -> Result<T, ConnectError> {
    let mut envelopes = Envelopes::new(request.into_body());
    let read = timeout(TIME, async {
        let message = envelopes.next().await?.ok_or_else(|| ConnectError::wrong("the request has no message"))?;
        match envelopes.next().await? {
            None => Ok(message),
            Some(_) => Err(ConnectError::wrong("the request has more than one message, and this call takes one")),
        }
    });
    let message = read.await.map_err(|_| {
        ConnectError::new(
            Code::DeadlineExceeded,
            "the request did not come in time: its message, and the end behind it",
        )
    })??;
    parse(&message)
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ConnectError> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    // An array would be taken for the members in their order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(ConnectError::wrong("the message must be a JSON object"));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| ConnectError::wrong(format!("the message is not as it must be: {error}")))
}

/// The answer to a unary call.
pub(crate) fn unary(outcome: Result<Value, ConnectError>) -> Response {
    match outcome {
        Ok(message) => Json(message).into_response(),
        Err(error) => error.into_response(),
    }
}
