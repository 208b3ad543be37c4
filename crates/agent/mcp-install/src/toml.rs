//! Entries in TOML.
//!
//! The parser says where things stand. A document that it writes has other line ends and another order of dotted keys; so the
//! text is edited here, but for tables within a line.

mod lines;
mod print;

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Table, TableLike, Value};

use self::lines::{Blank, item_lines, last_member};
use crate::{
    edit::{self, Edits, indentation},
    entry::Entry,
    error::Problem,
};

/// What says how a server is reached that is no program.
const OTHER_TRANSPORTS: [&str; 4] = ["url", "bearer_token_env_var", "http_headers", "env_http_headers"];
/// The table for variables, which is ours even if there are none.
const ENV: &str = "env";

/// The whole document with one entry.
pub(crate) fn document(section: &str, entry: &Entry) -> String {
    print::tables(section, entry, "\n")
}

/// The text with the entry.
pub(crate) fn install(text: &str, section: &str, entry: &Entry) -> Result<String, Problem> {
    with_last_line(text, |text, newline| {
        let document = parse(text)?;
        let append = || format!("{text}{newline}{}", print::tables(section, entry, newline));
        let Some(servers) = document.get(section) else { return Ok(append()) };
        let place = print::path(&[section, &entry.name]);
        let found = table(servers, section)?.get(&entry.name);
        if let Some(found) = found
            && is_installed(table(found, &place)?, entry)
        {
            return Ok(text.to_owned());
        }
        match (servers, found) {
            (Item::Value(servers), Some(Item::Value(Value::InlineTable(found)))) if !found.is_dotted() => {
                in_line(text, servers, |servers| {
                    if let Some(Value::InlineTable(old)) = servers.get_mut(&entry.name) {
                        update_in_line(old, entry);
                    }
                })
            }
            (Item::Value(servers), None) => in_line(text, servers, |servers| {
                let mut new = InlineTable::new();
                update_in_line(&mut new, entry);
                servers.insert(&*entry.name, new.into());
            }),
            (_, None) => Ok(append()),
            (Item::Table(_), Some(Item::Value(found))) => in_line(text, found, |old| update_in_line(old, entry)),
            (_, Some(Item::Table(found))) if !found.is_dotted() => Ok(update(text, section, found, entry, newline)),
            (_, Some(_)) => Err(Problem::Dotted(place)),
        }
    })
}

/// The text without the entry.
pub(crate) fn uninstall(text: &str, section: &str, name: &str) -> Result<String, Problem> {
    with_last_line(text, |text, _| {
        let document = parse(text)?;
        let Some(servers) = document.get(section) else { return Ok(text.to_owned()) };
        match (servers, table(servers, section)?.get(name)) {
            (_, None) => Ok(text.to_owned()),
            (Item::Value(servers), Some(_)) => in_line(text, servers, |servers| {
                servers.remove(name);
            }),
            (servers, Some(_)) => {
                let mut edits = Edits::default();
                if let Some(servers) = servers.as_table_like() {
                    remove(&mut edits, text, servers, name, Blank::Taken);
                }
                Ok(edits.apply(text))
            }
        }
    })
}

/// Edits a text as if its last line ended as the others do.
fn with_last_line(text: &str, edit: impl FnOnce(&str, &str) -> Result<String, Problem>) -> Result<String, Problem> {
    let newline = edit::newline(text);
    if text.ends_with('\n') {
        return edit(text, newline);
    }
    let mut edited = edit(&format!("{text}{newline}"), newline)?;
    if let Some(rest) = edited.strip_suffix(newline) {
        edited.truncate(rest.len());
    }
    Ok(edited)
}

fn parse(text: &str) -> Result<Document<&str>, Problem> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        Problem::Syntax {
            line: 1 + before.matches('\n').count(),
            column: 1 + before.chars().rev().take_while(|character| *character != '\n').count(),
            message: error.message().to_owned(),
        }
    })
}

/// The item as a table.
fn table<'a>(item: &'a Item, place: &str) -> Result<&'a dyn TableLike, Problem> {
    let found = match item {
        Item::Value(Value::Array(_)) => "a list",
        Item::Value(Value::String(_)) => "a text",
        Item::Value(Value::Integer(_) | Value::Float(_)) => "a number",
        Item::Value(Value::Boolean(_)) => "a truth value",
        Item::Value(Value::Datetime(_)) => "a date",
        Item::ArrayOfTables(_) => "a list of tables",
        Item::None | Item::Table(_) | Item::Value(Value::InlineTable(_)) => "nothing",
    };
    let problem = Problem::WrongKind { place: place.to_owned(), found, wanted: "a table" };
    item.as_table_like().ok_or(problem)
}

