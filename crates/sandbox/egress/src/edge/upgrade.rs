//! Connections that become something else than HTTP, as WebSockets do.

use std::io;

use bytes::{Bytes, BytesMut};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};

use super::{
    mask::{Mask, Patterns},
    upstream::Lease,
};

/// What is held in each direction.
const BUFFER: usize = 64 * 1024;

/// Both sides of a connection that becomes something else when its answer is out.
pub(crate) struct Upgrade {
    pub(crate) inside: OnUpgrade,
    pub(crate) outside: OnUpgrade,
    pub(crate) patterns: Patterns,
    /// The connection to the target, which lives as long.
    pub(crate) lease: Lease,
}

impl Upgrade {
    /// Copies both ways until both have ended; values that come back are overwritten.
    pub(crate) async fn run(self) {
        let Self { inside, outside, patterns, lease } = self;
        let copied = match tokio::try_join!(inside, outside) {
            Ok((inside, outside)) => copy(inside, outside, patterns).await,
            Err(error) => Err(io::Error::other(error)),
        };
        if let Err(error) = copied {
            tracing::debug!(%error, "an upgraded connection broke");
        }
        drop(lease);
    }
}

async fn copy(inside: Upgraded, outside: Upgraded, patterns: Patterns) -> io::Result<()> {
    let (from_inside, to_inside) = split(TokioIo::new(inside));
    let (from_outside, to_outside) = split(TokioIo::new(outside));
    let mut mask = Mask::new(patterns);
    let covered = move |chunk: Option<Bytes>| match chunk {
        Some(chunk) => mask.pass(chunk),
        None => mask.rest(),
    };
    tokio::try_join!(
        one_way(from_inside, to_outside, Option::unwrap_or_default),
        one_way(from_outside, to_inside, covered),
    )?;
    Ok(())
}

/// Copies one way. What goes out is what `pass` makes of each chunk, and of the end.
async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut pass: impl FnMut(Option<Bytes>) -> Bytes,
) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(BUFFER);
    loop {
        buffer.reserve(BUFFER);
        let count = from.read_buf(&mut buffer).await?;
        let chunk = (count > 0).then(|| buffer.split().freeze());
        to.write_all(&pass(chunk)).await?;
        to.flush().await?;
        if count == 0 {
            return to.shutdown().await;
        }
    }
}
