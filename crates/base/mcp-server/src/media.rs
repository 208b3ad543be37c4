//! What a file's content is, by its beginning.

/// Bytes of the beginning that tell it.
const HEAD: usize = 8192;

/// The beginning of a file's bytes that tells what it is.
pub(crate) fn head(bytes: &[u8]) -> &[u8] {
    bytes.get(..HEAD).unwrap_or(bytes)
}

/// The type of a picture that models can look at.
pub(crate) fn picture(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The type of a file's content.
pub(crate) fn type_of(bytes: &[u8]) -> &'static str {
    let head = head(bytes);
    picture(head).unwrap_or(if is_text(head) { "text/plain" } else { "application/octet-stream" })
}

/// Whether bytes are text, of which the last character may be cut.
pub(crate) fn is_text(head: &[u8]) -> bool {
    if head.contains(&0) {
        return false;
    }
    match std::str::from_utf8(head) {
        Ok(_) => true,
        // The beginning of a character at the end.
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_beginning() {
        assert_eq!(type_of(b"\x89PNG\r\n\x1a\n..."), "image/png");
        assert_eq!(type_of("é".as_bytes()), "text/plain");
        assert_eq!(type_of(&"é".as_bytes()[..1]), "text/plain");
        assert_eq!(type_of(b"a\0b"), "application/octet-stream");
        assert_eq!(type_of(b"\xff\xfea"), "application/octet-stream");
    }
}
