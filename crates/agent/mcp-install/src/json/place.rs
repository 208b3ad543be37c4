//! Members put into objects of a text, and taken out again: each undoes the other.

use std::ops::Range;

use jsonc_parser::ast::Object;
use serde_json::Value;

use super::{
    print::Style,
    scan::{Between, between, next_token},
};
use crate::edit::{Edits, indentation, starts_line};

/// The text with another value in place of the one that stands there.
pub(super) fn replace(text: &str, range: Range<usize>, style: &Style<'_>, value: &Value) -> String {
    let has_lines = text[range.clone()].contains(['\n', '\r']);
    let new = if has_lines { style.on_lines(value, indentation(text, range.start)) } else { style.in_line(value) };
    let mut edits = Edits::default();
    edits.replace(range, new);
    edits.apply(text)
}

/// The text with a new last member in the object.
pub(super) fn insert(text: &str, object: &Object<'_>, style: &Style<'_>, key: &str, value: &Value) -> String {
    let mut edits = Edits::default();
    match object.properties.last() {
        Some(last) => insert_behind(&mut edits, text, object, last.range.start..last.range.end, style, key, value),
        None => insert_first(&mut edits, text, object, style, key, value),
    }
    edits.apply(text)
}

fn insert_first(edits: &mut Edits, text: &str, object: &Object<'_>, style: &Style<'_>, key: &str, value: &Value) {
    let inner = inside(object);
    let outer_indentation = indentation(text, object.range.start);
    let on_line =
        |indentation: &str| format!("{}{indentation}{}", style.newline, style.member_on_lines(key, value, indentation));
    let inner_indentation = format!("{outer_indentation}{}", style.unit);
    match between(text, inner.start).filter(|(kind, _)| kind.is_comment()).last() {
        None if style.one_line => edits.replace(inner, style.member_in_line(key, value)),
        None => edits.replace(inner, format!("{}{}{outer_indentation}", on_line(&inner_indentation), style.newline)),
        Some((_, comment)) if text[inner].contains(['\n', '\r']) => {
            let own = starts_line(text, comment.start).then(|| indentation(text, comment.start).to_owned());
            edits.insert(comment.end, on_line(&own.unwrap_or(inner_indentation)));
        }
        Some((_, comment)) => edits.insert(comment.end, format!(" {}", style.member_in_line(key, value))),
    }
}

fn insert_behind(
    edits: &mut Edits,
    text: &str,
    object: &Object<'_>,
    last: Range<usize>,
    style: &Style<'_>,
    key: &str,
    value: &Value,
) {
    let comma = comma_behind(text, last.end);
    // Comments in the line of the last member are about it.
    let mut place = comma.map_or(last.end, |comma| comma + 1);
    let mut needs_line = false;
    for (kind, range) in between(text, place).take_while(|(kind, _)| *kind != Between::Newline) {
        if kind.is_comment() {
            place = range.end;
            needs_line = kind == Between::LineComment;
        }
    }
    let on_line =
        |indentation: &str| format!("{}{indentation}{}", style.newline, style.member_on_lines(key, value, indentation));
    let member = if starts_line(text, last.start) {
        on_line(indentation(text, last.start))
    } else if needs_line {
        on_line(&format!("{}{}", indentation(text, object.range.start), style.unit))
    } else {
        format!("{}{}", style.gap, style.member_in_line(key, value))
    };
    if comma.is_none() {
        edits.insert(last.end, ",");
    }
    edits.insert(place, member);
    if comma.is_some() {
        edits.insert(place, ",");
    }
}

/// The text without a member of the object.
pub(super) fn remove(text: &str, object: &Object<'_>, index: usize) -> String {
    let mut edits = Edits::default();
    let members = &object.properties;
    let Some(member) = members.get(index) else { return text.to_owned() };
    let (start, end) = (member.range.start, member.range.end);
    let comma = comma_behind(text, end);
    let behind = comma.map_or(end, |comma| comma + 1);
    let previous = index.checked_sub(1).and_then(|index| members.get(index)).map(|previous| previous.range.end);
    let is_last = index + 1 == members.len();
    let has_comment = |at| between(text, at).any(|(kind, _)| kind.is_comment());
    let before = match previous {
        Some(previous) => comma_behind(text, previous).map_or(previous, |comma| comma + 1),
        None => inside(object).start,
    };

    if members.len() == 1 && !has_comment(before) && !has_comment(end) && !has_comment(behind) {
        edits.remove(inside(object));
    } else if !is_last && !between(text, behind).any(|(kind, _)| kind == Between::Newline) {
        // What follows in the line takes its place.
        let gap = between(text, behind).take_while(|(kind, _)| *kind == Between::Blank).last();
        edits.remove(start..gap.map_or(behind, |(_, range)| range.end));
    } else {
        let behind = end_of_remarks(text, behind);
        edits.remove(start_of_gap(text, before, start, behind)..behind);
        if let (true, None, Some(previous)) = (is_last, comma, previous)
            && let Some(comma) = comma_behind(text, previous)
        {
            edits.remove(comma..comma + 1);
        }
    }
    edits.apply(text)
}

/// The place of the comma behind a member.
fn comma_behind(text: &str, end: usize) -> Option<usize> {
    let at = next_token(text, end);
    text[at..].starts_with(',').then_some(at)
}

/// The place behind comments that are about what stands before them, as nothing else follows in the line.
fn end_of_remarks(text: &str, at: usize) -> usize {
    let mut end = at;
    for (kind, range) in between(text, at) {
        match kind {
            Between::Blank => {}
            Between::Newline => return end,
            Between::LineComment | Between::BlockComment => end = range.end,
        }
    }
    at
}

/// Where what goes with a member begins: its indentation, and the end of the line above it.
fn start_of_gap(text: &str, from: usize, start: usize, behind: usize) -> usize {
    let (mut content, mut content_needs_line, mut newline) = (from, false, None);
    for (kind, range) in between(text, from).take_while(|(_, range)| range.end <= start) {
        match kind {
            Between::Blank => {}
            Between::Newline => newline = Some(range.start),
            Between::LineComment | Between::BlockComment => {
                (content, content_needs_line, newline) = (range.end, kind == Between::LineComment, None);
            }
        }
    }
    let gap = newline.unwrap_or(content);
    let line_ends = || {
        let next = between(text, behind).find(|(kind, _)| *kind != Between::Blank);
        next.is_some_and(|(kind, _)| kind == Between::Newline)
    };
    // The comment above would go on into what is behind the member.
    if content_needs_line && gap == content && !line_ends() { start } else { gap }
}

fn inside(object: &Object<'_>) -> Range<usize> {
    object.range.start + 1..object.range.end.saturating_sub(1)
}
