//! Connections of clients: how they are set up, that they end when a client takes nothing for too long, and that they hold
//! their place.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::{Sleep, sleep},
};

/// Small messages leave at once, and a peer that vanished without a word is noticed.
pub fn prepare(stream: &TcpStream) {
    let set = stream.set_nodelay(true).and_then(|()| {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, Duration::from_mins(1))?;
        sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
        sockopt::set_tcp_keepcnt(stream, 4)?;
        Ok(())
    });
    if let Err(error) = set {
        tracing::debug!(%error, "a connection cannot be configured");
    }
}

/// A timer that runs while a client takes nothing.
#[derive(Debug, Default)]
pub struct Stall(Option<Pin<Box<Sleep>>>);

impl Stall {
    /// What came of writing, or an error where the client has taken nothing for so long.
    pub fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        limit: Duration,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.0 = None;
            return written;
        }
        ready!(self.0.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client took nothing for too long")))
    }
}

/// A connection, also after it was upgraded.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    limit: Duration,
    stall: Stall,
    _place: OwnedSemaphorePermit,
}

impl Client {
    pub(crate) fn new(stream: TcpStream, limit: Duration, place: OwnedSemaphorePermit) -> Self {
        Self { stream, limit, stall: Stall::default(), _place: place }
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        let limit = self.limit;
        self.stall.watch(written, limit, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        let limit = self.limit;
        self.stall.watch(written, limit, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
