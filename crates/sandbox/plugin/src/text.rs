//! Texts of others, made fit to be shown.

/// A text that does nothing to a terminal: control characters are written as their escapes.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' { printable.extend(c.escape_default()) } else { printable.push(c) }
    }
    printable
}
