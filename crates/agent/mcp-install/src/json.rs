//! Entries in JSON with comments.
//!
//! The parser says where things stand. Its own way to edit gives objects on one line several, and takes the white space out
//! of empty ones; so the text is edited here.

mod place;
mod print;
mod scan;

use std::{borrow::Cow, ops::Range};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, ObjectProp, Value},
    common::Ranged as _,
    parse_to_ast,
};

use self::{
    place::{insert, remove, replace},
    print::Style,
};
use crate::{edit, error::Problem};

/// Members of an object in their order.
pub(crate) type Members = serde_json::Map<String, serde_json::Value>;

/// What says how a server is reached that is no program, or that it is one of these.
const OTHER_TRANSPORTS: [&str; 4] = ["url", "serverUrl", "headers", "type"];
/// More edits than an entry can need: one for each member that is ours, and for each that must go.
const EDITS: usize = 32;
/// The member for variables, which is ours even if there are none.
const ENV: &str = "env";

/// JSON with comments, as the clients write and read it, and no more of what is called JSON elsewhere.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The whole document with one entry.
pub(crate) fn document(section: &str, name: &str, members: &Members) -> String {
    let mut document = Style::default().on_lines(&nested(section, nested(name, members.clone())).into(), "");
    document.push('\n');
    document
}

/// The text with the entry.
pub(crate) fn install(text: &str, section: &str, name: &str, members: &Members) -> Result<String, Problem> {
    let mut text = Cow::Borrowed(text);
    // Every edit moves what is behind it, so one is made at a time.
    for _ in 0..EDITS {
        match next_edit(&text, section, name, members)? {
            Some(edited) => text = Cow::Owned(edited),
            None => break,
        }
    }
    Ok(text.into_owned())
}

/// The text with the first thing done that brings the entry nearer to what it must be; nothing if it is that.
fn next_edit(text: &str, section: &str, name: &str, members: &Members) -> Result<Option<String>, Problem> {
    let readable = scan::readable(text)?;
    let Some(root) = parse(&readable)? else { return Ok(Some(append(text, &document(section, name, members)))) };
    let root = object(&root, "the top level".to_owned())?;
    let style = Style::of(text, root);
    let Some((_, servers)) = find(root, section, "")? else {
        return Ok(Some(insert(text, root, &style, section, &nested(name, members.clone()).into())));
    };
    let servers = object(&servers.value, section.to_owned())?;
    let Some((_, entry)) = find(servers, name, section)? else {
        return Ok(Some(insert(text, servers, &style, name, &members.clone().into())));
    };
    let place = format!("{section}.{name}");
    let entry = object(&entry.value, place.clone())?;
    next_edit_of_entry(text, entry, &style, &place, members)
}

/// The text without the entry.
pub(crate) fn uninstall(text: &str, section: &str, name: &str) -> Result<String, Problem> {
    let readable = scan::readable(text)?;
    let Some(root) = parse(&readable)? else { return Ok(text.to_owned()) };
    let root = object(&root, "the top level".to_owned())?;
    let Some((_, servers)) = find(root, section, "")? else { return Ok(text.to_owned()) };
    let servers = object(&servers.value, section.to_owned())?;
    match find(servers, name, section)? {
        Some((index, _)) => Ok(remove(text, servers, index)),
        None => Ok(text.to_owned()),
    }
}

fn next_edit_of_entry(
    text: &str,
    entry: &Object<'_>,
    style: &Style<'_>,
    place: &str,
    members: &Members,
) -> Result<Option<String>, Problem> {
    for (key, wanted) in members {
        match find(entry, key, place)? {
            None => return Ok(Some(insert(text, entry, style, key, wanted))),
            Some((_, found)) if !is_same(&found.value, wanted) => {
                return Ok(Some(replace(text, range(found.value.range()), style, wanted)));
            }
            Some(_) => {}
        }
    }
    for key in OTHER_TRANSPORTS.into_iter().chain([ENV]).filter(|key| !members.contains_key(*key)) {
        match find(entry, key, place)? {
            // Clients that need no type allow the right one.
            Some((_, found)) if key == "type" && is_same(&found.value, &"stdio".into()) => {}
            Some((index, _)) => return Ok(Some(remove(text, entry, index))),
            None => {}
        }
    }
    Ok(None)
}

fn parse(text: &str) -> Result<Option<Value<'_>>, Problem> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    Ok(parsed
        .map_err(|error| Problem::Syntax {
            line: error.line_display(),
            column: error.column_display(),
            message: lower(&error.kind().to_string()),
        })?
        .value)
}

/// The sentence as a part of one.
fn lower(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// The value as an object.
fn object<'a, 'b>(value: &'a Value<'b>, place: String) -> Result<&'a Object<'b>, Problem> {
    let found = match value {
        Value::Object(object) => return Ok(object),
        Value::Array(_) => "a list",
        Value::StringLit(_) => "a text",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "a truth value",
        Value::NullKeyword(_) => "null",
    };
    Err(Problem::WrongKind { place, found, wanted: "an object" })
}

/// The only member with this key, and its index.
fn find<'a, 'b>(
    object: &'a Object<'b>,
    key: &str,
    place: &str,
) -> Result<Option<(usize, &'a ObjectProp<'b>)>, Problem> {
    let mut found = object.properties.iter().enumerate().filter(|(_, member)| member.name.as_str() == key);
    let first = found.next();
    match found.next() {
        Some(_) => Err(Problem::Twice(if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") })),
        None => Ok(first),
    }
}

fn is_same(value: &Value<'_>, wanted: &serde_json::Value) -> bool {
    match (value, wanted) {
        (Value::StringLit(text), serde_json::Value::String(wanted)) => *text.value == **wanted,
        (Value::Array(list), serde_json::Value::Array(wanted)) => {
            list.elements.len() == wanted.len()
                && list.elements.iter().zip(wanted).all(|(value, wanted)| is_same(value, wanted))
        }
        (Value::Object(object), serde_json::Value::Object(wanted)) => {
            let is_wanted = |member: &ObjectProp<'_>| {
                wanted.get(member.name.as_str()).is_some_and(|wanted| is_same(&member.value, wanted))
            };
            object.properties.len() == wanted.len()
                && object.properties.iter().all(is_wanted)
                && wanted.keys().all(|key| object.get(key).is_some())
        }
        _ => false,
    }
}

/// Behind a text that has nothing but comments.
fn append(text: &str, document: &str) -> String {
    let newline = edit::newline(text);
    let gap = if text.ends_with('\n') { "" } else { newline };
    format!("{text}{gap}{}", document.replace('\n', newline))
}

fn nested(key: &str, members: Members) -> Members {
    Members::from_iter([(key.to_owned(), members.into())])
}

fn range(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}
