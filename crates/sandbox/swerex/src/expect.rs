//! The strings that a client waits for: regular expressions of Python's `re`, in which `.` is any character.

use fancy_regex::{Regex, RegexBuilder};

use crate::exception::Exception;

/// Most expressions of a request.
const MOST: usize = 100;
/// Steps that an expression may take at one place of the text.
const STEPS: usize = 100_000;
/// Bytes before what is new that are looked at again.
const WINDOW: usize = 64 * 1024;

/// What a client waits for.
#[derive(Debug)]
pub(crate) struct Awaited(Vec<Regex>);

/// Something that was waited for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Which.
    pub(crate) index: usize,
    /// Where it begins.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

impl Awaited {
    pub(crate) fn new(patterns: &[String]) -> Result<Self, Exception> {
        if patterns.len() > MOST {
            return Err(Exception::value(format!(
                "`expect` has {} expressions, and {MOST} are possible",
                patterns.len()
            )));
        }
        let regex = |pattern: &String| {
            let mut builder = RegexBuilder::new(&translated(pattern));
            builder.backtrack_limit(STEPS).build().map_err(|error| Exception::pattern(pattern, error))
        };
        Ok(Self(patterns.iter().map(regex).collect::<Result<_, _>>()?))
    }

    /// Whether there is something to wait for.
    pub(crate) fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    /// The first of them in a text of which the beginning was looked at before.
    pub(crate) fn find(&self, text: &str, seen: usize) -> Option<Found> {
        let from = text.floor_char_boundary(seen.saturating_sub(WINDOW));
        let mut first: Option<Found> = None;
        for (index, regex) in self.0.iter().enumerate() {
            // One that takes too many steps is not found.
            let Ok(Some(found)) = regex.find_from_pos(text, from) else { continue };
            if first.as_ref().is_none_or(|first| found.start() < first.start) {
                first = Some(Found { index, start: found.start(), end: found.end() });
            }
        }
        first
    }
}

/// An expression of Python as the library reads it.
fn translated(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len() + 4);
    translated.push_str("(?s)");
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        translated.push(character);
        if character == '\\'
            && let Some(next) = characters.next()
        {
            // The end of the text, which is `\z` here.
            translated.push(if next == 'Z' { 'z' } else { next });
        }
    }
    translated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(patterns: &[&str], text: &str) -> Option<(usize, usize, usize)> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Awaited::new(&patterns).unwrap().find(text, 0).map(|found| (found.index, found.start, found.end))
    }

    #[test]
    fn the_first_in_the_text_is_found_and_of_two_the_first_in_the_list() {
        for (patterns, text, expected) in [
            (&[">>> "][..], "Python\r\n>>> ", Some((0, 8, 12))),
            (&["b", "a"], "xab", Some((1, 1, 2))),
            (&["a", "ab"], "xab", Some((0, 1, 2))),
            (&["a.b"], "a\nb", Some((0, 0, 3))),
            (&["(?<=x)a"], "axa", Some((0, 2, 3))),
            (&[r"(?P<q>')a(?P=q)"], "'a'", Some((0, 0, 3))),
            (&[r"b\Z"], "bb", Some((0, 1, 2))),
            (&["never"], "text", None),
            (&[], "text", None),
            (&["(a+)+$"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", None),
        ] {
            assert_eq!(found(patterns, text), expected, "{patterns:?}");
        }
        let wrong = Awaited::new(&["(".to_owned()]).unwrap_err();
        assert_eq!(wrong.class_path, "re.error");
        assert!(Awaited::new(&vec![String::new(); MOST + 1]).is_err());
    }

    #[test]
    fn what_was_seen_before_is_looked_at_again_where_it_may_belong_to_the_match() {
        let text = format!("{}\u{e9}{}gdb) ", "x".repeat(WINDOW), "y".repeat(WINDOW));
        let awaited = Awaited::new(&["gdb\\) ".to_owned()]).unwrap();
        assert!(awaited.find(&text, text.len() - 3).is_some());
    }
}
