//! Texts of foreign servers, which a person reads in a terminal.

/// Most characters of one.
const LONGEST: usize = 300;

/// A text without characters that move a cursor or turn the direction of a line, and not longer than a few lines.
pub(crate) fn clean(text: &str) -> String {
    let hides = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut letters = text.trim().chars().map(|letter| if hides(letter) { ' ' } else { letter });
    let mut cleaned: String = letters.by_ref().take(LONGEST).collect();
    if letters.next().is_some() {
        cleaned.push('…');
    }
    cleaned
}

/// A text without these secrets.
pub(crate) fn without(text: &str, secrets: &[&str]) -> String {
    let known = secrets.iter().filter(|secret| !secret.is_empty());
    known.fold(text.to_owned(), |text, secret| text.replace(*secret, "**********"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_that_leaves_the_terminal_as_it_is() {
        assert_eq!(clean(" no\x1b[2J\r\nway \u{202e}x é\n"), "no [2J  way  x é");
        assert_eq!(clean(&"x".repeat(10_000)), format!("{}…", "x".repeat(LONGEST)));
        assert_eq!(without("the code abc is used, abc", &["", "abc"]), "the code ********** is used, **********");
    }
}
