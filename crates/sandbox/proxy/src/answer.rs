//! Bodies of requests and answers.

use std::{
    any::Any,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio_util::task::AbortOnDropHandle;

/// Why a body ended before its end.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, whoever it comes from.
pub type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// What is kept for as long as a request, its answer and what it was upgraded to live.
pub type Held = Box<dyn Any + Send>;

/// Makes the body of a request of any other body.
pub fn request_body<B>(body: B) -> RequestBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// The body of an answer. Dropping it ends the connection to the service.
pub struct Answer(Source);

enum Source {
    Made(Option<Bytes>),
    Passed { body: Incoming, _connection: AbortOnDropHandle<()>, _held: Held },
}

impl Answer {
    /// A body that is there.
    pub fn made(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self(Source::Made((!bytes.is_empty()).then_some(bytes)))
    }

    /// What the service sends, over a connection that lives as long.
    pub(crate) fn passed(body: Incoming, connection: AbortOnDropHandle<()>, held: Held) -> Self {
        Self(Source::Passed { body, _connection: connection, _held: held })
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Made(bytes) => formatter.debug_tuple("Made").field(bytes).finish(),
            Source::Passed { body, .. } => formatter.debug_tuple("Passed").field(body).finish(),
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Source::Made(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Passed { body, .. } => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Made(bytes) => bytes.is_none(),
            Source::Passed { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Made(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Passed { body, .. } => body.size_hint(),
        }
    }
}
