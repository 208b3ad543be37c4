//! Answers in the frames of gRPC.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, header::CONTENT_TYPE},
    response::Response,
};
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::proto::{Message, framed};

const KIND: HeaderValue = HeaderValue::from_static("application/grpc");

/// A refusal, by the number of its kind.
pub(super) fn refused(code: u16, message: &str) -> Response {
    let mut answer = Response::new(Body::empty());
    let escaped: String = message
        .bytes()
        .map(|byte| {
            if (b' '..=b'~').contains(&byte) && byte != b'%' {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, KIND);
    headers.insert("grpc-status", code.to_string().parse().unwrap());
    headers.insert("grpc-message", escaped.parse().unwrap());
    answer
}

/// One message, and success.
pub(super) fn told(message: &Message) -> Response {
    streamed(stream::iter([message.clone()]))
}

/// Success without a word.
pub(super) fn done() -> Response {
    told(&Message::default())
}

/// Messages as they come, and then success.
pub(super) fn streamed(messages: impl Stream<Item = Message> + Send + 'static) -> Response {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let data = messages.map(|message| Ok::<_, Infallible>(Frame::<Bytes>::data(framed(&message))));
    let frames = data.chain(stream::once(async move { Ok(Frame::trailers(trailers)) }));
    let mut answer = Response::new(Body::new(StreamBody::new(frames)));
    answer.headers_mut().insert(CONTENT_TYPE, KIND);
    answer
}
