//! What a child tells: frames of a kind, a length and that many bytes.

use std::io::{self, Read, Write};

/// What is in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The document as Markdown.
    Text,
    /// The document as the inner part of a page of a browser.
    Web,
    /// Why it can not be shown, as text.
    Failure,
    /// A page: its number, width and height, then a PNG.
    Picture,
    /// Something about pages that are not shown, as text.
    Note,
    /// That all is told.
    Done,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Text, Self::Web, Self::Failure, Self::Picture, Self::Note, Self::Done];

    const fn letter(self) -> u8 {
        match self {
            Self::Text => b'T',
            Self::Web => b'W',
            Self::Failure => b'F',
            Self::Picture => b'P',
            Self::Note => b'N',
            Self::Done => b'D',
        }
    }

    /// Most bytes of such a frame. A child that announces more is not believed.
    pub(crate) const fn limit(self) -> usize {
        match self {
            Self::Text => 4 * 1024 * 1024,
            Self::Web => 32 * 1024 * 1024,
            Self::Failure | Self::Note => 4 * 1024,
            // A dot has four bytes, and what can not be packed grows a little.
            Self::Picture => 72 * 1024 * 1024,
            Self::Done => 0,
        }
    }
}

/// The head of a picture's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Counted from 1.
    pub(crate) number: u32,
    /// In dots.
    pub(crate) width: u16,
    /// In dots.
    pub(crate) height: u16,
}

impl Head {
    pub(crate) const LENGTH: usize = 8;

    #[cfg(any(test, feature = "pictures"))]
    pub(crate) fn bytes(self) -> [u8; Self::LENGTH] {
        let (number, sides) = (u64::from(self.number), u64::from(self.width) << 16 | u64::from(self.height));
        (number << 32 | sides).to_le_bytes()
    }

    pub(crate) const fn of(bytes: [u8; Self::LENGTH]) -> Self {
        let [height @ .., _, _, _, _, _, _] = bytes;
        let [_, _, width @ .., _, _, _, _] = bytes;
        let [_, _, _, _, number @ ..] = bytes;
        Self {
            number: u32::from_le_bytes(number),
            width: u16::from_le_bytes(width),
            height: u16::from_le_bytes(height),
        }
    }
}

/// Writes a frame; its content may be in pieces.
pub(crate) fn write(out: &mut impl Write, kind: Kind, pieces: &[&[u8]]) -> io::Result<()> {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    if length > kind.limit() {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    out.write_all(&[kind.letter()])?;
    out.write_all(&length.to_le_bytes())?;
    pieces.iter().try_for_each(|piece| out.write_all(piece))?;
    out.flush()
}

/// The kind and the length of the next frame.
///
/// # Errors
///
/// There is none (`UnexpectedEof`), or it is none of those that there are (`InvalidData`).
pub(crate) fn begin(from: &mut impl Read) -> io::Result<(Kind, usize)> {
    let mut bytes = [0; 5];
    from.read_exact(&mut bytes)?;
    let [letter, length @ ..] = bytes;
    let kind = Kind::ALL.into_iter().find(|kind| kind.letter() == letter).ok_or(io::ErrorKind::InvalidData)?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > kind.limit() { Err(io::ErrorKind::InvalidData.into()) } else { Ok((kind, length)) }
}

/// The content of a frame.
pub(crate) fn content(from: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(length as u64).read_to_end(&mut content)?;
    if content.len() < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(content) }
}

/// As much of a text as fits into such a frame.
pub(crate) fn fitting(text: &str, kind: Kind) -> &str {
    &text[..text.floor_char_boundary(kind.limit())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let head = Head { number: 70_000, width: 3, height: 4_000 };
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Text, &["ü".as_bytes()]).unwrap();
        write(&mut bytes, Kind::Picture, &[&head.bytes(), b"png"]).unwrap();
        write(&mut bytes, Kind::Done, &[]).unwrap();
        let mut from = bytes.as_slice();
        assert_eq!(begin(&mut from).unwrap(), (Kind::Text, 2));
        assert_eq!(content(&mut from, 2).unwrap(), "ü".as_bytes());
        assert_eq!(begin(&mut from).unwrap(), (Kind::Picture, 11));
        let content = content(&mut from, 11).unwrap();
        assert_eq!((Head::of(content[..8].try_into().unwrap()), &content[8..]), (head, b"png".as_slice()));
        assert_eq!(begin(&mut from).unwrap(), (Kind::Done, 0));
        assert_eq!(begin(&mut from).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn frames_that_claim_too_much_or_are_none_are_refused() {
        for (bytes, expected) in [
            (&b"X\0\0\0\0"[..], io::ErrorKind::InvalidData),
            (b"D\x01\0\0\0", io::ErrorKind::InvalidData),
            (b"T\xff\xff\xff\xff", io::ErrorKind::InvalidData),
            (b"N\x01\x10\0\0", io::ErrorKind::InvalidData),
            (b"T\x01\0", io::ErrorKind::UnexpectedEof),
        ] {
            assert_eq!(begin(&mut &bytes[..]).unwrap_err().kind(), expected, "{bytes:?}");
        }
        assert_eq!(content(&mut &b"ab"[..], 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let long = "ü".repeat(Kind::Note.limit());
        assert!(write(&mut Vec::new(), Kind::Note, &[long.as_bytes()]).is_err());
        assert_eq!(fitting(&long, Kind::Note).len(), Kind::Note.limit());
        assert_eq!(fitting(&format!("x{long}"), Kind::Note).len(), Kind::Note.limit() - 1);
    }
}
