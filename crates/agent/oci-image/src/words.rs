//! Words of others, as messages show them.

/// A text on one line, and not longer than so many characters.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let mut short = String::new();
    for letter in text.chars().take(most) {
        match letter {
            // These harm nobody, and names have them.
            '\'' | '"' => short.push(letter),
            _ => short.extend(letter.escape_debug()),
        }
    }
    if text.chars().nth(most).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_stays_on_its_line() {
        assert_eq!(shown("it's \"ä\"", 20), "it's \"ä\"");
        assert_eq!(shown("a\nb\u{1b}[31m\u{2028}\\", 20), "a\\nb\\u{1b}[31m\\u{2028}\\\\");
        assert_eq!(shown("abc", 2), "ab…");
    }
}
