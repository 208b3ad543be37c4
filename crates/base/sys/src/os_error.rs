//! Errors of the system as the wire shows them: `[Errno 2] No such file or directory: '/a'`.

use std::{ffi::OsStr, fmt::Write as _, io, os::unix::ffi::OsStrExt as _};

/// The error with its number and the path it is about, as Python prints an `OSError`.
pub fn described(error: &io::Error, path: impl AsRef<OsStr>) -> String {
    format!("{}: {}", numbered(error), quoted(path.as_ref()))
}

/// The error with its number, without a path; the plain text of an error that has no number.
pub fn numbered(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
            format!("[Errno {number}] {text}")
        }
        None => text,
    }
}

/// A path in quotes as Python prints it; bytes that are not UTF-8 are shown as `\udc80` to `\udcff`.
pub fn quoted(path: impl AsRef<OsStr>) -> String {
    let bytes = path.as_ref().as_bytes();
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push(quote);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                _ if character == quote => text.extend(['\\', quote]),
                _ if character.is_ascii_control() => {
                    // Writing into a string cannot fail.
                    let _ = write!(text, "\\x{:02x}", u32::from(character));
                }
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\udc{byte:02x}");
        }
    }
    text.push(quote);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_as_python_shows_it() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(described(&missing, "/w/nodir/x"), "[Errno 2] No such file or directory: '/w/nodir/x'");
        assert_eq!(numbered(&io::Error::from_raw_os_error(13)), "[Errno 13] Permission denied");
        assert_eq!(numbered(&io::Error::other("no reason")), "no reason");
    }

    #[test]
    fn a_path_is_quoted_as_python_quotes_it() {
        for (path, expected) in [
            (&b"/a b"[..], "'/a b'"),
            (b"/it's", "\"/it's\""),
            (b"/'\"", "'/\\'\"'"),
            (b"/\n\x01\\", "'/\\n\\x01\\\\'"),
            (b"/\xff", "'/\\udcff'"),
            ("/ü".as_bytes(), "'/ü'"),
        ] {
            assert_eq!(quoted(OsStr::from_bytes(path)), expected);
        }
    }
}
