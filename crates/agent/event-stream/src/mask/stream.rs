//! Output that arrives in chunks.

use std::{fmt, sync::Arc};

use zeroize::Zeroizing;

use super::{
    into_text,
    patterns::{Ending, Patterns, Resume},
};

/// Hides secrets in output that arrives in chunks, also those that chunks cut.
///
/// All that comes out, put together, is what [`Masker::mask`](super::Masker::mask) makes of all that went in. What could
/// be the beginning of a secret is held back until it is decided, at most as much as the longest form of a secret; all
/// else is passed on at once. What is held back is wiped from memory after use.
pub struct MaskStream {
    patterns: Arc<Patterns>,
    held: Zeroizing<Vec<u8>>,
    /// How much of `held` is hidden already.
    hidden: usize,
}

impl MaskStream {
    pub(super) fn new(patterns: Arc<Patterns>) -> Self {
        Self { patterns, held: Zeroizing::default(), hidden: 0 }
    }

    /// Takes the next chunk, and gives what can be passed on.
    pub fn push(&mut self, chunk: &str) -> String {
        into_text(self.push_bytes(chunk.as_bytes()))
    }

    /// Gives what is held back, when no more comes.
    pub fn finish(self) -> String {
        into_text(self.finish_bytes())
    }

    /// [`push`](Self::push) for bytes that need not be text, and may be cut within a character.
    pub fn push_bytes(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let mut out = Vec::with_capacity(self.held.len());
        let resume = self.scan(Ending::Open, &mut out);
        self.hidden = resume.hidden;
        self.held = Zeroizing::new(self.held.get(resume.from..).unwrap_or_default().to_vec());
        out
    }

    /// [`finish`](Self::finish) for bytes.
    pub fn finish_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        self.scan(Ending::Here, &mut out);
        out
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn scan(&self, ending: Ending, out: &mut Vec<u8>) -> Resume {
        self.patterns.scan(&self.held, Resume { from: 0, hidden: self.hidden }, ending, out)
    }
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskStream").finish_non_exhaustive()
    }
}
