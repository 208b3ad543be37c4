//! Headers of tar streams as layers have them: the old form, ustar, GNU's and POSIX's extensions.

use super::{
    error::LayerError,
    extended::{Extended, Time},
    sparse::{self, Segment},
    stream::Input,
};

/// Bytes of a header, and what contents are filled up to.
pub(super) const BLOCK: usize = 512;
/// Most bytes of what stands before a header and belongs to it.
const EXTRA: u64 = 1024 * 1024;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    HardLink,
    SymbolicLink,
    Directory,
    Fifo,
    Device,
}

/// An entry without its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// What a link leads to.
    pub(super) link: Vec<u8>,
    pub(super) kind: Kind,
    /// Bytes of contents in the stream; 0 for what can have none.
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) user: u64,
    pub(super) group: u64,
    pub(super) modified: Time,
    /// Where the contents belong in a file with holes, and its length.
    pub(super) sparse: Option<(Vec<Segment>, u64)>,
}

/// A header as it stands in the stream.
pub(super) struct Header([u8; BLOCK]);

impl Header {
    fn field(&self, from: usize, length: usize) -> &[u8] {
        self.0.get(from..from + length).unwrap_or_default()
    }

    pub(super) fn text(&self, from: usize, length: usize) -> &[u8] {
        let field = self.field(from, length);
        field.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    pub(super) fn number(&self, from: usize, length: usize) -> Option<i64> {
        number(self.field(from, length))
    }

    pub(super) fn flag(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|byte| *byte != 0)
    }

    fn kind(&self) -> u8 {
        self.0.get(156).copied().unwrap_or_default()
    }

    fn is_good(&self) -> bool {
        // The field itself counts as blanks.
        let sum =
            self.0.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { i64::from(*byte) });
        self.number(148, 8) == Some(sum.sum())
    }

    fn name(&self) -> Vec<u8> {
        let name = self.text(0, 100);
        // GNU's form has other things where POSIX's has the first part of long names.
        let prefix = if self.field(257, 6) == b"ustar\0" { self.text(345, 155) } else { &[] };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }
}

/// A number: octal digits, or a two's complement number after a first byte with its highest bit set.
fn number(field: &[u8]) -> Option<i64> {
    match field {
        [first, rest @ ..] if first & 0x80 != 0 => {
            let negative = first & 0x40 != 0;
            // The highest bit is the mark, the next one the sign.
            let first = if negative { i128::from(*first) - 256 } else { i128::from(first & 0x7f) };
            let value = rest.iter().try_fold(first, |value, byte| {
                value.checked_mul(256).and_then(|value| value.checked_add(i128::from(*byte)))
            })?;
            i64::try_from(value).ok()
        }
        _ => {
            let text = field.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii();
            if text.is_empty() {
                return Some(0);
            }
            if !text.iter().all(u8::is_ascii_digit) {
                return None;
            }
            i64::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()
        }
    }
}

/// Reads the next header; `None` at the mark of the end, or where the stream ends.
pub(super) fn raw(input: &mut impl Input) -> Result<Option<Header>, LayerError> {
    let mut header = Header([0; BLOCK]);
    match input.fill(&mut header.0) {
        0 => return Ok(None),
        BLOCK => {}
        _ => return Err(LayerError::damaged("it ends in the middle of a header")),
    }
    if header.0 == [0; BLOCK] {
        return Ok(None);
    }
    if !header.is_good() {
        return Err(LayerError::damaged("it is no tar archive, or a header is damaged"));
    }
    Ok(Some(header))
}

/// Reads a block that continues a header.
pub(super) fn raw_block(input: &mut impl Input) -> Result<Header, LayerError> {
    let mut block = Header([0; BLOCK]);
    if input.fill(&mut block.0) < BLOCK {
        return Err(LayerError::damaged("it ends in the middle of a header"));
    }
    Ok(block)
}

