//! Bytes to text and back without a loss (file-editor 3.7).
//!
//! Text is UTF-8 wherever it can be, is what its byte order mark says, or has a legacy encoding that is guessed. A
//! guess is taken only if it gives back the very bytes, so that what an edit does not touch stays as it is.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, WINDOWS_1252};

/// How many bytes a guess looks at.
const DETECTED: usize = 1024 * 1024;

/// How text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8, which ASCII is a part of.
    Utf8,
    /// UTF-8 behind a byte order mark.
    Utf8Marked,
    /// UTF-16 or UTF-32 behind a byte order mark.
    Wide(Wide),
    /// Something older, guessed.
    Legacy(&'static Encoding),
}

/// The encodings of Unicode that need a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wide {
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
    /// UTF-32, low byte first.
    Utf32Le,
    /// UTF-32, high byte first.
    Utf32Be,
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

impl Wide {
    /// Longer marks come first: that of UTF-32 begins with that of UTF-16.
    const ALL: [Self; 4] = [Self::Utf32Le, Self::Utf32Be, Self::Utf16Le, Self::Utf16Be];

    fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
            Self::Utf32Le => b"\xff\xfe\0\0",
            Self::Utf32Be => b"\0\0\xfe\xff",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Utf16Le | Self::Utf16Be => "utf-16",
            Self::Utf32Le | Self::Utf32Be => "utf-32",
        }
    }

    /// The text behind the mark.
    fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf16Le => utf16(bytes, u16::from_le_bytes),
            Self::Utf16Be => utf16(bytes, u16::from_be_bytes),
            Self::Utf32Le => utf32(bytes, u32::from_le_bytes),
            Self::Utf32Be => utf32(bytes, u32::from_be_bytes),
        }
    }

    fn encode(self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len() * 2 + 4);
        bytes.extend_from_slice(self.mark());
        match self {
            Self::Utf16Le => text.encode_utf16().for_each(|unit| bytes.extend(unit.to_le_bytes())),
            Self::Utf16Be => text.encode_utf16().for_each(|unit| bytes.extend(unit.to_be_bytes())),
            Self::Utf32Le => text.chars().for_each(|unit| bytes.extend(u32::from(unit).to_le_bytes())),
            Self::Utf32Be => text.chars().for_each(|unit| bytes.extend(u32::from(unit).to_be_bytes())),
        }
        bytes
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    char::decode_utf16(units.iter().copied().map(unit)).collect::<Result<_, _>>().ok()
}

fn utf32(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> Option<String> {
    let (units, []) = bytes.as_chunks::<4>() else { return None };
    units.iter().copied().map(|bytes| char::from_u32(unit(bytes))).collect()
}

/// The bytes are not the text that their byte order mark promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("'{}' codec can't decode what follows the byte order mark", .0.name())]
pub struct Undecodable(Wide);

/// The encoding has no bytes for a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("'{}' codec can't encode character '{character}' in position {position}", encoding.name())]
pub struct Unencodable {
    encoding: &'static Encoding,
    /// The character.
    pub character: char,
    /// How many characters stand before it.
    pub position: usize,
}

/// The text, and how it is stored. `known` is what the same file was found to be before, if anything.
///
/// # Errors
///
/// There is a byte order mark, and what follows it is something else.
pub fn decode(bytes: Vec<u8>, known: Option<TextEncoding>) -> Result<(String, TextEncoding), Undecodable> {
    let bytes = match String::from_utf8(bytes) {
        Ok(mut text) if text.starts_with('\u{feff}') => {
            text.drain(..UTF8_MARK.len());
            return Ok((text, TextEncoding::Utf8Marked));
        }
        Ok(text) => return Ok((text, TextEncoding::Utf8)),
        Err(error) => error.into_bytes(),
    };
    let mut marked = Wide::ALL.into_iter().filter_map(|wide| bytes.strip_prefix(wide.mark()).map(|rest| (wide, rest)));
    if let Some((wide, rest)) = marked.next() {
        if let Some(text) = wide.decode(rest) {
            return Ok((text, TextEncoding::Wide(wide)));
        }
        // The mark of UTF-32 can be the one of UTF-16 and a NUL.
        return match marked.next().and_then(|(other, rest)| Some((other.decode(rest)?, other))) {
            Some((text, other)) => Ok((text, TextEncoding::Wide(other))),
            None => Err(Undecodable(wide)),
        };
    }
    if let Some(TextEncoding::Legacy(encoding)) = known
        && let Some(text) = lossless(&bytes, encoding)
    {
        return Ok((text, TextEncoding::Legacy(encoding)));
    }
    Ok(decode_legacy(&bytes))
}

/// Text that has no mark and is not UTF-8.
fn decode_legacy(bytes: &[u8]) -> (String, TextEncoding) {
    let guessed = guess(bytes);
    if let Some(text) = lossless(bytes, guessed) {
        return (text, TextEncoding::Legacy(guessed));
    }
    // Each byte is a character of its own there, so nothing is lost.
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    (text.into_owned(), TextEncoding::Legacy(WINDOWS_1252))
}

/// The legacy encoding that the bytes look like.
pub fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let head = &bytes[..bytes.len().min(DETECTED)];
    detector.feed(head, head.len() == bytes.len());
    detector.guess(None, Utf8Detection::Deny)
}

/// The text, if encoding it gives back the same bytes.
pub fn lossless(bytes: &[u8], encoding: &'static Encoding) -> Option<String> {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned();
    (legacy_bytes(&text, encoding).ok()? == bytes).then_some(text)
}

