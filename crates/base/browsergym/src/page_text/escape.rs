//! Backslashes before what Markdown would read as its own.

use crate::repr::is_space;

/// Escapes a link's target or title.
pub(super) fn link(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '[' | ']' | '(' | ')') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Escapes a text: backslashes before punctuation, and what would make the beginning of a line a list or a rule.
pub(super) fn text(text: &str) -> String {
    items(&backslashes(text))
}

fn backslashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        out.push(c);
        if c == '\\' && characters.peek().is_some_and(|next| "\\`*_{}[]()#+-.!".contains(*next)) {
            out.push('\\');
        }
    }
    out
}

/// Escapes `1.`, `+` and `-` where a line begins.
fn items(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        // Blank lines before the first word belong to the beginning of its line.
        let (blank, line) = rest.split_at(rest.find(|c| !is_space(c)).unwrap_or(rest.len()));
        out.push_str(blank);
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let (number, mark) = line.split_at(digits);
        let follows = |accepted: fn(char) -> bool| mark.chars().nth(1).is_some_and(accepted);
        let is_item = match mark.chars().next() {
            Some('.') => digits > 0 && follows(is_space),
            Some('+') => digits == 0 && follows(is_space),
            Some('-') => digits == 0 && follows(|c| is_space(c) || c == '-'),
            _ => false,
        };
        if is_item {
            out.push_str(number);
            out.push('\\');
            rest = mark;
        } else {
            rest = line;
        }
        let Some(end) = rest.find('\n') else { break };
        let (line, after) = rest.split_at(end + 1);
        out.push_str(line);
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_would_read_gets_a_backslash() {
        for (given, expected) in [
            ("a\\*b \\\\ \\n", "a\\\\*b \\\\\\ \\n"),
            ("\n1. a\n\n  22. b 3. c\n4.", "\n1\\. a\n\n  22\\. b 3. c\n4."),
            (" - a\n--\n-b\n+ c\n+d", " \\- a\n\\--\n-b\n\\+ c\n+d"),
            ("", ""),
            ("\n\n", "\n\n"),
        ] {
            assert_eq!(text(given), expected);
        }
        assert_eq!(link("a[b](c)\\"), "a\\[b\\]\\(c\\)\\\\");
    }
}
