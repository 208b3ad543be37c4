//! Entries as they are written in a new place.

use std::fmt::Write as _;

use toml_edit::{Array, InlineTable, Key, Value};

use crate::entry::Entry;

/// A name with dots, quoted where it must be.
pub(super) fn path(keys: &[&str]) -> String {
    keys.iter().map(|key| Key::new(*key).to_string()).collect::<Vec<_>>().join(".")
}

/// An entry as tables with names.
pub(super) fn tables(section: &str, entry: &Entry, newline: &str) -> String {
    let mut tables = format!(
        "[{}]{newline}command = {}{newline}args = {}{newline}",
        path(&[section, &entry.name]),
        Value::from(&*entry.command),
        list(&entry.args)
    );
    if !entry.env.is_empty() {
        tables.push_str(newline);
        tables.push_str(&env_table(section, entry, newline));
    }
    tables
}

/// The table of the variables.
pub(super) fn env_table(section: &str, entry: &Entry, newline: &str) -> String {
    let mut table = format!("[{}]{newline}", path(&[section, &entry.name, super::ENV]));
    for (name, value) in &entry.env {
        // Writing into a string cannot fail.
        let _ = write!(table, "{} = {}{newline}", path(&[name]), Value::from(&**value));
    }
    table
}

/// The variables within a line.
pub(super) fn env(entry: &Entry) -> InlineTable {
    entry.env.iter().map(|(name, value)| (Key::new(name), Value::from(&**value))).collect()
}

pub(super) fn list(args: &[String]) -> Value {
    args.iter().map(String::as_str).collect::<Array>().into()
}
