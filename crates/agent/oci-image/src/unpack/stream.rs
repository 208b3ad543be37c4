//! The unpacked bytes of a layer, which another thread makes: decompressed, counted, hashed.

use std::{
    io::{self, Read},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
};

use super::error::LayerError;
use crate::{digest::Passing, error::ImageError};

/// Bytes that go from one thread to the other at once.
const PIECE: usize = 256 * 1024;
/// Pieces that may wait.
const WAITING: usize = 8;

/// Where headers are read from.
pub(super) trait Input {
    /// Fills the buffer; returns how much of it, which is less at the end only.
    fn fill(&mut self, buffer: &mut [u8]) -> usize;
}

/// The end that makes bytes.
pub(super) struct Maker {
    pieces: SyncSender<Vec<u8>>,
    used: Receiver<Vec<u8>>,
}

/// The end that reads them.
pub(super) struct Stream {
    pieces: Receiver<Vec<u8>>,
    used: Sender<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

/// Both ends.
pub(super) fn ends() -> (Maker, Stream) {
    let ((pieces, received), (back, used)) = (sync_channel(WAITING), channel());
    (Maker { pieces, used }, Stream { pieces: received, used: back, piece: Vec::new(), at: 0 })
}

/// What the bytes of a layer are counted by.
pub(super) struct Budget<'a> {
    /// Bytes that may still come.
    pub(super) left: u64,
    /// The bound, for the error.
    pub(super) limit: u64,
    /// Set when nobody wants the image any more.
    pub(super) stop: &'a AtomicBool,
}

impl Maker {
    /// Sends everything that `input` has; returns what has passed. Ends early, and says so, when nobody reads any more.
    pub(super) fn run(self, input: &mut dyn Read, budget: &Budget<'_>) -> Result<Option<Passing>, MakeError> {
        let mut passing = Passing::default();
        loop {
            if budget.stop.load(Relaxed) {
                return Err(MakeError::Image(ImageError::Stopped));
            }
            let mut piece = self.used.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE));
            piece.clear();
            input.take(PIECE as u64).read_to_end(&mut piece).map_err(MakeError::Input)?;
            if piece.is_empty() {
                return Ok(Some(passing));
            }
            passing.update(&piece);
            if passing.bytes() > budget.left {
                let what = "the image, when it is unpacked,".to_owned();
                return Err(MakeError::Image(ImageError::Bound { what, limit: budget.limit, unit: "bytes" }));
            }
            if self.pieces.send(piece).is_err() {
                return Ok(None);
            }
        }
    }
}

/// Why no more bytes come.
pub(super) enum MakeError {
    /// They cannot be read or decompressed.
    Input(io::Error),
    /// Something that has an error of its own.
    Image(ImageError),
}

impl Stream {
    /// The next bytes; none at the end.
    pub(super) fn next(&mut self) -> &[u8] {
        if self.at >= self.piece.len() {
            let next = self.pieces.recv().unwrap_or_default();
            let used = std::mem::replace(&mut self.piece, next);
            self.at = 0;
            if used.capacity() > 0 {
                let _maker_has_ended = self.used.send(used);
            }
        }
        self.piece.get(self.at..).unwrap_or_default()
    }

    /// Takes bytes of [`Stream::next`] as read.
    pub(super) fn consume(&mut self, length: usize) {
        self.at += length;
    }

    /// Gives the next `length` bytes to `each`, piece by piece.
    pub(super) fn pass(
        &mut self,
        mut length: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        while length > 0 {
            let bytes = self.next();
            let part = bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
            let Some(bytes) = bytes.get(..part).filter(|bytes| !bytes.is_empty()) else {
                return Err(LayerError::damaged("it ends too early"));
            };
            each(bytes)?;
            self.consume(part);
            length -= part as u64;
        }
        Ok(())
    }

    /// Reads over the rest.
    pub(super) fn finish(mut self) {
        loop {
            let length = self.next().len();
            if length == 0 {
                return;
            }
            self.consume(length);
        }
    }
}

impl Input for Stream {
    fn fill(&mut self, mut buffer: &mut [u8]) -> usize {
        let whole = buffer.len();
        while !buffer.is_empty() {
            // Reading from bytes that are there cannot fail.
            let length = self.next().read(buffer).unwrap_or_default();
            if length == 0 {
                break;
            }
            self.consume(length);
            buffer = buffer.get_mut(length..).unwrap_or_default();
        }
        whole - buffer.len()
    }
}
