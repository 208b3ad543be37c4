//! What layers are compressed with, which their first bytes tell.

use std::io::{self, BufRead, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// How a layer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstandard,
}

impl Compression {
    /// By the first bytes of a layer.
    ///
    /// # Errors
    ///
    /// It is compressed with something else.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, &'static str> {
        match bytes {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstandard),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Err("it is compressed with xz, which is not supported"),
            [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] => {
                Err("it is compressed with bzip2, which is not supported")
            }
            _ => Ok(Self::None),
        }
    }

    /// What decompresses.
    pub(super) fn reader<'a>(self, input: &'a mut (dyn BufRead + 'a)) -> Box<dyn Read + 'a> {
        match self {
            Self::None => Box::new(input),
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Zstandard => Box::new(Frames::Between(Input(input))),
        }
    }
}

/// Zstandard: frames one after the other, some of which have nothing to be unpacked.
enum Frames<'a> {
    Between(Input<'a>),
    Within(Box<Frame<'a>>),
    /// The input was damaged.
    Broken,
}

type Frame<'a> = StreamingDecoder<io::Chain<Cursor<[u8; 4]>, Input<'a>>, FrameDecoder>;

struct Input<'a>(&'a mut (dyn BufRead + 'a));

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<'a> Frames<'a> {
    /// The next frame that has something, or the end of the input.
    fn begin(mut input: Input<'a>) -> io::Result<Self> {
        loop {
            if input.0.fill_buf()?.is_empty() {
                return Ok(Self::Between(input));
            }
            let mut magic = [0; 4];
            input.read_exact(&mut magic)?;
            if !matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
                let frame = StreamingDecoder::new(Cursor::new(magic).chain(input)).map_err(io::Error::other)?;
                return Ok(Self::Within(Box::new(frame)));
            }
            let mut length = [0; 4];
            input.read_exact(&mut length)?;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut (&mut input).take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Self::Within(frame) = self {
                let length = frame.read(buffer)?;
                if length > 0 || buffer.is_empty() {
                    return Ok(length);
                }
            }
            let input = match std::mem::replace(self, Self::Broken) {
                Self::Between(input) => input,
                Self::Within(frame) => frame.into_inner().into_inner().1,
                Self::Broken => return Err(io::ErrorKind::InvalidData.into()),
            };
            *self = Self::begin(input)?;
            if matches!(self, Self::Between(_)) {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn frames_follow_each_other_and_some_are_skipped() {
        let frame = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let input = [skipped.clone(), frame(b"one "), skipped.clone(), frame(b""), frame(b"two"), skipped].concat();
        let read = |mut bytes: &[u8]| -> io::Result<String> {
            let compression = Compression::of(bytes).map_err(io::Error::other)?;
            io::read_to_string(compression.reader(&mut bytes))
        };
        assert_eq!(read(&input).unwrap(), "one two");
        for cut in [input.len() - 1, input.len() - 11 - 2, 6, 20] {
            read(&input[..cut]).unwrap_err();
        }
        read(&[&input, &b"more"[..]].concat()).unwrap_err();
    }

    #[test]
    fn the_first_bytes_tell_what_it_is() {
        assert_eq!(Compression::of(b""), Ok(Compression::None));
        assert_eq!(Compression::of(b"etc/"), Ok(Compression::None));
        assert_eq!(Compression::of(&[0x1f, 0x8b, 8]), Ok(Compression::Gzip));
        assert!(Compression::of(b"\xfd7zXZ\0").is_err());
        assert!(Compression::of(b"BZh91AY&SY").is_err());
    }
}