/// Reads the next entry; `None` at the end.
pub(super) fn next(input: &mut impl Input) -> Result<Option<Entry>, LayerError> {
    let (mut name, mut link, mut extended) = (None, None, Extended::default());
    let mut extras = 0;
    loop {
        let Some(header) = raw(input)? else {
            return if extras == 0 {
                Ok(None)
            } else {
                Err(LayerError::damaged("its last header belongs to no entry"))
            };
        };
        let kind = header.kind();
        match kind {
            b'L' => name = Some(without_nul(extra(input, &header)?)),
            b'K' => link = Some(without_nul(extra(input, &header)?)),
            b'x' => extended.take(&extra(input, &header)?)?,
            // Remarks about the whole archive.
            b'g' => drop(extra(input, &header)?),
            _ => return entry(input, &header, name, link, extended).map(Some),
        }
        if kind != b'g' {
            extras += 1;
        }
        if extras > 8 {
            return Err(LayerError::damaged("too many headers belong to one entry"));
        }
    }
}

fn entry(
    input: &mut impl Input,
    header: &Header,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    extended: Extended,
) -> Result<Entry, LayerError> {
    // POSIX's extension counts for more than GNU's.
    let name = extended.name.or(name).unwrap_or_else(|| header.name());
    let link = extended.link.or(link).unwrap_or_else(|| header.text(157, 100).to_vec());
    let at = |error: LayerError| error.at(&name);
    let wrong = |what: &str| LayerError::damaged(what).at(&name);
    let kind = match header.kind() {
        0 | b'0' | b'7' | b'S' if name.ends_with(b"/") && header.kind() != b'S' => Kind::Directory,
        0 | b'0' | b'7' | b'S' => Kind::File,
        b'1' => Kind::HardLink,
        b'2' => Kind::SymbolicLink,
        b'3' | b'4' => Kind::Device,
        b'5' => Kind::Directory,
        b'6' => Kind::Fifo,
        other => return Err(wrong(&format!("it is of the kind `{}`, which is not known", other.escape_ascii()))),
    };
    if extended.sparse {
        return Err(wrong("it is a file with holes in POSIX's form, which is not supported"));
    }
    let not_negative =
        |value: Option<i64>, what| value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| wrong(what));
    let stored = match extended.size {
        Some(size) => size,
        None => not_negative(header.number(124, 12), "its size is no number, or negative")?,
    };
    // Others have no contents, whatever their header says; an old directory by name has.
    let has_contents = matches!(header.kind(), 0 | b'0' | b'7' | b'S');
    let size = if has_contents { stored } else { 0 };
    let sparse = if header.kind() == b'S' { Some(sparse::read(input, header, size).map_err(at)?) } else { None };
    let owner = |given: Option<u64>, from| match given {
        Some(number) => Ok(number),
        None => not_negative(header.number(from, 8), "the number of its owner is none, or negative"),
    };
    let mode = not_negative(header.number(100, 8), "its mode is no number, or negative")? & 0o7777;
    Ok(Entry {
        link,
        kind,
        size,
        mode: u32::try_from(mode).unwrap_or(0o644),
        user: owner(extended.user, 108)?,
        group: owner(extended.group, 116)?,
        modified: match extended.modified {
            Some(time) => time,
            None => {
                Time { seconds: header.number(136, 12).ok_or_else(|| wrong("its time is no number"))?, nanoseconds: 0 }
            }
        },
        sparse,
        name,
    })
}

/// The contents of what belongs to the next header, within a bound.
fn extra(input: &mut impl Input, header: &Header) -> Result<Vec<u8>, LayerError> {
    let size = header.number(124, 12).and_then(|size| u64::try_from(size).ok());
    let Some(size) = size.filter(|size| *size <= EXTRA) else {
        return Err(LayerError::damaged("a name or an extended header is too long, or its size is no number"));
    };
    let length = usize::try_from(size).unwrap_or_default();
    let mut bytes = vec![0; length.next_multiple_of(BLOCK)];
    if input.fill(&mut bytes) < bytes.len() {
        return Err(LayerError::damaged("it ends too early"));
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn without_nul(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() == Some(&0) {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary_and_may_be_negative() {
        let mut large = [0; 12];
        large[0] = 0x80;
        large[4..].copy_from_slice(&(1_i64 << 40).to_be_bytes());
        for (field, expected) in [
            (b"0000644\0".as_slice(), Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"\0\0\0", Some(0)),
            (b"", Some(0)),
            (b"8", None),
            (b"-1", None),
            (b"+1", None),
            (&large, Some(1 << 40)),
            (&[0xff; 12], Some(-1)),
            (&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], None),
            (&[0xbf; 32], None),
        ] {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}
