//! What must not come back is overwritten, wherever it stands in a stream.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, Input, MatchKind};
use bytes::Bytes;

/// What stands in place of each byte.
const COVER: u8 = b'*';

/// Texts that are overwritten.
#[derive(Clone)]
pub(crate) struct Patterns {
    search: Arc<AhoCorasick>,
    texts: Arc<BTreeSet<Vec<u8>>>,
    beginnings: Arc<[Beginnings]>,
}

impl Patterns {
    pub(crate) fn new(texts: BTreeSet<Vec<u8>>) -> Result<Self, BuildError> {
        let search = AhoCorasick::builder()
            // Of those that begin at one place the longest covers all.
            .match_kind(MatchKind::LeftmostLongest)
            // It is built in a time that grows with the length alone, and some are built for one request.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&texts)?;
        let beginnings = texts.iter().map(|text| Beginnings::of(text)).collect();
        Ok(Self { search: Arc::new(search), texts: Arc::new(texts), beginnings })
    }

    /// These and more.
    pub(crate) fn with(&self, more: Vec<Vec<u8>>) -> Result<Self, BuildError> {
        if more.iter().all(|text| self.texts.contains(text)) {
            return Ok(self.clone());
        }
        let mut texts = BTreeSet::clone(&self.texts);
        texts.extend(more);
        Self::new(texts)
    }

    /// A whole text with what must not be seen overwritten, if there is anything.
    pub(crate) fn cover(&self, text: &[u8]) -> Option<Vec<u8>> {
        let found = self.find_all(text);
        (!found.is_empty()).then(|| covered(text.to_vec(), &found))
    }

    /// All places, overlapping ones included, in order.
    fn find_all(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while let Some(next) = self.search.find(Input::new(text).range(at..)) {
            match found.last_mut() {
                Some(last) if next.start() <= last.end => last.end = last.end.max(next.end()),
                _ => found.push(next.range()),
            }
            at = next.start() + 1;
        }
        found
    }

    /// Length of the longest end of a text that one of the patterns goes on from.
    fn begun(&self, text: &[u8]) -> usize {
        self.beginnings.iter().map(|beginnings| beginnings.at_end(text)).max().unwrap_or(0)
    }
}

/// Finds the beginning of one pattern at the end of a text, in a time that grows with the length of the pattern alone
/// (Knuth, Morris and Pratt).
struct Beginnings {
    /// The pattern without its last byte: all of it would have been found.
    pattern: Box<[u8]>,
    /// For each length of a beginning, that of the next shorter one which it ends with.
    shorter: Box<[usize]>,
}

impl Beginnings {
    fn of(text: &[u8]) -> Self {
        let pattern: Box<[u8]> = text.split_last().map_or(&[][..], |(_, beginning)| beginning).into();
        let mut shorter = vec![0; pattern.len() + 1];
        let mut length = 0;
        for at in 1..pattern.len() {
            while length > 0 && pattern[at] != pattern[length] {
                length = shorter[length];
            }
            length += usize::from(pattern[at] == pattern[length]);
            shorter[at + 1] = length;
        }
        Self { pattern, shorter: shorter.into() }
    }

    fn at_end(&self, text: &[u8]) -> usize {
        let Some(first) = self.pattern.first() else { return 0 };
        let end = &text[text.len().saturating_sub(self.pattern.len())..];
        let Some(at) = memchr::memchr(*first, end) else { return 0 };
        let mut length = 0;
        for byte in &end[at..] {
            while length > 0 && self.pattern.get(length) != Some(byte) {
                length = self.shorter[length];
            }
            length += usize::from(self.pattern[length] == *byte);
        }
        length
    }
}

fn covered(mut text: Vec<u8>, found: &[Range<usize>]) -> Vec<u8> {
    for range in found {
        text[range.clone()].fill(COVER);
    }
    text
}

/// A stream in which patterns are overwritten. Only an end that a pattern may go on from waits for what comes.
pub(crate) struct Mask {
    patterns: Patterns,
    /// What waits, as it came.
    waits: Vec<u8>,
    /// The same, with what is known of it overwritten.
    shown: Vec<u8>,
}

impl Mask {
    pub(crate) fn new(patterns: Patterns) -> Self {
        Self { patterns, waits: Vec::new(), shown: Vec::new() }
    }

