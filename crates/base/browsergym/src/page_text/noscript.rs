//! Reads what stands in `noscript`, which is one text to a browser that runs scripts, and HTML to the reference.

use super::element::Element;
use super::nesting::Nesting;

/// Elements in which tags are text.
const RAW: [&str; 8] = ["script", "style", "textarea", "title", "iframe", "noframes", "noembed", "xmp"];

/// Passes on the tags and texts of a piece of HTML.
pub(super) fn read(html: &str, out: &mut Nesting) {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, markup) = rest.split_at(at);
        out.text(&unescape(text));
        rest = read_markup(markup, out);
        if out.is_full() {
            return;
        }
    }
    out.text(&unescape(rest));
}

/// Reads one tag or comment, or a `<` that is neither; what stands behind it.
fn read_markup<'a>(markup: &'a str, out: &mut Nesting) -> &'a str {
    let behind = markup.strip_prefix('<').unwrap_or_default();
    let first = behind.chars().next();
    if let Some(comment) = behind.strip_prefix("!--") {
        return comment.split_once("-->").map_or("", |(_, after)| after);
    }
    if let Some(end) = behind.strip_prefix('/').filter(|end| end.starts_with(|c: char| c.is_ascii_alphabetic())) {
        let (name, after) = split_name(end);
        out.end(&name);
        return after.split_once('>').map_or("", |(_, after)| after);
    }
    match first {
        Some('!' | '?' | '/') => behind.split_once('>').map_or("", |(_, after)| after),
        Some(c) if c.is_ascii_alphabetic() => {
            let (name, after) = split_name(behind);
            let mut element = Element { name: name.clone(), href: None, title: None, start: None };
            let Some(after) = read_attributes(after, &mut element) else { return "" };
            out.start(element);
            if RAW.contains(&name.as_str()) {
                let end = end_of_raw(after, &name).unwrap_or(after.len());
                let (text, after) = after.split_at(end);
                out.text(text);
                return after;
            }
            after
        }
        _ => {
            out.text("<");
            behind
        }
    }
}

fn split_name(text: &str) -> (String, &str) {
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    (name.to_lowercase(), after)
}

/// Reads to the end of a tag; what stands behind it, if it ends.
fn read_attributes<'a>(text: &'a str, element: &mut Element) -> Option<&'a str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some(after);
        }
        // A `=` at the beginning is part of the name.
        let end = rest.char_indices().skip(1).find(|&(_, c)| c.is_ascii_whitespace() || "=>/".contains(c))?.0;
        let (name, after) = rest.split_at(end);
        let (value, after) = read_value(after)?;
        rest = after;
        let place = match name.to_ascii_lowercase().as_str() {
            "href" => &mut element.href,
            "title" => &mut element.title,
            "start" => &mut element.start,
            _ => continue,
        };
        if place.is_none() {
            *place = Some(unescape(value));
        }
    }
}

/// The value behind an attribute's name, empty if there is none, and what stands behind it.
fn read_value(text: &str) -> Option<(&str, &str)> {
    let Some(value) = text.trim_ascii_start().strip_prefix('=') else { return Some(("", text)) };
    let value = value.trim_ascii_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return quoted.split_once(quote);
        }
    }
    let end = value.find(|c: char| c.is_ascii_whitespace() || c == '>')?;
    Some(value.split_at(end))
}

/// Where the end tag of an element begins in which tags are text.
fn end_of_raw(text: &str, name: &str) -> Option<usize> {
    text.match_indices("</")
        .map(|(at, _)| at)
        .find(|at| text.get(at + 2..at + 2 + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)))
}

/// Replaces character references: numbers, and the names that HTML needs.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, reference) = rest.split_at(at);
        out.push_str(before);
        if let Some((character, after)) = split_reference(reference) {
            out.push(character);
            rest = after;
        } else {
            out.push('&');
            rest = &reference[1..];
        }
    }
    out.push_str(rest);
    out
}

fn split_reference(text: &str) -> Option<(char, &str)> {
    /// Names and numbers are shorter.
    const LONGEST: usize = 10;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let (name, after) = (text.get(1..end)?, text.get(end + 1..)?);
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "rsquo" => '’',
        "lsquo" => '‘',
        "rdquo" => '”',
        "ldquo" => '“',
        "laquo" => '«',
        "raquo" => '»',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|&c| c != '\0')?
        }
    };
    Some((character, after))
}
