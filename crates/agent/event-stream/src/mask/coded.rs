//! The forms of a secret that code its bytes: base64 and hexadecimal.

use zeroize::Zeroizing;

use super::outcome::{Head, Outcome};

/// Fewest base64 symbols that the secret alone decides.
const FEWEST_SYMBOLS: usize = 6;
/// Fewest bytes of a secret in hexadecimal.
const FEWEST_BYTES: usize = 4;

/// What may stand between two base64 symbols: the end of a line.
const WRAPS: [&[u8]; 2] = [b"\r\n", b"\n"];
/// What may stand between two bytes in hexadecimal.
const SEPARATORS: [&[u8]; 10] = [b", 0x", b"\r\n", b"\n ", b"\\x", b"\n", b" ", b":", b"-", b"%", b","];

/// A secret in base64, somewhere in a longer coded text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Base64 {
    /// The six bits of each symbol that the secret alone decides.
    core: Zeroizing<Vec<u8>>,
    /// The symbol at the end that also has bits of what follows.
    tail: Option<Tail>,
}

/// The bits of a symbol that belong to the secret, at the top.
#[derive(Debug, PartialEq, Eq)]
struct Tail {
    mask: u8,
    bits: u8,
}

impl Base64 {
    /// The forms of a secret that stands 0, 1 and 2 bytes after a multiple of three bytes.
    pub(super) fn forms(secret: &[u8]) -> impl Iterator<Item = Self> {
        (0..3).filter_map(|before| Self::after(before, secret))
    }

    fn after(before: usize, secret: &[u8]) -> Option<Self> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(before + secret.len() + 2));
        bytes.resize(before, 0);
        bytes.extend_from_slice(secret);
        let bits = bytes.len() * 8;
        // Bits of what follows; they are masked.
        bytes.extend_from_slice(&[0, 0]);
        let symbol = |index: usize| {
            let (byte, shift) = (index * 6 / 8, index * 6 % 8);
            let pair = bytes.get(byte..).and_then(<[u8]>::first_chunk::<2>).copied().unwrap_or_default();
            let [top, _] = (u16::from_be_bytes(pair) << shift).to_be_bytes();
            top >> 2
        };
        let whole = bits / 6;
        let core: Zeroizing<Vec<u8>> = Zeroizing::new(((before * 8).div_ceil(6)..whole).map(symbol).collect());
        let tail = match bits % 6 {
            2 => Some(Tail { mask: 0b11_0000, bits: symbol(whole) }),
            4 => Some(Tail { mask: 0b11_1100, bits: symbol(whole) }),
            _ => None,
        };
        (core.len() >= FEWEST_SYMBOLS).then_some(Self { core, tail })
    }

    /// Compares with the text at a place.
    pub(super) fn compare(&self, text: &[u8], start: usize) -> Outcome {
        let core = self.core.iter().map(|bits| (0b11_1111, *bits));
        let all = core.chain(self.tail.iter().map(|tail| (tail.mask, tail.bits)));
        let mut at = start;
        let mut open = false;
        for (index, (mask, bits)) in all.enumerate() {
            if index > 0 {
                at += skip(&WRAPS, text, at, &mut open);
            }
            match symbol_at(text, at) {
                Symbol::Of { value, len } if value & mask == bits => at += len,
                Symbol::Of { .. } | Symbol::None => return Outcome { end: None, open },
                Symbol::Open => return Outcome { end: None, open: true },
            }
        }
        Outcome { end: Some(at), open }
    }

    /// What a match may begin with.
    pub(super) fn heads(&self) -> Vec<Head> {
        let [first, second] = *self.core.first_chunk::<2>().unwrap_or(&[0, 0]);
        let next: Vec<u8> = spellings(second).into_iter().chain([b'\n', b'\r']).collect();
        let heads = spellings(first).into_iter().flat_map(|first| match first {
            b'%' => vec![(b'%', Some(b'2'))],
            _ => next.iter().map(|second| (first, Some(*second))).collect(),
        });
        heads.collect()
    }
}

/// A base64 symbol in a text.
enum Symbol {
    Of {
        value: u8,
        len: usize,
    },
    /// The text ends before it is decided.
    Open,
    None,
}

/// The symbol at a place, in either alphabet, also percent-encoded.
fn symbol_at(text: &[u8], at: usize) -> Symbol {
    let one = |value| Symbol::Of { value, len: 1 };
    match text.get(at..).unwrap_or_default() {
        [] | [b'%'] | [b'%', b'2'] => Symbol::Open,
        [byte @ b'A'..=b'Z', ..] => one(byte - b'A'),
        [byte @ b'a'..=b'z', ..] => one(byte - b'a' + 26),
        [byte @ b'0'..=b'9', ..] => one(byte - b'0' + 52),
        [b'+' | b'-', ..] => one(62),
        [b'/' | b'_', ..] => one(63),
        [b'%', b'2', b'B' | b'b', ..] => Symbol::Of { value: 62, len: 3 },
        [b'%', b'2', b'F' | b'f', ..] => Symbol::Of { value: 63, len: 3 },
        _ => Symbol::None,
    }
}

/// The bytes that the spellings of a symbol begin with.
fn spellings(value: u8) -> Vec<u8> {
    match value {
        0..=25 => vec![b'A' + value],
        26..=51 => vec![b'a' + value - 26],
        52..=61 => vec![b'0' + value - 52],
        62 => vec![b'+', b'-', b'%'],
        _ => vec![b'/', b'_', b'%'],
    }
}

/// A secret in hexadecimal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hex {
    bytes: Zeroizing<Vec<u8>>,
}

impl Hex {
    /// The form of a secret, if it is long enough.
    pub(super) fn form(secret: &[u8]) -> Option<Self> {
        (secret.len() >= FEWEST_BYTES).then(|| Self { bytes: Zeroizing::new(secret.to_vec()) })
    }

    /// Compares with the text at a place.
    pub(super) fn compare(&self, text: &[u8], start: usize) -> Outcome {
        let mut at = start;
        let mut open = false;
        for (index, byte) in self.bytes.iter().enumerate() {
            if index > 0 {
                at += skip(&SEPARATORS, text, at, &mut open);
            }
            for nibble in [byte >> 4, byte & 15] {
                match text.get(at) {
                    None => return Outcome { end: None, open: true },
                    Some(digit) if digits(nibble).contains(digit) => at += 1,
                    Some(_) => return Outcome { end: None, open },
                }
            }
        }
        Outcome { end: Some(at), open }
    }

    /// What a match may begin with.
    pub(super) fn heads(&self) -> Vec<Head> {
        let first = self.bytes.first().copied().unwrap_or_default();
        let pairs = digits(first >> 4).into_iter().flat_map(|high| digits(first & 15).map(|low| (high, Some(low))));
        pairs.collect()
    }
}

/// Both spellings of a hexadecimal digit.
fn digits(nibble: u8) -> [u8; 2] {
    match nibble {
        0..=9 => [b'0' + nibble; 2],
        _ => [b'a' + nibble - 10, b'A' + nibble - 10],
    }
}

/// The length of the separator at a place; none is fine as well. A separator that the text cuts leaves it open.
fn skip(separators: &[&[u8]], text: &[u8], at: usize, open: &mut bool) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    for separator in separators {
        if rest.starts_with(separator) {
            return separator.len();
        }
        *open |= separator.starts_with(rest);
    }
    0
}
