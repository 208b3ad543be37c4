//! Text as the reference reads it: UTF-8, and every kind of line end is one `\n` (`file-editor`, introduction).

use std::{
    borrow::Cow,
    io::{self, Read},
};

use memchr::{memchr, memchr_iter};

/// Bytes read at once from a file that is too large to be held.
const PIECE: usize = 64 * 1024;

/// Why a text can not be had.
#[derive(Debug)]
pub(super) enum TextError {
    /// It is not UTF-8.
    NotUtf8,
    /// It can not be read.
    Read(io::Error),
}

impl From<io::Error> for TextError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// The bytes of a whole file as text.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, TextError> {
    let text = String::from_utf8(bytes).map_err(|_| TextError::NotUtf8)?;
    Ok(match unify(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(unified) => unified,
    })
}

/// The text with `\r\n` and lone `\r` as `\n`.
pub fn unify(text: &str) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Reads a text of any size in pieces, and hands each on with unified line ends.
pub(super) fn in_pieces(
    mut source: impl Read,
    mut take: impl FnMut(&str) -> Result<(), TextError>,
) -> Result<(), TextError> {
    let mut buffer = vec![0; PIECE + 8];
    // Bytes at the front of the buffer that are the beginning of a character, or a `\r` whose `\n` may follow.
    let mut held = 0;
    loop {
        let read = match source.read(&mut buffer[held..held + PIECE]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let filled = held + read;
        let bytes = &buffer[..filled];
        let mut whole = match std::str::from_utf8(bytes) {
            Ok(_) => filled,
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            Err(_) => return Err(TextError::NotUtf8),
        };
        if read > 0 && bytes[..whole].ends_with(b"\r") && whole == filled {
            whole -= 1;
        }
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|_| TextError::NotUtf8)?;
        if !text.is_empty() {
            take(&unify(text))?;
        }
        if read == 0 {
            return Ok(());
        }
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
    }
}

/// Counts the lines of a text that comes in pieces; a last line without an end counts.
#[derive(Debug, Default)]
pub(super) struct LineCount {
    ends: usize,
    open: bool,
}

impl LineCount {
    pub(super) fn add(&mut self, piece: &str) {
        self.ends += memchr_iter(b'\n', piece.as_bytes()).count();
        if !piece.is_empty() {
            self.open = !piece.ends_with('\n');
        }
    }

    pub(super) fn lines(&self) -> usize {
        self.ends + usize::from(self.open)
    }

    /// Ends of lines so far.
    pub(super) fn ends(&self) -> usize {
        self.ends
    }
}

/// The part of a piece that belongs to the lines `wanted`, given how many lines ended before it.
pub(super) fn within<'a>(piece: &'a str, before: usize, wanted: &std::ops::Range<usize>) -> &'a str {
    let skip = wanted.start.saturating_sub(before);
    let keep = wanted.end.saturating_sub(before);
    let begin = if skip == 0 { 0 } else { end_of_line(piece, skip) };
    let end = if keep == 0 { 0 } else { end_of_line(piece, keep) };
    piece.get(begin..end.max(begin)).unwrap_or_default()
}

/// Offset behind the `count`th `\n`, or the length.
fn end_of_line(text: &str, count: usize) -> usize {
    memchr_iter(b'\n', text.as_bytes()).nth(count - 1).map_or(text.len(), |at| at + 1)
}

/// The lines of a whole text by number, with their ends.
pub(super) fn lines(text: &str, wanted: &std::ops::Range<usize>) -> String {
    within(text, 0, wanted).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in chunks of the given sizes.
    struct Chunks<'a>(&'a [u8], Vec<usize>);

    impl Read for Chunks<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.1.pop().unwrap_or(3).clamp(1, buffer.len()).min(self.0.len());
            buffer[..size].copy_from_slice(&self.0[..size]);
            self.0 = &self.0[size..];
            Ok(size)
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_text_of_the_whole(text in "[a\r\n\u{e9}\u{1f600}]{0,40}", sizes: Vec<usize>) {
            let mut collected = String::new();
            let mut count = LineCount::default();
            in_pieces(Chunks(text.as_bytes(), sizes), |piece| {
                collected.push_str(piece);
                count.add(piece);
                Ok(())
            }).unwrap();
            let expected = text.replace("\r\n", "\n").replace('\r', "\n");
            prop_assert_eq!(count.lines(), expected.split_inclusive('\n').count());
            prop_assert_eq!(collected, expected);
        }

        #[test]
        fn lines_of_pieces_are_those_of_the_whole(
            text in "[ab\n]{0,40}", sizes: Vec<usize>, start in 0_usize..12, length in 0_usize..12,
        ) {
            let wanted = start..start + length;
            let (mut collected, mut count) = (String::new(), LineCount::default());
            in_pieces(Chunks(text.as_bytes(), sizes), |piece| {
                collected.push_str(within(piece, count.ends(), &wanted));
                count.add(piece);
                Ok(())
            }).unwrap();
            let expected: String = text.split_inclusive('\n').skip(start).take(length).collect();
            prop_assert_eq!(lines(&text, &wanted), &*expected);
            prop_assert_eq!(collected, expected);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_wherever_they_stand() {
        for bytes in [&b"\xff"[..], b"a\xc3", b"\xc3a", b"\xe2\x82", b"ok\r\n\xed\xa0\x80"] {
            let pieces = in_pieces(Chunks(bytes, vec![1; 10]), |_| Ok(()));
            assert!(matches!(pieces, Err(TextError::NotUtf8)), "{bytes:?}");
            assert!(matches!(decode(bytes.to_vec()), Err(TextError::NotUtf8)), "{bytes:?}");
        }
    }
}
