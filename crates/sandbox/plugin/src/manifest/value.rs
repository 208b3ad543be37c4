//! Values of a TOML file as fields read them, and the notes about those that cannot be read.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Problem, duration,
    suggest::{did_you_mean, one_of},
};

use crate::text::printable;

/// Bytes of the file.
pub(super) type Span = Range<usize>;

/// What is wrong with a file, and where its bytes stand in it.
pub(super) struct Problems<'a> {
    text: &'a str,
    list: Vec<(usize, Problem)>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, list: Vec::new() }
    }

    /// Notes a problem at these bytes.
    pub(super) fn add(&mut self, span: &Span, message: impl Into<String>, suggestion: Option<String>) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).map_or(0, |rest| rest.chars().count()) + 1;
        let message = printable(&message.into());
        self.list.push((span.start, Problem { line, column, message, suggestion }));
    }

    /// All of them in the order of the file, the first ones if there are many.
    pub(super) fn finish(mut self, most: usize) -> Vec<Problem> {
        self.list.sort_by_key(|(at, _)| *at);
        self.list.into_iter().map(|(_, problem)| problem).take(most).collect()
    }
}

/// A section of a manifest.
pub(super) struct Section<'t> {
    name: &'static str,
    table: &'t DeTable<'t>,
    /// Where it begins.
    pub(super) span: Span,
}

/// A value and its place.
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

impl<'t> Section<'t> {
    /// The file itself.
    pub(super) fn root(table: &'t DeTable<'t>) -> Self {
        Self { name: "", table, span: 0..0 }
    }

    /// What a key is called in a message.
    pub(super) fn full(&self, key: &str) -> String {
        if self.name.is_empty() { format!("`{key}`") } else { format!("`{key}` in [{}]", self.name) }
    }

    /// Notes every key that is not one of these.
    pub(super) fn only(&self, known: &[&str], problems: &mut Problems<'_>) {
        for (key, value) in self.table {
            if known.contains(&key.get_ref().as_ref()) {
                continue;
            }
            let is_section = matches!(value.get_ref(), DeValue::Table(_)) && self.name.is_empty();
            let what = if is_section {
                format!("unknown section [{}]", key.get_ref())
            } else {
                format!("unknown key {}", self.full(key.get_ref()))
            };
            let near = did_you_mean(key.get_ref(), known.iter().copied());
            problems.add(
                &key.span(),
                what,
                near.or_else(|| Some(format!("there is {}", one_of(known).replace(" or ", " and ")))),
            );
        }
    }

    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// Where a key stands.
    pub(super) fn key_span(&self, key: &str) -> Option<Span> {
        self.table.keys().find(|name| name.get_ref() == key).map(Spanned::span)
    }

    /// Notes that a key is missing.
    pub(super) fn missing(&self, key: &str, suggestion: &str, problems: &mut Problems<'_>) {
        problems.add(&self.span, format!("{} is missing", self.full(key)), Some(suggestion.to_owned()));
    }

    /// A section below the root.
    pub(super) fn section(&self, name: &'static str, problems: &mut Problems<'_>) -> Option<Self> {
        let value = self.get(name)?;
        if let DeValue::Table(table) = value.get_ref() {
            // The header is what people look for, and not the first key below it.
            return Some(Self { name, table, span: self.key_span(name).unwrap_or(value.span()) });
        }
        problems.add(
            &value.span(),
            format!("`{name}` must be a section, not {}", what(value.get_ref())),
            Some(format!("write [{name}]")),
        );
        None
    }

    fn wrong(&self, key: &str, expected: &str, value: &Spanned<DeValue<'_>>, problems: &mut Problems<'_>) {
        problems.add(
            &value.span(),
            format!("{} must be {expected}, not {}", self.full(key), what(value.get_ref())),
            None,
        );
    }

    /// A text.
    pub(super) fn text(&self, key: &str, problems: &mut Problems<'_>) -> Option<At<String>> {
        let value = self.get(key)?;
        let Some(text) = plain_text(value) else {
            self.wrong(key, "a text", value, problems);
            return None;
        };
        Some(At { value: text, span: value.span() })
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &str, problems: &mut Problems<'_>) -> Option<Vec<At<String>>> {
        let value = self.get(key)?;
        let DeValue::Array(elements) = value.get_ref() else {
            self.wrong(key, "a list of texts", value, problems);
            return None;
        };
        let mut texts = Vec::new();
        for element in elements {
            match plain_text(element) {
                Some(text) => texts.push(At { value: text, span: element.span() }),
                None => self.wrong(key, "a list of texts", element, problems),
            }
        }
        (texts.len() == elements.len()).then_some(texts)
    }