    /// How many bytes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waits.len()
    }

    /// Takes the next bytes, and gives out what is certain.
    pub(crate) fn pass(&mut self, mut chunk: Bytes) -> Bytes {
        if self.waits.is_empty() && !self.patterns.search.is_match(&chunk[..]) {
            let certain = chunk.len() - self.patterns.begun(&chunk);
            self.keep(&chunk[certain..], &chunk[certain..]);
            chunk.truncate(certain);
            return chunk;
        }
        let text = [&self.waits[..], &chunk].concat();
        let shown = [&self.shown[..], &chunk].concat();
        let mut shown = covered(shown, &self.patterns.find_all(&text));
        let certain = text.len() - self.patterns.begun(&text);
        self.keep(&text[certain..], &shown[certain..]);
        shown.truncate(certain);
        shown.into()
    }

    /// What waited, at the end of the stream.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.waits.clear();
        std::mem::take(&mut self.shown).into()
    }

    fn keep(&mut self, waits: &[u8], shown: &[u8]) {
        self.waits.clear();
        self.waits.extend_from_slice(waits);
        self.shown.clear();
        self.shown.extend_from_slice(shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Patterns {
        Patterns::new(texts.iter().map(|text| text.as_bytes().to_vec()).collect()).unwrap()
    }

    /// What comes out of pieces that end at these places.
    fn through(patterns: &Patterns, text: &str, ends: &[usize]) -> String {
        let mut mask = Mask::new(patterns.clone());
        let mut out = Vec::new();
        let mut at = 0;
        for end in ends.iter().copied().chain([text.len()]) {
            out.extend_from_slice(&mask.pass(Bytes::copy_from_slice(&text.as_bytes()[at..end])));
            at = end;
        }
        out.extend_from_slice(&mask.rest());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn patterns_are_overwritten_wherever_a_stream_is_split() {
        let table: [(&[&str], &str, &str); 7] = [
            (&["secret-1"], "a secret-1, secret-, secret-1", "a ********, secret-, ********"),
            // One in another, one across another, one that repeats itself.
            (&["xxABCDEFGHyyy", "ABCDEFGH"], "xxABCDEFGHyy.", "xx********yy."),
            (&["abcdefgh", "efghijkl"], "-abcdefghijkl-", "-************-"),
            (&["aaaaaaaa"], "-aaaaaaaaaaaa-", "-************-"),
            (&["abcabcab"], "abcabcabcab abcabca", "*********** abcabca"),
            (&["secret-1", "secret-1-long"], "secret-1-long secret-1-lon", "************* ********-lon"),
            (&["secret-1"], "sesecretsecret-1", "sesecret********"),
        ];
        for (texts, text, expected) in table {
            let patterns = patterns(texts);
            for first in 0..=text.len() {
                assert_eq!(through(&patterns, text, &[first]), expected, "{texts:?} {first}");
                for second in first..=text.len() {
                    assert_eq!(through(&patterns, text, &[first, second]), expected, "{texts:?} {first} {second}");
                }
            }
            let each: Vec<_> = (0..text.len()).collect();
            assert_eq!(through(&patterns, text, &each), expected, "{texts:?} byte by byte");
        }
    }

    #[test]
    fn the_longest_beginning_at_the_end_is_found() {
        for pattern in ["abcd", "aaab", "abab", "abaabab", "a", "ab"] {
            let beginnings = Beginnings::of(pattern.as_bytes());
            // All texts of four letters up to this length.
            for number in 0..4_usize.pow(7) {
                let text: String = (0..7).map(|place| ['a', 'b', 'c', 'd'][number / 4_usize.pow(place) % 4]).collect();
                let expected = (1..pattern.len()).rev().find(|length| text.ends_with(&pattern[..*length]));
                assert_eq!(beginnings.at_end(text.as_bytes()), expected.unwrap_or(0), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn what_no_pattern_goes_on_from_does_not_wait_and_is_not_copied() {
        let mut mask = Mask::new(patterns(&["secret-1"]));
        let chunk = Bytes::from_static(b"data: nothing\n\n");
        assert_eq!(mask.pass(chunk.clone()).as_ptr(), chunk.as_ptr());
        assert_eq!(mask.waiting(), 0);
        let begun = Bytes::from_static(b"data: secr");
        assert_eq!(mask.pass(begun.clone()), "data: ");
        assert_eq!(mask.waiting(), 4);
        assert_eq!(mask.pass(Bytes::from_static(b"ecy")), "secrecy");
        assert_eq!(mask.rest(), "");
    }
}
