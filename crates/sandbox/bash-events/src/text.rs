//! Output as text, in chunks of a fixed length.

use encoding_rs::{Decoder, UTF_8};

/// Characters of a full chunk.
pub(crate) const CHUNK: usize = 1_048_576;

/// What one stream of a command wrote and nobody was told of yet.
pub(crate) struct Pending {
    decoder: Decoder,
    text: String,
    /// Characters of it.
    count: usize,
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { decoder: UTF_8.new_decoder_without_bom_handling(), text: String::new(), count: 0 }
    }

    /// Adds bytes. A character may be in two of these.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.decode(bytes, false);
    }

    fn decode(&mut self, bytes: &[u8], last: bool) {
        let room = self.decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len());
        let before = self.text.len();
        self.text.reserve(room);
        // There is room for all of it.
        let _done = self.decoder.decode_to_string(bytes, &mut self.text, last);
        self.count += self.text.get(before..).unwrap_or_default().chars().count();
    }

    /// A full chunk, if there is more than one.
    pub(crate) fn chunk(&mut self) -> Option<String> {
        if self.count <= CHUNK {
            return None;
        }
        let at = self.text.char_indices().nth(CHUNK).map_or(self.text.len(), |(at, _)| at);
        let rest = self.text.split_off(at);
        self.count -= CHUNK;
        Some(std::mem::replace(&mut self.text, rest))
    }

    /// What is left at the end.
    pub(crate) fn rest(&mut self) -> String {
        self.decode(&[], true);
        self.decoder = UTF_8.new_decoder_without_bom_handling();
        self.count = 0;
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole_and_broken_ones_are_replaced() {
        let mut pending = Pending::new();
        for byte in "aé€😀".as_bytes() {
            pending.push(&[*byte]);
        }
        pending.push(b"\xffz\xe2\x82");
        assert_eq!(pending.rest(), "aé€😀\u{fffd}z\u{fffd}");
        assert_eq!(pending.rest(), "");
    }

    #[test]
    fn a_chunk_is_full_and_only_there_if_more_follows() {
        let mut pending = Pending::new();
        pending.push("é".repeat(CHUNK).as_bytes());
        assert_eq!(pending.chunk(), None);
        pending.push(b"x");
        assert_eq!(pending.chunk().map(|chunk| chunk.chars().count()), Some(CHUNK));
        assert_eq!((pending.chunk(), pending.rest()), (None, "x".to_owned()));
    }
}
