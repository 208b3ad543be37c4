//! How shells and programs spell the characters of a secret.

use super::{
    pieces::{Piece, pieces},
    units::{Length, Units},
};

/// The literal form of a text.
pub(super) fn literal_form(text: &str) -> Units {
    Units::new(Length::Any, spelled(&pieces(text), literal, &["\r\n", "\n"]))
}

/// The forms of a text that spell it character by character, the literal one first.
pub(super) fn forms(text: &str) -> Vec<Units> {
    let pieces = pieces(text);
    let escaped = [Hexadecimal::Bytes, Hexadecimal::Characters].map(|hexadecimal| {
        let newline =
            ["\r\n", "\n", "\\r\\n", "\\n", "$'\\n'", "\\x0a", "\\x0A", "\\012", "\\u000a", "\\u000A", "\\u{a}"];
        spelled(&pieces, |char| backslashed(char, hexadecimal), &newline)
    });
    let twice = escaped
        .each_ref()
        .map(|rows| rows.iter().map(|row| row.iter().map(|text| within_json(text)).collect()).collect());
    let others = [
        single_quoted(&pieces),
        spelled(&pieces, percent, &["%0D%0A", "%0d%0a", "%0A", "%0a"]),
        spelled(&pieces, markup, &["\r\n", "\n", "&#10;", "&#xa;", "&#xA;"]),
    ];
    let mut forms = vec![literal_form(text)];
    for rows in others.into_iter().chain(escaped).chain(twice) {
        let form = Units::new(Length::Bounded, rows);
        if !forms.iter().any(|known| known.same_as(&form)) {
            forms.push(form);
        }
    }
    forms
}

/// The spellings of each character, given what spells one and what stands for a line break.
fn spelled(pieces: &[Piece], spell: impl Fn(char) -> Vec<String>, newline: &[&str]) -> Vec<Vec<String>> {
    let newline: Vec<String> = newline.iter().copied().map(String::from).collect();
    let rows = pieces.iter().flat_map(|piece| match *piece {
        Piece::Newline => vec![newline.clone()],
        Piece::Quotes(count) => vec![spell('\''); count],
        Piece::Char(char) => vec![spell(char)],
    });
    rows.collect()
}

/// One spelling made of the spellings of parts.
fn each<T: Copy>(parts: &[T], spell: impl Fn(T) -> String) -> String {
    parts.iter().map(|part| spell(*part)).collect::<Vec<_>>().concat()
}

/// The character itself.
fn literal(char: char) -> Vec<String> {
    vec![char.to_string()]
}

/// Within single quotes of a shell: a quote ends them, stands for itself, and opens them again. dash puts a row of
/// quotes into one pair of double quotes, and does not open what would be empty at the end.
fn single_quoted(pieces: &[Piece]) -> Vec<Vec<String>> {
    let last = pieces.len().saturating_sub(1);
    let rows = pieces.iter().enumerate().map(|(index, piece)| match *piece {
        Piece::Newline => vec!["\r\n".to_owned(), "\n".to_owned()],
        Piece::Char(char) => literal(char),
        Piece::Quotes(count) => {
            let quotes = "'".repeat(count);
            let again = if index == last { "" } else { "'" };
            vec![
                "'\\''".repeat(count),
                format!("{}'\"'\"{again}", "'\"'\"'".repeat(count - 1)),
                format!("'\"{quotes}\"{again}"),
            ]
        }
    });
    rows.collect()
}

/// What two hexadecimal digits after `\x` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hexadecimal {
    /// A byte of UTF-8, as in a shell.
    Bytes,
    /// A character up to U+00FF, as in Python.
    Characters,
}

/// With backslashes, as `printf %q`, double quotes, `$'…'`, JSON and the literals of programming languages have it.
/// Who prints decides which characters are escaped and how, so each may stand in any of these spellings.
fn backslashed(char: char, hexadecimal: Hexadecimal) -> Vec<String> {
    let code = u32::from(char);
    if char.is_ascii_alphanumeric() {
        return literal(char);
    }
    // A bare backslash would be the beginning of an escape.
    let mut row = if char == '\\' { vec!["\\\\".to_owned()] } else { literal(char) };
    if char.is_ascii_graphic() || char == ' ' {
        row.push(format!("\\{char}"));
    }
    let name = match char {
        '\u{7}' => "a",
        '\u{8}' => "b",
        '\t' => "t",
        '\u{b}' => "v",
        '\u{c}' => "f",
        '\r' => "r",
        '\u{1b}' => "e",
        _ => "",
    };
    if !name.is_empty() {
        row.push(format!("\\{name}"));
        row.push(format!("$'\\{name}'"));
    }
    if char == '\u{1b}' {
        row.push("\\E".to_owned());
    }
    let mut buffer = [0; 4];
    let bytes = char.encode_utf8(&mut buffer).as_bytes();
    row.push(each(bytes, |byte| format!("\\{byte:03o}")));
    // `\xc3` may be the character `Ã` or the first of two bytes that are `ã`; no text has both.
    if hexadecimal == Hexadecimal::Characters && code <= 0xff {
        row.extend([format!("\\x{code:02x}"), format!("\\x{code:02X}")]);
    } else {
        row.push(each(bytes, |byte| format!("\\x{byte:02x}")));
        row.push(each(bytes, |byte| format!("\\x{byte:02X}")));
    }
    let mut buffer = [0; 2];
    let halves = char.encode_utf16(&mut buffer);
    row.push(each(halves, |half| format!("\\u{half:04x}")));
    row.push(each(halves, |half| format!("\\u{half:04X}")));
    row.extend([format!("\\U{code:08x}"), format!("\\U{code:08X}"), format!("\\u{{{code:x}}}")]);
    row
}

/// A spelling as it stands in a text that is escaped again.
fn within_json(spelling: &str) -> String {
    spelling.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Percent-encoding. Which characters need it differs between programs; a percent sign always does.
fn percent(char: char) -> Vec<String> {
    if char.is_ascii_alphanumeric() {
        return literal(char);
    }
    let mut row = if char == '%' { Vec::new() } else { literal(char) };
    let mut buffer = [0; 4];
    let bytes = char.encode_utf8(&mut buffer).as_bytes();
    row.push(each(bytes, |byte| format!("%{byte:02X}")));
    row.push(each(bytes, |byte| format!("%{byte:02x}")));
    if char == ' ' {
        row.push("+".to_owned());
    }
    row
}

/// The entities of HTML and XML.
fn markup(char: char) -> Vec<String> {
    let entities: &[&str] = match char {
        '&' => &["&amp;", "&#38;", "&#x26;"],
        '<' => &["&lt;", "&#60;", "&#x3c;", "&#x3C;"],
        '>' => &["&gt;", "&#62;", "&#x3e;", "&#x3E;"],
        '"' => &["&quot;", "&#34;", "&#x22;"],
        '\'' => &["&apos;", "&#39;", "&#x27;", "&#039;"],
        _ => &[],
    };
    // A bare ampersand would be the beginning of an entity.
    let bare = if char == '&' { Vec::new() } else { literal(char) };
    bare.into_iter().chain(entities.iter().copied().map(String::from)).collect()
}
