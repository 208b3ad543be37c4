//! An answer of which the gateway learns whether somebody was there to get it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use http::{HeaderValue, header::CONTENT_TYPE};
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// JSON, whose last byte is sent only when the rest was, to a client that was still there; then the other end is told. It ends
/// without a word when the client has gone before.
pub(crate) fn told(json: Vec<u8>) -> (Response, oneshot::Receiver<()>) {
    let (tell, delivered) = oneshot::channel();
    let mut first = Bytes::from(json);
    let last = first.split_off(first.len().saturating_sub(1));
    let mut response = Response::new(Body::new(Delivery { first, last, has_waited: false, tell: Some(tell) }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (response, delivered)
}

struct Delivery {
    first: Bytes,
    last: Bytes,
    has_waited: bool,
    tell: Option<oneshot::Sender<()>>,
}

impl HttpBody for Delivery {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        if !self.has_waited {
            // The connection writes what it has, and looks whether the client is there, before it asks again.
            self.has_waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(tell) = self.tell.take() else { return Poll::Ready(None) };
        let last = std::mem::take(&mut self.last);
        // Whoever waited for this may have given up on the client.
        let is_late = tell.send(()).is_err();
        let answer = if is_late { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Frame::data(last)) };
        Poll::Ready(Some(answer))
    }

    fn is_end_stream(&self) -> bool {
        self.tell.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.first.len() + self.last.len();
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn who_reads_all_of_an_answer_has_been_told_and_who_does_not_has_not() {
        let (response, delivered) = told(b"{\"a\":1}".to_vec());
        assert_eq!(to_bytes(response.into_body(), 100).await.unwrap(), "{\"a\":1}");
        delivered.await.unwrap();

        let (response, delivered) = told(b"{\"a\":1}".to_vec());
        drop(response);
        delivered.await.unwrap_err();

        // An answer that nobody waits for any more is never whole.
        let (response, delivered) = told(b"{\"a\":1}".to_vec());
        drop(delivered);
        to_bytes(response.into_body(), 100).await.unwrap_err();
    }
}
