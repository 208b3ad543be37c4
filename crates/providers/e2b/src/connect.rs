//! Envelopes of the agent's streams: the Connect protocol with JSON (`hosted-apis` 2.3).
//!
//! An envelope is a byte of flags, four bytes of length, highest first, and a message. The last one of a stream says how it
//! ended.

use bytes::{Buf as _, Bytes, BytesMut};
use serde::Deserialize;

/// Length of what is before a message.
const HEAD: usize = 5;
/// Longest message: the agent cuts what programs write into much smaller pieces.
const LONGEST: usize = 8 * 1024 * 1024;
/// The message is compressed, which nobody has asked for.
const COMPRESSED: u8 = 0x01;
/// It is the last one.
const LAST: u8 = 0x02;

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A message.
    Message(Bytes),
    /// The end, with what went wrong.
    End(Option<Fault>),
}

/// What went wrong, in the words of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Fault {
    /// `not_found`, `unavailable`, …
    pub(crate) code: String,
    pub(crate) message: String,
}

/// A message in its envelope.
pub(crate) fn envelope(message: &[u8]) -> Vec<u8> {
    // What is sent is far below the bound of the length.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], message].concat()
}

/// The last message.
#[derive(Deserialize)]
struct End {
    #[serde(default)]
    error: Option<Fault>,
}

/// Takes a stream apart, in whatever pieces it comes.
#[derive(Debug, Default)]
pub(crate) struct Decoder(BytesMut);

impl Decoder {
    /// The next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }

    /// The next part, if all of it is there.
    ///
    /// # Errors
    ///
    /// It is no envelope that can be read, in a few words.
    pub(crate) fn part(&mut self) -> Result<Option<Part>, String> {
        let Some((&[flags, a, b, c, d], _)) = self.0.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err(format!("a message of {length} bytes, and {LONGEST} are the most"));
        }
        if flags & COMPRESSED != 0 {
            return Err("a compressed message, which nobody asked for".to_owned());
        }
        if self.0.len() < HEAD + length {
            return Ok(None);
        }
        self.0.advance(HEAD);
        let message = self.0.split_to(length).freeze();
        if flags & LAST == 0 {
            return Ok(Some(Part::Message(message)));
        }
        let end: End =
            serde_json::from_slice(&message).map_err(|error| format!("its end is not understood: {error}"))?;
        Ok(Some(Part::End(end.error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_in_whatever_pieces_it_comes() {
        let mut stream = envelope(b"{\"a\":1}");
        stream.extend(envelope(b""));
        stream.extend([2, 0, 0, 0, 45]);
        stream.extend(br#"{"error":{"code":"not_found","message":"no"}}"#);
        let fault = Fault { code: "not_found".to_owned(), message: "no".to_owned() };
        let message = |text: &'static [u8]| Part::Message(Bytes::from_static(text));
        let expected = [message(b"{\"a\":1}"), message(b""), Part::End(Some(fault))];
        for size in [1, 2, 3, 7, stream.len()] {
            let (mut decoder, mut parts) = (Decoder::default(), Vec::new());
            for piece in stream.chunks(size) {
                decoder.push(piece);
                while let Some(part) = decoder.part().unwrap() {
                    parts.push(part);
                }
            }
            assert_eq!(parts, expected, "{size}");
        }
    }

    #[test]
    fn what_is_too_long_compressed_or_no_json_is_refused_before_it_is_kept() {
        for (bytes, expected) in [
            (&[0, 0xff, 0xff, 0xff, 0xff][..], "4294967295 bytes"),
            (&[1, 0, 0, 0, 0], "compressed"),
            (&[2, 0, 0, 0, 1, b'x'], "not understood"),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            let error = decoder.part().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let mut decoder = Decoder::default();
        decoder.push(&[2, 0, 0, 0, 2, b'{', b'}']);
        assert_eq!(decoder.part(), Ok(Some(Part::End(None))));
    }
}
