//! When something last went through a connection.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, sleep},
};

/// What the two ends of a connection have moved last.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    since: Instant,
    /// Milliseconds after `since`.
    last: Arc<AtomicU64>,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), last: Arc::new(AtomicU64::new(0)) }
    }

    fn touch(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Returns when nothing has moved for this long.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let last = self.since + Duration::from_millis(self.last.load(Ordering::Relaxed));
            match limit.checked_sub(last.elapsed()) {
                Some(rest) if !rest.is_zero() => sleep(rest).await,
                _ => return,
            }
        }
    }
}

/// A socket whose bytes are activity.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    activity: Activity,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, activity: &Activity) -> Self {
        Self { stream, activity: activity.clone() }
    }

    fn seen<T>(&self, moved: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.activity.touch();
        }
        moved
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.seen(read)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.seen(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.seen(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
