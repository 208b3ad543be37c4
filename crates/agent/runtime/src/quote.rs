//! Words of bash and of Python that stand for a text and for nothing else.

use std::fmt::Write as _;

/// A word that every bash reads as this text, on one line.
///
/// Nothing in it is expanded, at the prompt (history) or later. It has no newlines, single quotes or control
/// characters, so programs that only look at quotes see the same end of the word as bash does.
pub(crate) fn bash_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut word = String::with_capacity(text.len() + 8);
    word.push_str("$'");
    for c in text.chars() {
        match c {
            '\n' => word.push_str("\\n"),
            '\\' => word.push_str("\\\\"),
            // A `!` begins an event of the history for a reader that takes the quotes for ordinary ones.
            '\'' | '!' | '\x01'..='\x1f' | '\x7f' => write!(word, "\\x{:02x}", c as u32).unwrap_or(()),
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// The value of an assignment: in double quotes where that is safe, as the reference writes all of them.
pub(crate) fn bash_value(text: &str) -> String {
    let word = bash_word(text);
    if word.starts_with("$'") && !text.is_empty() { word } else { format!("\"{text}\"") }
}

/// A Python text literal.
pub(crate) fn python_text(text: &str) -> String {
    // Its escapes are those of JSON, but for characters beyond the first plane, which stay as they are.
    serde_json::Value::from(text).to_string()
}

/// Whether this can be the name of a variable in a shell.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_have_one_form() {
        for (text, word, value) in [
            ("", "$''", "\"\""),
            ("abc-1.2/x", "abc-1.2/x", "\"abc-1.2/x\""),
            ("a b", "$'a b'", "$'a b'"),
            ("it's", "$'it\\x27s'", "$'it\\x27s'"),
            ("$HOME `id` !!", "$'$HOME `id` \\x21\\x21'", "$'$HOME `id` \\x21\\x21'"),
            ("a\n\\b\tü", "$'a\\n\\\\b\\x09ü'", "$'a\\n\\\\b\\x09ü'"),
        ] {
            assert_eq!((bash_word(text).as_str(), bash_value(text).as_str()), (word, value), "{text:?}");
        }
    }

    #[test]
    fn names_are_those_of_the_shell() {
        let names = ["A", "_", "a_1", "ÄB", "1A", "", "A-B", "A B", "A=", "A;id"];
        let valid: Vec<_> = names.into_iter().filter(|name| is_variable_name(name)).collect();
        assert_eq!(valid, ["A", "_", "a_1"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn bash_reads_the_text_back(text in "[^\0]{0,40}") {
            let script = format!("X={}; printf %s {}; printf %s \"$X\"", bash_value(&text), bash_word(&text));
            let output = Command::new("bash").args(["--norc", "-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{text}{text}"));
        }
    }
}
