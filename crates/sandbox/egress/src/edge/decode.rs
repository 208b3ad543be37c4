//! Bodies that come compressed although nobody asked for it, a piece at a time.

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use http::{HeaderMap, header::CONTENT_ENCODING};

/// What one step gives out at most, however much the input expands to.
const PIECE: usize = 64 * 1024;
/// The window of deflate: 32 KiB.
const WINDOW_BITS: u8 = 15;
/// The first byte of gzip.
const GZIP: u8 = 0x1f;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    /// With zlib's frame, or without as some servers send it.
    Deflate,
}

impl Coding {
    /// The coding of an answer; the text of it if it is one that cannot be read.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, String> {
        let values = headers.get_all(CONTENT_ENCODING).iter();
        let all: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase()).collect();
        let all = all.join(", ");
        match all.trim() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            other => Err(other.to_owned()),
        }
    }
}

/// Why a compressed body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the compressed body is broken: {0}")]
    Broken(#[from] flate2::DecompressError),
    #[error("the compressed body ends too early")]
    Short,
}

/// Reads one body.
pub(crate) struct Decoder {
    coding: Coding,
    /// `None` until the first byte has come, which says how it is framed.
    state: Option<Decompress>,
    input: Bytes,
    /// The compressed part is over; what follows belongs to it only if it is gzip again.
    ended: bool,
}

impl Decoder {
    pub(crate) fn new(coding: Coding) -> Self {
        Self { coding, state: None, input: Bytes::new(), ended: false }
    }

    /// Whether nothing has come.
    pub(crate) fn is_new(&self) -> bool {
        self.state.is_none()
    }

    /// Takes input, when [`Self::next`] has used up what was there.
    pub(crate) fn push(&mut self, input: Bytes) {
        self.input = input;
    }

    /// The next piece of the body; `None` if that takes more input.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, DecodeError> {
        while let Some(first) = self.input.first().copied() {
            if self.ended && !self.begins_again(first) {
                return Ok(None);
            }
            let coding = self.coding;
            let state = self.state.get_or_insert_with(|| begin(coding, first));
            let mut piece = Vec::with_capacity(PIECE);
            let before = state.total_in();
            let status = state.decompress_vec(&self.input, &mut piece, FlushDecompress::None)?;
            let used = usize::try_from(state.total_in() - before).unwrap_or(usize::MAX);
            self.ended = status == Status::StreamEnd;
            if used == 0 && piece.is_empty() && !self.ended {
                return Err(DecodeError::Short);
            }
            self.input.advance(used.min(self.input.len()));
            if !piece.is_empty() {
                // Whoever keeps pieces until they are read counts their bytes, not the room that they were made with.
                piece.shrink_to_fit();
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    /// Says whether the body may end here.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.ended || self.is_new() { Ok(()) } else { Err(DecodeError::Short) }
    }

    /// Gzip may consist of several parts; other bytes behind the last are dropped.
    fn begins_again(&mut self, first: u8) -> bool {
        if self.coding == Coding::Gzip && first == GZIP {
            self.state = None;
            self.ended = false;
            true
        } else {
            self.input.clear();
            false
        }
    }
}

fn begin(coding: Coding, first: u8) -> Decompress {
    match coding {
        Coding::Gzip => Decompress::new_gzip(WINDOW_BITS),
        // The first byte of zlib's frame names the method, 8 (RFC 1950, 2.2). The first of bare deflate can look like
        // that only if it is a stored block with nonsense in the bits that are skipped.
        Coding::Deflate => Decompress::new(first & 0x0f == 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };
    use std::io::Write as _;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decoded(coding: Coding, body: &[u8], piece: usize) -> Result<Vec<u8>, DecodeError> {
        let mut decoder = Decoder::new(coding);
        let mut out = Vec::new();
        for chunk in body.chunks(piece) {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(piece) = decoder.next()? {
                out.extend_from_slice(&piece);
            }
        }
        decoder.end().map(|()| out)
    }

    #[test]
    fn bodies_are_read_in_pieces_of_any_size() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(&text).unwrap();
        for (coding, body, expected) in [
            (Coding::Gzip, gzip(&text), text.clone()),
            (Coding::Gzip, [gzip(&text), gzip(b"more")].concat(), [&text[..], b"more"].concat()),
            (Coding::Gzip, [gzip(b"some"), b"\0\0\0".to_vec()].concat(), b"some".to_vec()),
            (Coding::Gzip, gzip(b""), Vec::new()),
            (Coding::Gzip, Vec::new(), Vec::new()),
            (Coding::Deflate, zlib.finish().unwrap(), text.clone()),
            (Coding::Deflate, bare.finish().unwrap(), text.clone()),
        ] {
            for piece in [1, 7, 1000, usize::MAX] {
                assert!(decoded(coding, &body, piece).unwrap() == expected, "{coding:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn broken_bodies_are_errors() {
        let whole = gzip(b"some text, and more of it");
        assert!(decoded(Coding::Gzip, &whole[..whole.len() - 4], 5).is_err());
        assert!(decoded(Coding::Gzip, b"this is not gzip", 5).is_err());
        assert!(decoded(Coding::Deflate, b"\x78\x9cthis is not zlib", 5).is_err());
    }

    #[test]
    fn a_bomb_comes_out_in_bounded_pieces() {
        let bomb = gzip(&vec![0; 50_000_000]);
        assert!(bomb.len() < 100_000);
        let mut decoder = Decoder::new(Coding::Gzip);
        decoder.push(bomb.into());
        let mut all = 0;
        while let Some(piece) = decoder.next().unwrap() {
            assert!(piece.len() <= PIECE);
            all += piece.len();
        }
        assert_eq!(all, 50_000_000);
    }

    #[test]
    fn codings_are_read_from_headers() {
        for (texts, expected) in [
            (vec![], Ok(None)),
            (vec!["identity"], Ok(None)),
            (vec!["GZip"], Ok(Some(Coding::Gzip))),
            (vec!["deflate"], Ok(Some(Coding::Deflate))),
            (vec!["br"], Err("br".to_owned())),
            (vec!["gzip, br"], Err("gzip, br".to_owned())),
            (vec!["gzip", "gzip"], Err("gzip, gzip".to_owned())),
        ] {
            let mut headers = HeaderMap::new();
            for text in &texts {
                headers.append(CONTENT_ENCODING, text.parse().unwrap());
            }
            assert_eq!(Coding::of(&headers), expected, "{texts:?}");
        }
    }
}
