//! Splits a text into words as a POSIX shell does, without expansions.

use super::McpServerEntryError;

/// The words of the text; quotes and backslashes group, nothing is expanded.
pub(super) fn split(text: &str) -> Result<Vec<String>, McpServerEntryError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(McpServerEntryError::OpenQuote)? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next().ok_or(McpServerEntryError::OpenEscape)?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), McpServerEntryError> {
    loop {
        match chars.next().ok_or(McpServerEntryError::OpenQuote)? {
            '"' => return Ok(()),
            '\\' => match chars.next().ok_or(McpServerEntryError::OpenEscape)? {
                c @ ('"' | '\\') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}
