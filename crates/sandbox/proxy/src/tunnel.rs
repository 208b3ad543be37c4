//! An upgraded connection: bytes both ways until it ends.

use std::{io, time::Duration};

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio_util::sync::CancellationToken;

use crate::{answer::Held, progress::Movement};

/// Bytes on their way in one direction.
const BUFFER: usize = 16 * 1024;

/// Copies both ways until both sides have ended their direction, one fails, nothing travels for `half_closed` after one
/// has ended, or `stop` is cancelled. `held` lives as long.
pub(crate) async fn run(
    client: OnUpgrade,
    service: OnUpgrade,
    half_closed: Duration,
    stop: CancellationToken,
    held: Held,
) {
    let both = async { tokio::try_join!(client, service) };
    match stop.run_until_cancelled(both).await {
        Some(Ok((client, service))) => {
            if let Some(Err(error)) = stop.run_until_cancelled(copy_both(client, service, half_closed)).await {
                tracing::debug!(%error, "an upgraded connection ended with an error");
            }
        }
        Some(Err(error)) => tracing::debug!(%error, "a connection was not upgraded"),
        None => {}
    }
    drop(held);
}

async fn copy_both(client: Upgraded, service: Upgraded, half_closed: Duration) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_service, mut to_service) = split(TokioIo::new(service));
    let movement = Movement::new();
    let up = copy(&mut from_client, &mut to_service, &movement);
    let down = copy(&mut from_service, &mut to_client, &movement);
    tokio::pin!(up, down);
    tokio::select! {
        ended = &mut up => { ended?; finish(down, &movement, half_closed).await }
        ended = &mut down => { ended?; finish(up, &movement, half_closed).await }
    }
}

/// The rest of one direction after the other one has ended.
async fn finish(
    rest: impl Future<Output = io::Result<()>> + Unpin,
    movement: &Movement,
    half_closed: Duration,
) -> io::Result<()> {
    movement.touch();
    tokio::select! {
        done = rest => done,
        () = movement.stalled(half_closed) => Ok(()),
    }
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    movement: &Movement,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..count).unwrap_or_default()).await?;
        to.flush().await?;
        movement.touch();
    }
}
