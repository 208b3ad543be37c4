//! Whether a request moves, and who is waited for if it does not.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::{
    answer::{BodyError, RequestBody},
    error::ForwardError,
};

/// When something moved last.
#[derive(Debug)]
pub(crate) struct Movement {
    base: Instant,
    /// Microseconds after `base`.
    last: AtomicU64,
}

impl Movement {
    /// Something moves right now.
    pub(crate) fn new() -> Self {
        Self { base: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Something moves.
    pub(crate) fn touch(&self) {
        self.last.store(u64::try_from(self.base.elapsed().as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Waits until nothing has moved for this long.
    pub(crate) async fn stalled(&self, limit: Duration) {
        loop {
            let end = self.base + Duration::from_micros(self.last.load(Relaxed)) + limit;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

/// When a part of a request travelled last, and whether the client owes the next one.
#[derive(Debug)]
pub(crate) struct Progress {
    movement: Movement,
    client_owes: AtomicBool,
}

impl Progress {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { movement: Movement::new(), client_owes: AtomicBool::new(false) })
    }

    /// Waits until nothing has travelled for this long, and says whose fault it is.
    pub(crate) async fn stalled(&self, limit: Duration) -> ForwardError {
        self.movement.stalled(limit).await;
        let error =
            if self.client_owes.load(Relaxed) { ForwardError::RequestTimeout } else { ForwardError::AnswerTimeout };
        error(limit)
    }
}

/// The body of a request that notes its progress.
#[derive(Debug)]
pub(crate) struct Watched {
    body: RequestBody,
    progress: Arc<Progress>,
}

impl Watched {
    pub(crate) fn new(body: RequestBody, progress: Arc<Progress>) -> Self {
        Self { body, progress }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.progress.client_owes.store(polled.is_pending(), Relaxed);
        if polled.is_ready() {
            self.progress.movement.touch();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
