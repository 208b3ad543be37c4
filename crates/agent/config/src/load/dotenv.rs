//! The `.env` file (configuration 1): `NAME=value` lines, as python-dotenv reads them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::Environment;
use crate::note::{Note, NoteKind, Place};

/// Longest file that is read.
const LIMIT: u64 = 1024 * 1024;

/// Finds the file in the directory or the nearest one above, and reads it.
pub(super) fn find(
    directory: &Path,
    environment: &Environment,
    notes: &mut Vec<Note>,
) -> Option<(PathBuf, BTreeMap<String, String>)> {
    let path = directory.ancestors().map(|directory| directory.join(".env")).find(|path| path.is_file())?;
    let mut text = String::new();
    let place = |line| Place::File { path: path.clone(), line, column: 0 };
    let read = File::open(&path).and_then(|file| file.take(LIMIT + 1).read_to_string(&mut text));
    let problem = match read {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length <= LIMIT) => None,
        Ok(_) => Some(format!("it is larger than {LIMIT} bytes")),
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = problem {
        notes.push(Note::warning(NoteKind::DotEnv, format!("the file is not used: {problem}")).at(place(0)));
        return None;
    }
    let (pairs, wrong) = parse(&text, environment);
    let note = |line| Note::warning(NoteKind::DotEnv, "the line cannot be read and is passed over").at(place(line));
    notes.extend(wrong.into_iter().map(note));
    Some((path, pairs))
}

/// The pairs of the file, and the lines that are none.
pub(super) fn parse(text: &str, environment: &Environment) -> (BTreeMap<String, String>, Vec<usize>) {
    let mut reader = Reader { rest: text, line: 1 };
    let mut pairs = BTreeMap::new();
    let mut wrong = Vec::new();
    while reader.skip_blank_lines() {
        let line = reader.line;
        match reader.binding() {
            Some(Some((name, value))) => {
                let value = expand(&value, environment, &pairs);
                pairs.insert(name, value);
            }
            // A comment, or a name without a value.
            Some(None) => {}
            None => {
                wrong.push(line);
                reader.skip_line();
            }
        }
    }
    (pairs, wrong)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn advance(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.advance(end)
    }

    fn skip_blanks(&mut self) {
        self.take_while(|c| c.is_whitespace() && c != '\n' && c != '\r');
    }

    /// Whether there is more.
    fn skip_blank_lines(&mut self) -> bool {
        self.take_while(char::is_whitespace);
        !self.rest.is_empty()
    }

    fn skip_line(&mut self) {
        self.take_while(|c| c != '\n' && c != '\r');
    }

    /// One statement: a pair, nothing, or a mistake.
    #[expect(clippy::option_option, reason = "the outer one is the mistake")]
    fn binding(&mut self) -> Option<Option<(String, String)>> {
        if let Some(after) = self.rest.strip_prefix("export")
            && after.starts_with([' ', '\t'])
        {
            self.advance("export".len());
            self.skip_blanks();
        }
        if self.rest.starts_with('#') {
            self.skip_line();
            return Some(None);
        }
        let name = self.name()?;
        self.skip_blanks();
        let value = if self.rest.starts_with('=') {
            self.advance(1);
            self.skip_blanks();
            Some(self.value()?)
        } else {
            None
        };
        self.skip_blanks();
        if self.rest.starts_with('#') {
            self.skip_line();
        }
        self.skip_blanks();
        let ends = self.rest.is_empty() || self.rest.starts_with(['\n', '\r']);
        ends.then(|| value.map(|value| (name, value)))
    }

    fn name(&mut self) -> Option<String> {
        if self.rest.starts_with('\'') {
            return self.quoted('\'').filter(|name| !name.is_empty());
        }
        let name = self.take_while(|c| !c.is_whitespace() && c != '=' && c != '#');
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn value(&mut self) -> Option<String> {
        if let Some(quote @ ('\'' | '"')) = self.rest.chars().next() {
            return self.quoted(quote);
        }
        let line = self.take_while(|c| c != '\n' && c != '\r');
        let is_comment = |(at, c): &(usize, char)| {
            *c == '#' && line.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace))
        };
        let end = line.char_indices().find(is_comment).map_or(line.len(), |(at, _)| at);
        Some(line.get(..end).unwrap_or(line).trim_end().to_owned())
    }

    /// A text in quotation marks, which may have several lines.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let inside = self.rest.get(quote.len_utf8()..)?;
        let mut text = String::new();
        let mut chars = inside.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.advance(quote.len_utf8() + at + quote.len_utf8());
                return Some(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let next = chars.next().map(|(_, next)| next)?;
            match unescaped(next, quote) {
                Some(c) => text.push(c),
                None => text.extend(['\\', next]),
            }
        }
        None
    }
}

