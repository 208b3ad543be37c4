//! Texts of JSON before they are parsed, and what stands between values.

use std::{borrow::Cow, ops::Range};

use crate::error::Problem;

/// How deep values may be in each other: the parser calls itself for each level.
const DEPTH: usize = 128;
/// Bytes of an escape with four digits.
const ESCAPE: usize = 6;
/// What stands for half a character: as long as its escape.
const REPLACEMENT: &str = "\\ufffd";

/// The text for the parser: what it cannot read although clients can is replaced by something of the same length.
///
/// JavaScript cuts texts in the middle of characters, and writes the half as an escape. A history of prompts has such.
///
/// # Errors
///
/// Values are nested too deeply.
pub(super) fn readable(text: &str) -> Result<Cow<'_, str>, Problem> {
    let bytes = text.as_bytes();
    let mut halves: Vec<usize> = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_text(bytes, at, &mut halves),
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => at = end_of_comment(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH {
                    let line = 1 + text[..at].bytes().filter(|byte| *byte == b'\n').count();
                    return Err(Problem::TooDeep { line, limit: DEPTH });
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    if halves.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    let mut readable = String::with_capacity(text.len());
    let mut done = 0;
    for half in halves {
        readable.push_str(&text[done..half]);
        readable.push_str(REPLACEMENT);
        done = half + ESCAPE;
    }
    readable.push_str(&text[done..]);
    Ok(Cow::Owned(readable))
}

/// The place behind a text in quotes. Escapes for half a character without the other half are noted.
fn end_of_text(bytes: &[u8], start: usize, halves: &mut Vec<usize>) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => match surrogate(bytes, at) {
                Some(0xD800..0xDC00) if matches!(surrogate(bytes, at + ESCAPE), Some(0xDC00..0xE000)) => {
                    at += 2 * ESCAPE;
                }
                Some(_) => {
                    halves.push(at);
                    at += ESCAPE;
                }
                None => at += 2,
            },
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The half of a character that is escaped here.
fn surrogate(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..0xE000).contains(&unit).then_some(unit)
}

/// The place behind a comment that begins here; one for a line ends before the end of the line.
fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start + 2..).unwrap_or_default();
    let length = if bytes.get(start + 1) == Some(&b'/') {
        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
    } else {
        rest.windows(2).position(|two| two == b"*/").map(|length| length + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

/// Something that stands between values and has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// White space within a line.
    Blank,
    /// The end of a line.
    Newline,
    /// `// …`, which needs the end of its line.
    LineComment,
    /// `/* … */`
    BlockComment,
}

impl Between {
    pub(super) fn is_comment(self) -> bool {
        matches!(self, Self::LineComment | Self::BlockComment)
    }
}

/// What stands between this place and the next value, comma or brace.
pub(super) fn between(text: &str, mut at: usize) -> impl Iterator<Item = (Between, Range<usize>)> {
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let (kind, end) = match first {
            '\r' if rest.starts_with("\r\n") => (Between::Newline, at + 2),
            '\n' | '\r' => (Between::Newline, at + 1),
            '/' if rest.starts_with("//") => (Between::LineComment, end_of_comment(text.as_bytes(), at)),
            '/' if rest.starts_with("/*") => (Between::BlockComment, end_of_comment(text.as_bytes(), at)),
            _ => {
                match rest.find(|next: char| !next.is_whitespace() || matches!(next, '\n' | '\r')).unwrap_or(rest.len())
                {
                    0 => return None,
                    length => (Between::Blank, at + length),
                }
            }
        };
        let range = at..end;
        at = end;
        Some((kind, range))
    })
}

/// The place of the next value, comma or brace.
pub(super) fn next_token(text: &str, at: usize) -> usize {
    between(text, at).last().map_or(at, |(_, range)| range.end)
}
