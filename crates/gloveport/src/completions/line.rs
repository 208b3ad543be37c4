//! The words of an unfinished command line.

/// What stands before the cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The words behind the program that are complete.
    pub(super) words: Vec<String>,
    /// The word at the cursor, without quotes.
    pub(super) current: String,
    /// How many bytes of it the shell does not replace.
    pub(super) fixed: usize,
    /// Whether the word is the file of a redirection.
    pub(super) is_redirected: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

impl Line {
    /// The words as a shell gives them that replaces whole words.
    pub(super) fn of_words(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut words: Vec<String> = words.into_iter().skip(1).map(Into::into).collect();
        let current = words.pop().unwrap_or_default();
        Self { words, current, ..Self::default() }
    }

    /// Splits a line of bash, which begins a new word to replace at each of these characters. Nothing in it is expanded.
    pub(super) fn split(line: &str, breaks: &str) -> Self {
        let mut split = Self::default();
        let (mut quote, mut has_begun) = (Quote::None, false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Quote::None, '\\') => split.current.extend(chars.next()),
                (Quote::None, '\'' | '"') => {
                    quote = if c == '"' { Quote::Double } else { Quote::Single };
                    split.fixed = split.current.len();
                }
                (Quote::None, ' ' | '\t' | '\n') => {
                    split.end_word(has_begun);
                    has_begun = false;
                    continue;
                }
                (Quote::None, '<' | '>') => {
                    // The number in `2>` is no word.
                    let is_number = split.current.bytes().all(|byte| byte.is_ascii_digit());
                    split.end_word(has_begun && !is_number);
                    split.is_redirected = true;
                    has_begun = false;
                    continue;
                }
                (Quote::Double, '\\') => match chars.next_if(|next| matches!(next, '$' | '`' | '"' | '\\')) {
                    Some(next) => split.current.push(next),
                    None => split.current.push(c),
                },
                (Quote::Single, '\'') | (Quote::Double, '"') => {
                    quote = Quote::None;
                    split.fixed = 0;
                }
                _ => {
                    split.current.push(c);
                    if quote == Quote::None && breaks.contains(c) {
                        split.fixed = split.current.len();
                    }
                }
            }
            has_begun = true;
        }
        let is_assignment = |word: &&String| {
            let name = word.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let before = split.words.iter().take_while(is_assignment).count();
        // The program is no argument of itself.
        split.words.drain(..split.words.len().min(before + 1));
        split
    }

    fn end_word(&mut self, has_begun: bool) {
        let word = std::mem::take(&mut self.current);
        self.fixed = 0;
        if has_begun && !std::mem::take(&mut self.is_redirected) {
            self.words.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_bash_does_and_nothing_is_expanded() {
        for (text, words, current, fixed) in [
            ("gloveport ", &[][..], "", 0),
            ("gloveport ses", &[], "ses", 0),
            ("A=1 B='x y' gloveport session exec  my", &["session", "exec"], "my", 0),
            ("gloveport run 'a b' \"c \\\" \\x\" d\\ e $(id", &["run", "a b", "c \" \\x", "d e"], "$(id", 0),
            ("gloveport run --runtime=lo", &["run"], "--runtime=lo", 10),
            ("gloveport session cp my:a", &["session", "cp"], "my:a", 3),
            ("gloveport session cp \"my:a", &["session", "cp"], "my:a", 0),
            ("gloveport session exec 'm", &["session", "exec"], "m", 0),
            ("gloveport ls 2>/dev/null -", &["ls"], "-", 0),
            ("gloveport run ''", &["run"], "", 0),
            ("gloveport run '' ", &["run", ""], "", 0),
        ] {
            let expected = Line {
                words: words.iter().map(|word| (*word).to_owned()).collect(),
                current: current.to_owned(),
                fixed,
                is_redirected: false,
            };
            assert_eq!(Line::split(text, "=:"), expected, "{text}");
        }
        assert!(Line::split("gloveport ls > fi", "=:").is_redirected);
    }
}