    /// A text for a shell, or a list of words.
    pub(super) fn command(&self, key: &str, problems: &mut Problems<'_>) -> Option<At<Vec<String>>> {
        let value = self.get(key)?;
        let words = match value.get_ref() {
            DeValue::String(text) => vec!["sh".to_owned(), "-c".to_owned(), text.to_string()],
            DeValue::Array(_) => self.texts(key, problems)?.into_iter().map(|word| word.value).collect(),
            _ => {
                self.wrong(key, "a list of words or a text for `sh -c`", value, problems);
                return None;
            }
        };
        let program = if matches!(value.get_ref(), DeValue::String(_)) { words.get(2) } else { words.first() };
        if program.is_none_or(|word| word.trim().is_empty()) {
            problems.add(&value.span(), format!("{} names no program", self.full(key)), None);
            return None;
        }
        if words.iter().any(|word| word.contains('\0')) {
            problems.add(&value.span(), format!("{} has a NUL byte in it", self.full(key)), None);
            return None;
        }
        Some(At { value: words, span: value.span() })
    }

    /// A time.
    pub(super) fn time(&self, key: &str, problems: &mut Problems<'_>) -> Option<At<Duration>> {
        let value = self.get(key)?;
        let read = match value.get_ref() {
            DeValue::String(text) => duration::from_text(text),
            DeValue::Integer(_) | DeValue::Float(_) => number(value.get_ref()).and_then(duration::from_seconds),
            _ => {
                self.wrong(key, duration::EXPECTED, value, problems);
                return None;
            }
        };
        if read.is_none() {
            let message = format!("{} must be {}, above zero and at most 7 days", self.full(key), duration::EXPECTED);
            problems.add(&value.span(), message, None);
        }
        Some(At { value: read?, span: value.span() })
    }

    /// A text or a whole number, as a text.
    pub(super) fn word_or_number(&self, key: &str, expected: &str, problems: &mut Problems<'_>) -> Option<At<String>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(At { value: text.to_string(), span: value.span() }),
            DeValue::Integer(integer) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix());
                Some(At {
                    value: number.map_or_else(|_| integer.as_str().to_owned(), |number| number.to_string()),
                    span: value.span(),
                })
            }
            _ => {
                self.wrong(key, expected, value, problems);
                None
            }
        }
    }

    /// One of these words.
    pub(super) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)], problems: &mut Problems<'_>) -> Option<T> {
        let text = self.text(key, problems)?;
        let found = choices.iter().find(|(word, _)| *word == text.value).map(|(_, choice)| *choice);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("{} must be {}, not `{}`", self.full(key), one_of(&words), text.value);
            problems.add(&text.span, message, did_you_mean(&text.value, words));
        }
        found
    }

    /// Variables: the keys of this section, all of them texts.
    pub(super) fn variables(&self, problems: &mut Problems<'_>) -> BTreeMap<String, At<String>> {
        let mut variables = BTreeMap::new();
        for (key, value) in self.table {
            let name = key.get_ref();
            let first = |c: char| c.is_ascii_alphabetic() || c == '_';
            if !name.starts_with(first) || !name.chars().all(|c| first(c) || c.is_ascii_digit()) {
                let message = format!("`{name}` in [{}] is not a valid name for a variable", self.name);
                problems.add(&key.span(), message, Some("names have letters, digits and `_`".to_owned()));
            } else if let Some(text) = plain_text(value) {
                if text.contains('\0') {
                    problems.add(&value.span(), format!("{} has a NUL byte in it", self.full(name)), None);
                }
                variables.insert(name.to_string(), At { value: text, span: value.span() });
            } else {
                self.wrong(name, "a text", value, problems);
            }
        }
        variables
    }

    /// The table of variables at a key.
    pub(super) fn table(&self, key: &str, name: &'static str, problems: &mut Problems<'_>) -> Option<Self> {
        let value = self.get(key)?;
        if let DeValue::Table(table) = value.get_ref() {
            return Some(Self { name, table, span: value.span() });
        }
        self.wrong(key, "a table of variables", value, problems);
        None
    }
}

fn plain_text(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}

/// What a value is, for people.
fn what(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
