//! How a value is written where it goes out, and how it may be written where it comes back.

use std::{collections::BTreeSet, fmt::Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but what never needs it (RFC 3986, 2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What JavaScript's `encodeURIComponent` encodes.
const COMPONENT: AsciiSet = RESERVED.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// What a part of a path cannot have as it is, and `;`, which servers split parts at.
const IN_PATH: AsciiSet =
    COMPONENT.remove(b'$').remove(b'&').remove(b'+').remove(b',').remove(b'=').remove(b':').remove(b'@');
/// What a value in a query cannot have as it is: `+` is read as a blank there, and `&` ends it.
const IN_QUERY: AsciiSet = COMPONENT.remove(b'$').remove(b',').remove(b':').remove(b'@').remove(b'/').remove(b'?');

/// A value as part of a path.
pub(crate) fn in_path(value: &str) -> String {
    utf8_percent_encode(value, &IN_PATH).to_string()
}

/// A value as part of a query.
pub(crate) fn in_query(value: &str) -> String {
    utf8_percent_encode(value, &IN_QUERY).to_string()
}

/// All spellings that are looked for in answers: as it is, percent-encoded and as in JSON.
pub(crate) fn spellings(value: &str) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::from([value.to_owned()]);
    for set in [&RESERVED, &COMPONENT, &IN_PATH, &IN_QUERY] {
        let encoded = utf8_percent_encode(value, set).to_string();
        // As forms are written.
        all.insert(encoded.replace("%20", "+"));
        all.insert(in_lower_case(&encoded));
        all.insert(encoded);
    }
    all.extend(json(value));
    all.into_iter().map(String::into_bytes).collect()
}

/// The same with `%2f` in place of `%2F`.
fn in_lower_case(encoded: &str) -> String {
    let mut digits = 0;
    let lower = |character: char| {
        digits = if character == '%' { 2 } else { i32::max(digits - 1, -1) };
        if digits >= 0 { character.to_ascii_lowercase() } else { character }
    };
    encoded.chars().map(lower).collect()
}

/// What is between the quotes in JSON, as its writers differ: `/` escaped (PHP), `<`, `>` and `&` escaped (Go), and
/// nothing but ASCII (Python).
fn json(value: &str) -> impl Iterator<Item = String> {
    let quoted = serde_json::Value::from(value).to_string();
    let plain = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted).to_owned();
    let html = plain.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let ascii = in_ascii(&plain);
    [plain.replace('/', "\\/"), ascii.replace('/', "\\/"), plain, html, ascii].into_iter()
}

fn in_ascii(text: &str) -> String {
    let mut ascii = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _written = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_encoded_where_it_must_be_and_only_there() {
        for (value, path, query) in [
            ("ghp_AZaz09-._~", "ghp_AZaz09-._~", "ghp_AZaz09-._~"),
            ("123:AB@c=d", "123:AB@c=d", "123:AB@c%3Dd"),
            ("a/b?c#d%e f", "a%2Fb%3Fc%23d%25e%20f", "a/b?c%23d%25e%20f"),
            ("a&b+c;d", "a&b+c%3Bd", "a%26b%2Bc%3Bd"),
            ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
            ("\u{fc}", "%C3%BC", "%C3%BC"),
        ] {
            assert_eq!((in_path(value), in_query(value)), (path.to_owned(), query.to_owned()), "{value}");
        }
    }

    #[test]
    fn values_are_looked_for_in_all_their_spellings() {
        assert_eq!(spellings("ghp_AZaz09-._~").len(), 1);
        let all = spellings("a/\"<\u{fc} b\n=(");
        for spelling in [
            "a/\"<\u{fc} b\n=(",
            "a%2F%22%3C%C3%BC%20b%0A%3D%28",
            "a%2f%22%3c%c3%bc%20b%0a%3d%28",
            "a%2F%22%3C%C3%BC+b%0A%3D(",
            "a/\\\"<\u{fc} b\\n=(",
            "a\\/\\\"<\u{fc} b\\n=(",
            "a/\\\"\\u003c\u{fc} b\\n=(",
            "a/\\\"<\\u00fc b\\n=(",
            "a\\/\\\"<\\u00fc b\\n=(",
        ] {
            assert!(all.contains(spelling.as_bytes()), "{spelling}");
        }
    }
}
