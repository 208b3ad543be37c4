//! A socket that keeps the time limits of its connection.
//!
//! | phase | limit | at the limit |
//! |---|---|---|
//! | upgraded to another protocol | that protocol's own, and `write_timeout` | |
//! | idle | `idle_timeout` | closed, as at the client's own end |
//! | head of a request | `header_timeout` | answered with status 408 and closed |
//! | an answer that the client does not take | `write_timeout` | closed |
//! | closing with a part of a request unread | see below | closed |
//!
//! The kernel throws an answer away that the client has not read yet when the socket is closed while there is unread
//! input. So the end of a connection shuts only our direction down, and reads on for a short while.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use gloveport_proxy::Stall;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::sync::DropGuard;

use super::{
    activity::{Activity, Phase},
    strangers::Stranger,
};
use crate::options::ServerLimits;

/// Answer to a head that took too long.
const SLOW_HEAD: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: 67\r\n\
    x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{\"detail\":\"The head of the request did not arrive in time; resend\"}";
/// Time without input after which a client that is being left is left.
const LINGER_PAUSE: Duration = Duration::from_secs(2);
/// Time after which it is left in any case.
const LINGER_LIMIT: Duration = Duration::from_secs(30);

/// The socket of one connection.
#[derive(Debug)]
pub(super) struct WatchedStream {
    stream: TcpStream,
    activity: Arc<Activity>,
    limits: Arc<ServerLimits>,
    stranger: Option<Arc<Stranger>>,
    timer: Timer,
    stall: Stall,
    /// Our direction is shut down; holds the end of the patience.
    linger: Option<Instant>,
    /// Tells the end of the stream, whoever holds it then.
    _open: DropGuard,
}

/// A timer that is moved only when that is needed: a deadline that moves away costs nothing.
#[derive(Debug, Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready at the deadline.
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}

impl WatchedStream {
    pub(super) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
        limits: Arc<ServerLimits>,
        stranger: Option<Arc<Stranger>>,
        open: DropGuard,
    ) -> Self {
        Self {
            stream,
            activity,
            limits,
            stranger,
            timer: Timer::default(),
            stall: Stall::default(),
            linger: None,
            _open: open,
        }
    }

    /// There is nothing to read at the moment: whether the connection may go on waiting.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.activity.phase() {
            Phase::Busy | Phase::Upgraded => Poll::Pending,
            Phase::Idle if self.activity.is_stopping() => Poll::Ready(Ok(())),
            Phase::Idle => {
                ready!(self.timer.poll(self.activity.deadline(), context));
                // The end of the input is what a client that closes looks like.
                Poll::Ready(Ok(()))
            }
            Phase::Head => {
                ready!(self.timer.poll(self.activity.deadline(), context));
                // A client that does not take it gets none; the socket's buffer is empty but for a hostile one.
                let _told = self.stream.try_write(SLOW_HEAD);
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head of a request took too long")))
            }
        }
    }

    /// The limit on the time that the client takes nothing.
    fn watch_write<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() && self.activity.phase() == Phase::Idle {
            // The rest of an answer is still taken.
            self.activity.idle();
        }
        self.stall.watch(written, self.limits.write_timeout, context)
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(result) => {
                let count = buffer.filled().len() - before;
                if let Some(stranger) = self.stranger.as_ref().filter(|stranger| count > 0 && !stranger.is_known()) {
                    stranger.hold(count);
                }
                if count > 0 && self.activity.phase() == Phase::Idle {
                    self.activity.head(self.limits.header_timeout);
                }
                Poll::Ready(result)
            }
            Poll::Pending => self.wait(context),
        }
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch_write(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let limit = if let Some(limit) = self.linger {
            limit
        } else {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            let now = Instant::now();
            self.timer = Timer(Some(Box::pin(sleep_until(now + LINGER_PAUSE))));
            *self.linger.insert(now + LINGER_LIMIT)
        };
        if self.activity.is_stopping() {
            return Poll::Ready(Ok(()));
        }
        let mut waste = [0; 16 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut waste);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let now = Instant::now();
                    if now >= limit {
                        return Poll::Ready(Ok(()));
                    }
                    if let Some(sleep) = &mut self.timer.0 {
                        sleep.as_mut().reset((now + LINGER_PAUSE).min(limit));
                    }
                }
                // Nothing is lost any more by an end, of whatever kind.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    if let Some(sleep) = &mut self.timer.0 {
                        ready!(sleep.as_mut().poll(context));
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_answer_to_a_slow_head_is_right() {
        let text = std::str::from_utf8(SLOW_HEAD).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head} {}", body.len());
    }
}
