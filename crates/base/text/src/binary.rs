//! Whether bytes are text (file-editor 5).

use std::{
    io::{self, Read as _},
    path::Path,
};

use encoding_rs::WINDOWS_1252;

use crate::encoding;

/// How many bytes of a file are judged.
const JUDGED: usize = 1024;

/// Bytes that a guess at a legacy encoding needs.
const GUESSED: usize = 32;

/// Multi-byte characters that make text with NUL bytes believable.
const CHARACTERS: usize = 4;

/// Whether the first bytes of a file, of which at most 1024 are looked at, are not text.
pub fn is_binary(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(JUDGED)];
    if bytes.is_empty() || is_decodable(bytes) {
        return false;
    }
    let share = |is: fn(u8) -> bool| {
        let count = bytes.iter().filter(|byte| is(**byte)).count();
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
    };
    let (strange, low) = (share(|byte| !is_printable(byte)), share(|byte| byte < 0x7f));
    let is_likely = (strange > 0.3 && low < 0.05) || (strange > 0.8 && low > 0.8);
    is_likely || bytes.contains(&0) || bytes.contains(&0xff)
}

/// The same of a file. What can not be read is no binary file: whoever reads it meets the error. Never waits, whatever
/// the path is.
pub fn is_binary_file(path: &Path) -> bool {
    head(path).is_ok_and(|bytes| is_binary(&bytes))
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(JUDGED);
    gloveport_platform::open_regular(path)?.take(JUDGED as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\t' | 0x0c | 0x08 | 0x20..=0x7e)
}

/// Whether the bytes are text in an encoding that is more than ASCII. The end may be cut within a character.
fn is_decodable(bytes: &[u8]) -> bool {
    if encoding::is_marked_wide(bytes) {
        return true;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() && bytes.len() == JUDGED => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    if let Some(text) = text {
        let characters = text.chars().filter(|character| !character.is_ascii()).count();
        return characters >= CHARACTERS || (characters > 0 && !bytes.contains(&0));
    }
    // Compressed data has control characters; text in a legacy encoding has none.
    let has_controls = bytes.iter().any(|byte| *byte < 0x20 && !is_printable(*byte) && *byte != 0x1b);
    if has_controls {
        return false;
    }
    if bytes.len() < GUESSED {
        return false;
    }
    let guessed = encoding::guess(bytes);
    // Everything is text in this one, so it proves nothing.
    guessed != WINDOWS_1252
        && (0..4).any(|cut| bytes.len() > cut && encoding::lossless(&bytes[..bytes.len() - cut], guessed).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_judged_by_their_kinds() {
        let chinese = "中文".repeat(300);
        let windows_1251 =
            encoding_rs::WINDOWS_1251.encode("Моя семья и я - большая, дружная и весёлая").0.into_owned();
        for (bytes, expected) in [
            (&b""[..], false),
            (b"plain text\n", false),
            (b"\xef\xbb\xbfmarked", false),
            (b"a\0b", true),
            (b"a\xffb", true),
            (b"\x01\x02\x03\x04\x05\x06\x07\x0e", true),
            (b"\xc3\xa9", false),
            (b"\xc3\xa9\0", true),
            ("éàüö\0".as_bytes(), false),
            (&chinese.as_bytes()[..JUDGED], false),
            (chinese.as_bytes(), false),
            (b"\xff\xfea\0\n\0", false),
            (b"\xff\xfea\0\n", false),
            (b"\xfe\xff\0a", false),
            (b"\xff\xfe\0\0a\0\0\0", false),
            (b"a\0b\0", true),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", true),
            (b"caf\xe9\n", false),
            (&windows_1251, false),
        ] {
            assert_eq!(is_binary(bytes), expected, "{:?}", bytes.escape_ascii().to_string());
        }
    }

    #[test]
    fn only_the_first_1024_bytes_count() {
        let mut bytes = vec![b'a'; JUDGED];
        bytes.push(0);
        assert!(!is_binary(&bytes));
        assert!(is_binary(&bytes[1..]));
    }

    #[test]
    fn what_is_no_readable_file_is_not_binary() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        let binary = directory.path().join("binary");
        std::fs::write(&binary, b"\0").unwrap();
        let cases =
            [(fifo.as_path(), false), (directory.path(), false), (Path::new("/nothing"), false), (&binary, true)];
        for (path, expected) in cases {
            assert_eq!(is_binary_file(path), expected, "{}", path.display());
        }
    }
}
