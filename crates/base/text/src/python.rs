//! What Python means by white space, lines and text mode.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// Whether `str.strip` removes it: Unicode white space, and four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// `str.strip`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.rstrip`.
pub fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `str.splitlines` joined by LF: every separator of lines becomes LF, and the last one goes.
pub fn joined_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    let separator =
        |character| matches!(character, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    while let Some(at) = rest.find(separator) {
        joined.push_str(&rest[..at]);
        let length = match &rest.as_bytes()[at..] {
            [b'\r', b'\n', ..] => 2,
            _ => rest[at..].chars().next().map_or(1, char::len_utf8),
        };
        rest = &rest[at + length..];
        if !rest.is_empty() {
            joined.push('\n');
        }
    }
    joined.push_str(rest);
    joined
}

/// Text as text mode reads it: CRLF and lone CR become LF.
pub fn universal_newlines(text: &str) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\r', rest.as_bytes()) {
        normal.push_str(&rest[..at]);
        normal.push('\n');
        let length = if rest.as_bytes().get(at + 1) == Some(&b'\n') { 2 } else { 1 };
        rest = &rest[at + length..];
    }
    normal.push_str(rest);
    Cow::Owned(normal)
}

/// The same of text that is owned.
pub fn into_universal_newlines(text: String) -> String {
    match universal_newlines(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(normal) => normal,
    }
}

/// How many LF there are.
pub fn newlines(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// How many lines a file has; a last one without LF counts.
pub fn lines(text: &str) -> usize {
    newlines(text) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Where the line with this 0-based number begins; the end if there are fewer.
pub fn line_start(text: &str, line: usize) -> usize {
    match line.checked_sub(1) {
        None => 0,
        Some(before) => memchr_iter(b'\n', text.as_bytes()).nth(before).map_or(text.len(), |at| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_at_every_separator_and_joined_again() {
        for (text, expected) in [
            ("", ""),
            ("a", "a"),
            ("a\n", "a"),
            ("a\n\n", "a\n"),
            ("\n", ""),
            ("a\r\nb\rc\n", "a\nb\nc"),
            ("a\x0bb\x0cc\x1cd\x1de\x1ef\u{85}g\u{2028}h\u{2029}i", "a\nb\nc\nd\ne\nf\ng\nh\ni"),
            ("a\x1fb", "a\x1fb"),
            ("é\u{2028}", "é"),
        ] {
            assert_eq!(joined_lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn text_mode_knows_lf_only() {
        for (text, expected) in
            [("", ""), ("a\nb", "a\nb"), ("a\r\nb\rc\r\r\n\r", "a\nb\nc\n\n\n"), ("é\r", "é\n"), ("\n\r", "\n\n")]
        {
            assert_eq!(universal_newlines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_counted_as_text_mode_counts_them() {
        for (text, count) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
            assert_eq!(lines(text), count, "{text:?}");
        }
        assert_eq!([0, 1, 2, 3].map(|line| line_start("a\nbc\nd", line)), [0, 2, 5, 6]);
    }

    #[test]
    fn separators_of_ascii_are_white_space() {
        assert_eq!(strip("\u{1c}\u{1f} \u{3000}\u{85}a b\u{a0}\n"), "a b");
        assert_eq!(strip("\u{200b}a"), "\u{200b}a");
    }
}
