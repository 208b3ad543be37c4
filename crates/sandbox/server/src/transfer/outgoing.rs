//! From a file to the network.

use std::{
    error::Error,
    io::{self, Write},
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream as streams;
use tokio::sync::mpsc;

use super::{Turn, detached};

/// Pieces between the thread and the network.
const DEPTH: usize = 2;
/// Most bytes of one piece.
const PIECE: usize = 256 * 1024;

enum Piece<E> {
    Data(Bytes),
    Failed(E),
    End,
}

/// What a thread writes into. Fails once the client is gone.
pub(crate) struct Sink<E>(mpsc::Sender<Piece<E>>);

impl<E> Write for Sink<E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        match self.0.blocking_send(Piece::Data(Bytes::copy_from_slice(piece))) {
            Ok(()) => Ok(piece.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A body that a thread writes. It begins when there is a first piece, so that an early failure is still an answer of
/// its own; a later one breaks the connection, so that nobody takes the part for the whole.
pub(crate) async fn stream<E, F>(turn: Turn, work: F) -> Result<Body, E>
where
    E: Error + Send + Sync + 'static,
    F: FnOnce(&mut Sink<E>) -> Result<(), E> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(DEPTH);
    // It ends by itself as soon as the body is dropped.
    detached(move || {
        let _turn = turn;
        let mut sink = Sink(sender);
        let last = match work(&mut sink) {
            Ok(()) => Piece::End,
            Err(error) => Piece::Failed(error),
        };
        let _taken = sink.0.blocking_send(last);
    });
    let first = match receiver.recv().await {
        Some(Piece::Failed(error)) => return Err(error),
        Some(piece) => Some(piece),
        None => None,
    };
    Ok(Body::from_stream(streams::unfold(Some((first, receiver)), async |state| {
        let (first, mut receiver) = state?;
        let piece = match first {
            Some(piece) => Some(piece),
            None => receiver.recv().await,
        };
        match piece {
            Some(Piece::Data(bytes)) => Some((Ok(bytes), Some((None, receiver)))),
            Some(Piece::End) => None,
            Some(Piece::Failed(error)) => {
                tracing::warn!(%error, "a download breaks off");
                Some((Err(io::Error::other(error)), None))
            }
            // A defect: the thread ended without a word.
            None => Some((Err(io::Error::other("the download ended too early")), None)),
        }
    })))
}
