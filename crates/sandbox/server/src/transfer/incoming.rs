//! From the network to a file.

use std::io::{self, Read};

use axum::body::{Body, HttpBody as _};
use bytes::{Buf as _, Bytes};
use futures_util::{Stream, stream};
use http_body_util::BodyExt as _;
use tokio::{sync::mpsc, time::timeout};

use crate::{body::BodyError, options::ServerLimits};

/// Pieces between the network and the thread.
const DEPTH: usize = 4;

/// The pieces of a body, within its bounds.
pub(crate) fn pieces(
    body: Body,
    limits: &ServerLimits,
) -> Result<impl Stream<Item = Result<Bytes, BodyError>> + Send + use<>, BodyError> {
    let limit = limits.upload_body;
    if body.size_hint().lower() > limit {
        return Err(BodyError::TooLarge { limit });
    }
    let incoming = Incoming { body, received: 0, limit, pause: limits.upload_pause };
    Ok(stream::unfold(Some(incoming), async |state| {
        let mut incoming = state?;
        match incoming.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(incoming))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    }))
}

struct Incoming {
    body: Body,
    received: u64,
    limit: u64,
    pause: std::time::Duration,
}

impl Incoming {
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let frame = match timeout(self.pause, self.body.frame()).await {
                Err(_) => return Err(BodyError::Stalled { limit: self.pause, received: self.received }),
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => frame.map_err(BodyError::Broken)?,
            };
            let Ok(piece) = frame.into_data() else { continue };
            self.received += piece.len() as u64;
            if self.received > self.limit {
                return Err(BodyError::TooLarge { limit: self.limit });
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}

enum Piece {
    Data(Bytes),
    /// Everything has arrived. A channel that ends without it ends too early.
    End,
}

/// A way from a task to a thread.
pub(crate) fn pipe() -> (Feeder, Source) {
    let (sender, receiver) = mpsc::channel(DEPTH);
    (Feeder(sender), Source { receiver, current: Bytes::new(), ended: false })
}

/// The end of the task. Dropping it without [`Feeder::end`] tells the thread that the rest will not come.
pub(crate) struct Feeder(mpsc::Sender<Piece>);

/// The thread does not take any more, because it failed.
#[derive(Debug)]
pub(crate) struct Refused;

impl Feeder {
    pub(crate) async fn send(&self, piece: Bytes) -> Result<(), Refused> {
        self.0.send(Piece::Data(piece)).await.map_err(|_| Refused)
    }

    pub(crate) async fn end(self) {
        // Whether it is still taken is told by the thread's own result.
        let _sent = self.0.send(Piece::End).await;
    }
}

/// The end of the thread.
pub(crate) struct Source {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

impl Source {
    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        if !self.current.is_empty() {
            return Ok(Some(std::mem::take(&mut self.current)));
        }
        if self.ended {
            return Ok(None);
        }
        match self.receiver.blocking_recv() {
            Some(Piece::Data(piece)) => Ok(Some(piece)),
            Some(Piece::End) => {
                self.ended = true;
                Ok(None)
            }
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client broke off")),
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.current.is_empty() {
                // What is there already is handed on before anything is waited for.
                if filled > 0 && self.receiver.is_empty() {
                    break;
                }
                match self.next()? {
                    Some(piece) => self.current = piece,
                    None => break,
                }
            }
            let length = self.current.len().min(buffer.len() - filled);
            self.current.copy_to_slice(&mut buffer[filled..filled + length]);
            filled += length;
        }
        Ok(filled)
    }
}