fn is_installed(table: &dyn TableLike, entry: &Entry) -> bool {
    let env = table.get(ENV);
    is_text(table.get("command"), &entry.command)
        && is_list(table.get("args"), &entry.args)
        && if entry.env.is_empty() { env.is_none() } else { is_env(env, entry) }
        && OTHER_TRANSPORTS.iter().all(|key| !table.contains_key(key))
}

fn is_text(item: Option<&Item>, wanted: &str) -> bool {
    item.and_then(Item::as_str) == Some(wanted)
}

fn is_list(item: Option<&Item>, wanted: &[String]) -> bool {
    item.and_then(Item::as_array).is_some_and(|list| {
        list.len() == wanted.len() && list.iter().zip(wanted).all(|(value, wanted)| value.as_str() == Some(wanted))
    })
}

fn is_env(item: Option<&Item>, entry: &Entry) -> bool {
    item.and_then(Item::as_table_like).is_some_and(|table| {
        table.len() == entry.env.len() && entry.env.iter().all(|(name, value)| is_text(table.get(name), value))
    })
}

/// Changes an entry that has a head of its own, or tables below it that have.
fn update(text: &str, section: &str, table: &Table, entry: &Entry, newline: &str) -> String {
    let mut edits = Edits::default();
    // Members that go behind those which stand there.
    let mut new: Vec<(&str, Value)> = Vec::new();
    for (key, wanted, is_there) in [
        ("command", Value::from(&*entry.command), is_text(table.get("command"), &entry.command)),
        ("args", print::list(&entry.args), is_list(table.get("args"), &entry.args)),
    ] {
        match table.get(key) {
            _ if is_there => {}
            Some(Item::Value(old)) if old.span().is_some() => edits.replace(span(old), wanted.to_string()),
            _ => {
                remove(&mut edits, text, table, key, Blank::Left);
                new.push((key, wanted));
            }
        }
    }
    match table.get(ENV) {
        found if is_env(found, entry) && !entry.env.is_empty() => {}
        Some(Item::Table(old)) if !entry.env.is_empty() && has_head(old) => {
            let first = item_lines(text, table, ENV, Blank::Left).into_iter().next();
            remove(&mut edits, text, table, ENV, Blank::Left);
            let at = first.map_or(text.len(), |lines| lines.start);
            edits.insert(at, print::env_table(section, entry, newline));
        }
        _ => {
            remove(&mut edits, text, table, ENV, Blank::Taken);
            if !entry.env.is_empty() {
                new.push((ENV, print::env(entry).into()));
            }
        }
    }
    for key in OTHER_TRANSPORTS {
        remove(&mut edits, text, table, key, Blank::Left);
    }
    let line = |indentation: &str, key: &str, value: &Value| format!("{indentation}{key} = {value}{newline}");
    if has_head(table) {
        let (last, end) = last_member(text, table);
        let indentation = indentation(text, last);
        for (key, value) in &new {
            edits.insert(end, line(indentation, key, value));
        }
    } else if !new.is_empty() {
        let head = print::path(&[section, &entry.name]);
        edits.insert(text.len(), format!("{newline}[{head}]{newline}"));
        for (key, value) in &new {
            edits.insert(text.len(), line("", key, value));
        }
    }
    edits.apply(text)
}

/// Whether the table has a line for its name.
fn has_head(table: &Table) -> bool {
    !table.is_dotted() && !table.is_implicit() && table.span().is_some()
}

fn remove(edits: &mut Edits, text: &str, table: &dyn TableLike, key: &str, blank: Blank) {
    for lines in item_lines(text, table, key, blank) {
        edits.remove(lines);
    }
}

fn update_in_line(table: &mut InlineTable, entry: &Entry) {
    let mut set = |key: &str, wanted: Value| match table.get_mut(key) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = wanted;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(key, wanted);
        }
    };
    set("command", Value::from(&*entry.command));
    set("args", print::list(&entry.args));
    if entry.env.is_empty() {
        table.remove(ENV);
    } else {
        set(ENV, print::env(entry).into());
    }
    for key in OTHER_TRANSPORTS {
        table.remove(key);
    }
}

/// The text with another table in place of this one, which is written within a line.
fn in_line(text: &str, value: &Value, edit: impl FnOnce(&mut InlineTable)) -> Result<String, Problem> {
    let range = span(value);
    let mut table: Value = text[range.clone()].parse().map_err(|error: toml_edit::TomlError| Problem::Syntax {
        line: 1 + text[..range.start].matches('\n').count(),
        column: 1,
        message: error.message().to_owned(),
    })?;
    if let Value::InlineTable(table) = &mut table {
        edit(table);
    }
    let mut edits = Edits::default();
    edits.replace(range, table.to_string().trim());
    Ok(edits.apply(text))
}

/// Where a value stands. All that the parser read has a place.
fn span(value: &Value) -> Range<usize> {
    value.span().unwrap_or_default()
}