/// What an escape stands for; in single quotation marks only the mark and the backslash can be escaped.
fn unescaped(c: char, quote: char) -> Option<char> {
    match c {
        '\\' | '\'' => Some(c),
        _ if quote == '\'' => None,
        '"' => Some('"'),
        'a' => Some('\x07'),
        'b' => Some('\x08'),
        'f' => Some('\x0c'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0b'),
        _ => None,
    }
}

/// Replaces `${NAME}` and `${NAME:-default}`. The environment comes before earlier lines of the file.
fn expand(text: &str, environment: &Environment, earlier: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            expanded.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inside.split_once(':') {
            None => (inside, Some("")),
            Some((name, default)) => (name, default.strip_prefix('-')),
        };
        // A form that is not replaced.
        let Some(default) = default else {
            expanded.push_str("${");
            rest = after;
            continue;
        };
        expanded.push_str(environment.get(name).or_else(|| earlier.get(name)).map_or(default, String::as_str));
        rest = behind;
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_python_dotenv_does() {
        let environment: Environment = [("HOME", "/home/me"), ("SET", "outside")].into_iter().collect();
        for (text, expected) in [
            ("A=1\nB = 2 \n", vec![("A", "1"), ("B", "2")]),
            ("# comment\n\nexport A=1 # comment\nB=a#b\nC= # c", vec![("A", "1"), ("B", "a#b"), ("C", "# c")]),
            (r#"A="x\ny \"q\" \z" # c"#, vec![("A", "x\ny \"q\" \\z")]),
            (r"A='x\ny \'q\' \\'", vec![("A", r"x\ny 'q' \")]),
            ("A=\"one\ntwo\"\nB=3", vec![("A", "one\ntwo"), ("B", "3")]),
            ("'A b'=1\r\nB=2\r\n", vec![("A b", "1"), ("B", "2")]),
            ("A\nB=1", vec![("B", "1")]),
            ("export\tA=1\nexportB=2", vec![("A", "1"), ("exportB", "2")]),
            ("A='x'#y\nB=#x\nC = 'x'  \n  D=b\\nc", vec![("A", "x"), ("B", "#x"), ("C", "x"), ("D", "b\\nc")]),
            ("A=\nB=1", vec![("A", ""), ("B", "1")]),
            ("A=1\nA=2", vec![("A", "2")]),
            (
                "SET=in\nA=${SET}-${HOME}-${B}-${B:-c}-${X:y}-$HOME-${",
                vec![("A", "outside-/home/me--c-${X:y}-$HOME-${"), ("SET", "in")],
            ),
            ("A=[1, 'x']", vec![("A", "[1, 'x']")]),
        ] {
            let expected = expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(parse(text, &environment), (expected, Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_passed_over_and_told_of() {
        let (pairs, wrong) = parse("A=1\n=2\nB='open\nC=\"x\" y\nD=4", &Environment::default());
        let expected = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("D".to_owned(), "4".to_owned())]);
        assert_eq!((pairs, wrong), (expected, vec![2, 3, 4]));
    }
}
