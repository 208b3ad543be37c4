//! The output of a session as it comes: what no answer has told yet.

use gloveport_terminal::{LogError, OutputLog};

use crate::output;

/// Most bytes of an answer; of more, the last are told.
pub(crate) const MOST: usize = 32 * 1024 * 1024;
/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// What a session has printed and nobody was told of.
#[derive(Debug)]
pub(crate) struct Reader {
    log: OutputLog,
    /// What was read of the log.
    at: u64,
    /// The beginning of a character.
    tail: Vec<u8>,
    text: String,
    /// Bytes that were let go, as there were too many.
    lost: u64,
}

impl Reader {
    pub(crate) fn new(log: OutputLog) -> Self {
        let at = log.end();
        Self { log, at, tail: Vec::new(), text: String::new(), lost: 0 }
    }

    /// What is untold.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// How far the log was read.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Forgets all that comes before this offset.
    pub(crate) fn begin_at(&mut self, offset: u64) {
        (self.at, self.lost) = (offset, 0);
        self.tail.clear();
        self.text.clear();
    }

    /// Reads what there is, up to this offset.
    pub(crate) fn read(&mut self, until: u64) {
        let skipped = until.saturating_sub(self.at).saturating_sub(MOST as u64);
        if skipped > 0 {
            self.lost += skipped + self.text.len() as u64;
            self.at += skipped;
            self.text.clear();
            self.tail.clear();
        }
        while self.at < until {
            let most = usize::try_from(until - self.at).unwrap_or(PIECE).min(PIECE);
            match self.log.read(self.at, most) {
                Ok(piece) if piece.bytes.is_empty() => break,
                Ok(piece) => self.take(piece.bytes),
                Err(LogError::Gone { oldest, .. }) => {
                    self.lost += oldest.min(until) - self.at;
                    self.at = oldest.min(until);
                    self.tail.clear();
                }
                Err(error) => {
                    tracing::warn!(%error, "output of a session cannot be read");
                    self.lost += until - self.at;
                    self.at = until;
                }
            }
        }
    }

    fn take(&mut self, bytes: Vec<u8>) {
        self.at += bytes.len() as u64;
        let mut bytes = if self.tail.is_empty() { bytes } else { [std::mem::take(&mut self.tail), bytes].concat() };
        self.tail = bytes.split_off(bytes.len() - output::unfinished(&bytes));
        output::push(&mut self.text, &bytes);
        // Half of it at once, so that not every piece moves all.
        if self.text.len() > 2 * MOST {
            let cut = self.text.ceil_char_boundary(self.text.len() - MOST);
            self.text.drain(..cut);
            self.lost += cut as u64;
        }
    }

    /// All that is untold, which is told now.
    pub(crate) fn tell(&mut self) -> String {
        let tail = std::mem::take(&mut self.tail);
        output::push(&mut self.text, &tail);
        let told = std::mem::take(&mut self.text);
        self.mark(&told)
    }

    /// What is untold before a place in it; the rest begins at another.
    pub(crate) fn tell_before(&mut self, end: usize, rest: usize) -> String {
        let told = self.text.get(..end).unwrap_or_default().to_owned();
        self.text.drain(..rest);
        self.mark(&told)
    }

    fn mark(&mut self, told: &str) -> String {
        let told = output::plain(told);
        match std::mem::take(&mut self.lost) {
            0 => told,
            lost => format!("[{lost} bytes of output before this are not shown]\n{told}"),
        }
    }
}
