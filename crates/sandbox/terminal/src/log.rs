//! The bytes that a session's programs wrote, numbered by offset: the newest in memory, older ones in a spool file.
//!
//! The spool is a ring of a fixed size in an unlinked temporary file, so a session that prints for ever uses bounded
//! memory and bounded disk, and the oldest bytes make room. A reader that asks for bytes that are gone is told where
//! the kept ones begin.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// Bytes kept in memory before they move to the spool.
const MEMORY: usize = 64 * 1024;

/// A numbered log of output. Clones are handles to the same log.
#[derive(Debug, Clone)]
pub struct OutputLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Offset behind the last byte; readers wait for it to move.
    end: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    /// Oldest byte that can still be read.
    start: u64,
    /// First byte of `memory`; everything between `start` and here is in the spool.
    memory_start: u64,
    memory: Vec<u8>,
    spool: Spool,
}

#[derive(Debug)]
struct Spool {
    file: Option<File>,
    size: u64,
}

/// A piece of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte.
    pub offset: u64,
    /// The bytes; empty when the log ends at `offset`.
    pub bytes: Vec<u8>,
}

/// Why a piece can not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The bytes made room for newer ones.
    #[error("output before offset {oldest} is no longer kept (offset {asked} was asked for)")]
    Gone {
        /// The offset that was asked for.
        asked: u64,
        /// The oldest offset that can be read.
        oldest: u64,
    },
    /// The offset lies behind the end of the log.
    #[error("offset {asked} is behind the end of the output, which is {end}")]
    Ahead {
        /// The offset that was asked for.
        asked: u64,
        /// The offset behind the last byte.
        end: u64,
    },
    /// The spool file can not be read.
    #[error("cannot read the output spool: {0}")]
    Spool(#[from] io::Error),
}

impl OutputLog {
    /// An empty log that keeps at least the last `spool_size` bytes.
    pub fn new(spool_size: u64) -> Self {
        let size = spool_size.max(MEMORY as u64 * 2);
        let state = State { start: 0, memory_start: 0, memory: Vec::new(), spool: Spool { file: None, size } };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), end: watch::Sender::new(0) }) }
    }

    /// Offset behind the last byte.
    pub fn end(&self) -> u64 {
        *self.shared.end.borrow()
    }

    /// Offset of the oldest byte that can be read.
    pub fn start(&self) -> u64 {
        self.lock().start
    }

    /// Up to `most` bytes from `offset` on.
    pub fn read(&self, offset: u64, most: usize) -> Result<Piece, LogError> {
        self.lock().read(offset, most)
    }

    /// Returns as soon as there are bytes behind `offset`, and never if none come.
    pub async fn grown_beyond(&self, offset: u64) {
        let mut end = self.shared.end.subscribe();
        // Fails only when the sender is gone, and `self` holds it.
        let _end = end.wait_for(|end| *end > offset).await;
    }

    pub(crate) fn append(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = {
            let mut state = self.lock();
            state.append(bytes);
            state.end()
        };
        self.shared.end.send_replace(end);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end(&self) -> u64 {
        self.memory_start + self.memory.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) {
        self.memory.extend_from_slice(bytes);
        if self.memory.len() < MEMORY {
            return;
        }
        if let Err(error) = self.spool.write(self.memory_start, &self.memory) {
            tracing::warn!(%error, "the output spool can not be written; older output is dropped");
            self.start = self.end();
        }
        self.memory_start = self.end();
        self.memory.clear();
        self.start = self.start.max(self.memory_start.saturating_sub(self.spool.size));
    }

    fn read(&self, offset: u64, most: usize) -> Result<Piece, LogError> {
        if offset < self.start {
            return Err(LogError::Gone { asked: offset, oldest: self.start });
        }
        if offset > self.end() {
            return Err(LogError::Ahead { asked: offset, end: self.end() });
        }
        if let Some(at) = offset.checked_sub(self.memory_start) {
            let rest = usize::try_from(at).ok().and_then(|at| self.memory.get(at..)).unwrap_or_default();
            let bytes = rest.get(..most).unwrap_or(rest).to_vec();
            return Ok(Piece { offset, bytes });
        }
        let spooled = usize::try_from(self.memory_start - offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; most.min(spooled)];
        self.spool.read(offset, &mut bytes)?;
        Ok(Piece { offset, bytes })
    }
}

impl Spool {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        // Only the newest part of something larger than the ring could be read again.
        let keep = usize::try_from(self.size).unwrap_or(usize::MAX);
        let skipped = bytes.len().saturating_sub(keep);
        let mut at = offset + skipped as u64;
        let mut rest = bytes.get(skipped..).unwrap_or_default();
        while !rest.is_empty() {
            let (position, room) = place(at, self.size);
            let (now, later) = rest.split_at(rest.len().min(room));
            file.write_all_at(now, position)?;
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (position, room) = place(at, self.size);
            let (now, later) = rest.split_at_mut(rest.len().min(room));
            file.read_exact_at(now, position)?;
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }
}

/// Position of an offset in a ring, and the bytes from there to the ring's end.
fn place(offset: u64, size: u64) -> (u64, usize) {
    let position = offset % size;
    (position, usize::try_from(size - position).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_kept_byte_reads_back_from_any_offset(
            chunks in proptest::collection::vec((any::<u8>(), 1_usize..50_000), 1..40),
            asked in any::<u64>(),
            most in 1_usize..100_000,
        ) {
            let log = OutputLog::new(200_000);
            let mut all = Vec::new();
            for (seed, length) in chunks {
                let chunk: Vec<u8> = (0..length).map(|index| seed.wrapping_add(u8::try_from(index % 251).unwrap())).collect();
                log.append(&chunk);
                all.extend_from_slice(&chunk);
            }
            let end = all.len() as u64;
            prop_assert_eq!(log.end(), end);
            prop_assert!(end - log.start() >= end.min(200_000));
            let offset = log.start() + asked % (end - log.start() + 1);
            let piece = log.read(offset, most).unwrap();
            let expected = &all[usize::try_from(offset).unwrap()..];
            prop_assert_eq!(&piece.bytes[..], &expected[..piece.bytes.len()]);
            prop_assert!(!piece.bytes.is_empty() || offset == end);
        }
    }

    #[test]
    fn offsets_outside_of_the_kept_range_are_named_errors() {
        let log = OutputLog::new(0);
        log.append(&vec![7; 1_000_000]);
        assert!(matches!(log.read(0, 10), Err(LogError::Gone { asked: 0, .. })));
        assert!(matches!(log.read(1_000_001, 10), Err(LogError::Ahead { end: 1_000_000, .. })));
        assert_eq!(log.read(1_000_000, 10).unwrap().bytes, Vec::<u8>::new());
    }

    #[tokio::test]
    async fn a_reader_wakes_up_when_output_arrives() {
        let log = OutputLog::new(0);
        let reader = log.clone();
        let waiting = tokio::spawn(async move { reader.grown_beyond(3).await });
        log.append(b"abc");
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        log.append(b"d");
        tokio::time::timeout(std::time::Duration::from_secs(5), waiting).await.unwrap().unwrap();
    }
}
