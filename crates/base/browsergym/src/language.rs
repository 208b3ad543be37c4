//! Actions as text: function calls with literals, among anything else (spec/browser.md 4.1).

mod cursor;
mod literal;
mod text;

use std::{borrow::Cow, fmt};

use self::cursor::{Cursor, Stop, begins_name};
pub use self::literal::{Integer, Literal};
use crate::error::ActionError;

/// One function call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function.
    pub name: String,
    /// The arguments without names.
    pub positional: Vec<Literal>,
    /// The arguments with names, in order. A name may come twice.
    pub named: Vec<(String, Literal)>,
}

/// Shows the call as Python: `click('1', button='right')`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let mut separator = "";
        for value in &self.positional {
            write!(f, "{separator}{value}")?;
            separator = ", ";
        }
        for (name, value) in &self.named {
            write!(f, "{separator}{name}={value}")?;
            separator = ", ";
        }
        f.write_str(")")
    }
}

/// The calls in a text. What is no call is skipped.
///
/// Fails where the reference's parser does: at an escape that is none, at a whole number of more than 4300 digits, and
/// at values that are nested too deeply.
///
/// The time is linear in the size of the text. Calls are looked for within what looks like a call and is none, too,
/// which a text can make long and many of; if it makes too much of it, what was read as one is skipped as one.
pub fn parse(text: &str) -> Result<Vec<Call>, ActionError> {
    let text = expand_tabs(text);
    let mut calls = Vec::new();
    let mut at = 0;
    let mut to_read_again = text.len().saturating_mul(16);
    while let Some(start) = next_name(&text, at) {
        let mut cursor = Cursor::new(&text, start);
        let Some(name) = cursor.name() else { break };
        let after_name = cursor.at();
        match cursor.arguments(name) {
            Ok(call) => {
                calls.push(call);
                at = cursor.at();
            }
            Err(Stop::Fails(error)) => return Err(error),
            Err(Stop::NoCall) => {
                // The rest of the name fails likewise.
                at = match to_read_again.checked_sub(cursor.looked_at() - after_name) {
                    Some(left) => {
                        to_read_again = left;
                        after_name
                    }
                    None => cursor.looked_at(),
                };
            }
        }
    }
    Ok(calls)
}

/// Where the next name begins, outside of comments.
fn next_name(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = text.get(at..)?;
        at += rest.find(|c| c == '#' || begins_name(c))?;
        let rest = text.get(at..)?;
        if !rest.starts_with('#') {
            return Some(at);
        }
        at += rest.find('\n')?;
    }
}

/// Puts blanks for tabs, up to the next column that is a multiple of eight, as the reference does, in texts, too.
fn expand_tabs(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let blanks = 8 - column % 8;
                expanded.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\n' | '\r' => {
                expanded.push(c);
                column = 0;
            }
            c => {
                expanded.push(c);
                column += 1;
            }
        }
    }
    Cow::Owned(expanded)
}
