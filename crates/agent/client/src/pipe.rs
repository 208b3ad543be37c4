//! Blocking readers and writers at the ends of asynchronous streams, with bounded memory between them.

use std::io::{self, Read, Write};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tokio::sync::mpsc;

/// Pieces on their way.
const PIECES: usize = 4;
/// Bytes of a piece.
const PIECE: usize = 256 * 1024;

/// What a blocking function writes, as a stream. The function ends when the stream is dropped, by a write that fails.
pub(crate) fn written_by<E>(
    write: impl FnOnce(&mut Writer) -> Result<(), E> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let mut writer = Writer { sender, buffer: BytesMut::new() };
        let result = write(&mut writer).map_err(io::Error::other).and_then(|()| writer.flush());
        if let Err(error) = result {
            // Nobody may listen any more, which is why it failed.
            let _told = writer.sender.blocking_send(Err(error));
        }
    });
    stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|piece| (piece, receiver)))
}

/// Writes into a stream.
pub(crate) struct Writer {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: BytesMut,
}

impl Writer {
    fn send(&mut self) -> io::Result<()> {
        let piece = self.buffer.split().freeze();
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() >= PIECE {
            self.send()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send() }
    }
}

/// Reads what comes through a channel, to its end. A sender that goes away without an end is an error.
pub(crate) struct Reader {
    receiver: mpsc::Receiver<Option<Bytes>>,
    piece: Bytes,
    ended: bool,
}

/// A channel to a blocking reader; `None` is the end.
pub(crate) fn channel() -> (mpsc::Sender<Option<Bytes>>, Reader) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (sender, Reader { receiver, piece: Bytes::new(), ended: false })
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Some(piece)) => self.piece = piece,
                Some(None) => self.ended = true,
                None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            }
        }
        let count = self.piece.len().min(into.len());
        into[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}