/// Whether the bytes begin with the mark of a wide encoding and are text in it, but for an end that may be cut.
pub fn is_marked_wide(bytes: &[u8]) -> bool {
    Wide::ALL.into_iter().any(|wide| {
        let Some(rest) = bytes.strip_prefix(wide.mark()) else { return false };
        // The longest cut is half of a surrogate pair and one byte.
        (0..4).any(|cut| rest.len() >= cut && wide.decode(&rest[..rest.len() - cut]).is_some())
    })
}

/// The bytes of the text.
///
/// # Errors
///
/// A character does not exist in a legacy encoding.
pub fn encode(text: &str, encoding: TextEncoding) -> Result<Cow<'_, [u8]>, Unencodable> {
    Ok(match encoding {
        TextEncoding::Utf8 => Cow::Borrowed(text.as_bytes()),
        TextEncoding::Utf8Marked => Cow::Owned([UTF8_MARK, text.as_bytes()].concat()),
        TextEncoding::Wide(wide) => Cow::Owned(wide.encode(text)),
        TextEncoding::Legacy(encoding) => Cow::Owned(legacy_bytes(text, encoding)?),
    })
}

fn legacy_bytes(text: &str, encoding: &'static Encoding) -> Result<Vec<u8>, Unencodable> {
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len() * 4);
    let mut bytes = Vec::with_capacity(room);
    let mut rest = text;
    loop {
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return Ok(bytes),
            EncoderResult::OutputFull => bytes.reserve(rest.len() * 4 + 16),
            EncoderResult::Unmappable(character) => {
                let position = text[..text.len() - rest.len()].chars().count().saturating_sub(1);
                return Err(Unencodable { encoding, character, position });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(bytes: &[u8]) -> (String, TextEncoding) {
        let (text, encoding) = decode(bytes.to_vec(), None).unwrap();
        assert_eq!(encode(&text, encoding).unwrap(), bytes, "{encoding:?} {text:?}");
        (text, encoding)
    }

    #[test]
    fn unicode_is_known_by_itself_or_by_its_mark() {
        for (bytes, text, encoding) in [
            (&b""[..], "", TextEncoding::Utf8),
            (b"a\r\n", "a\r\n", TextEncoding::Utf8),
            ("é𝄞".as_bytes(), "é𝄞", TextEncoding::Utf8),
            (b"\xef\xbb\xbfa", "a", TextEncoding::Utf8Marked),
            (b"\xef\xbb\xbf", "", TextEncoding::Utf8Marked),
            (b"\xff\xfea\0\x34\xd8\x1e\xdd", "a𝄞", TextEncoding::Wide(Wide::Utf16Le)),
            (b"\xfe\xff\0a\xd8\x34\xdd\x1e", "a𝄞", TextEncoding::Wide(Wide::Utf16Be)),
            (b"\xff\xfe\0\0\x1e\xd1\x01\0", "𝄞", TextEncoding::Wide(Wide::Utf32Le)),
            (b"\0\0\xfe\xff\0\x01\xd1\x1e", "𝄞", TextEncoding::Wide(Wide::Utf32Be)),
            (b"\xff\xfe\0\0a\0", "\0a", TextEncoding::Wide(Wide::Utf16Le)),
        ] {
            assert_eq!(detected(bytes), (text.to_owned(), encoding));
        }
    }

    #[test]
    fn a_mark_that_lies_is_an_error_and_not_garbage() {
        for (bytes, name) in
            [(&b"\xff\xfea"[..], "utf-16"), (b"\xfe\xff\xd8\x34", "utf-16"), (b"\0\0\xfe\xffa", "utf-32")]
        {
            assert_eq!(
                decode(bytes.to_vec(), None).unwrap_err().to_string(),
                format!("'{name}' codec can't decode what follows the byte order mark")
            );
        }
    }

    #[test]
    fn legacy_text_is_read_in_its_encoding() {
        for (text, name) in [
            ("Привет мир, это обычный русский текст для проверки кодировки.\n", "windows-1251"),
            ("日本語のテキストです。これはテストです。\n", "Shift_JIS"),
            ("中文文本测试编码检测是否正确，这里需要更多的文字。\n", "GBK"),
            ("한국어 텍스트입니다. 인코딩을 시험합니다.\n", "EUC-KR"),
            ("Déjà vu à la crème brûlée, garçon naïf élève\n", "windows-1252"),
        ] {
            let encoding = Encoding::for_label(name.as_bytes()).unwrap();
            let bytes = encoding.encode(text).0.into_owned();
            assert_eq!(detected(&bytes), (text.to_owned(), TextEncoding::Legacy(encoding)));
        }
    }

    #[test]
    fn every_byte_survives_whatever_is_guessed() {
        let all: Vec<u8> = (0..=255).collect();
        detected(&all);
        for byte in 0x80..=0xff {
            detected(&[b'a', byte, b'\n']);
            detected(&[byte, byte]);
        }
    }

    #[test]
    fn what_is_known_wins_over_a_guess_if_it_loses_nothing() {
        let known = TextEncoding::Legacy(encoding_rs::KOI8_R);
        assert_eq!(decode(b"\xc1".to_vec(), Some(known)).unwrap(), ("а".to_owned(), known));
        let unfit = TextEncoding::Legacy(encoding_rs::SHIFT_JIS);
        assert_ne!(decode(b"\xff\x80".to_vec(), Some(unfit)).unwrap().1, unfit);
        assert_eq!(decode("é".into(), Some(known)).unwrap().1, TextEncoding::Utf8);
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_named_with_its_place() {
        let error = encode("aé世", TextEncoding::Legacy(WINDOWS_1252)).unwrap_err();
        assert_eq!(error.to_string(), "'windows-1252' codec can't encode character '世' in position 2");
    }
}
