//! Pieces of output that do not cut a character in two.

/// A piece of output for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

/// The longest beginning of `bytes` that does not end within a character, as text if all of it is.
pub(super) fn whole_characters(bytes: &[u8]) -> Piece<'_> {
    let (whole, _) = bytes.split_at(bytes.len() - unfinished(bytes));
    std::str::from_utf8(whole).map_or(Piece::Binary(whole), Piece::Text)
}

/// Length of the character at the end whose rest is missing; 0 if there is none.
fn unfinished(bytes: &[u8]) -> usize {
    (1..=bytes.len().min(3))
        .find(|length| {
            let tail = bytes.get(bytes.len() - length..).unwrap_or_default();
            std::str::from_utf8(tail).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut_and_only_its_own_bytes_are_held_back() {
        for (bytes, piece) in [
            (&b""[..], Piece::Text("")),
            (b"abc", Piece::Text("abc")),
            ("aß".as_bytes(), Piece::Text("aß")),
            (b"a\xc3", Piece::Text("a")),
            (b"a\xe2\x82", Piece::Text("a")),
            (b"\xf0\x9f\x98", Piece::Text("")),
            ("😀".as_bytes(), Piece::Text("😀")),
            (b"a\xff", Piece::Binary(b"a\xff")),
            (b"\xffa\xe2\x82", Piece::Binary(b"\xffa")),
            (b"a\x80\x80", Piece::Binary(b"a\x80\x80")),
            (b"a\xf5\x80", Piece::Binary(b"a\xf5\x80")),
        ] {
            assert_eq!(whole_characters(bytes), piece, "{bytes:?}");
        }
    }
}
