//! Reads one section of the file into its struct.

use super::text::SourceFile;
use crate::{
    key::Section,
    keys,
    kind::Kind,
    node::{Entry, Node, NodeValue},
    note::{Note, NoteKind, Place},
    suggest::did_you_mean,
};

/// A section as it was read.
pub(super) struct ReadSection<S> {
    pub(super) section: S,
    /// Keys that were set, and where.
    pub(super) set: Vec<(&'static str, Place)>,
    /// What is wrong. The severity is for the caller to raise.
    pub(super) problems: Vec<Note>,
    /// What is to be known, but not wrong with the section.
    pub(super) remarks: Vec<Note>,
}

/// How a key that does not exist is told of.
pub(super) type Unknown = fn(key: &str, section: &str) -> String;

/// Reads the members of a table over `section`. `named` is what people call the section.
pub(super) fn read<S: Section>(
    section: S,
    named: &str,
    entries: &[Entry],
    file: &SourceFile,
    unknown: Unknown,
) -> ReadSection<S> {
    let mut read = ReadSection { section, set: Vec::new(), problems: Vec::new(), remarks: Vec::new() };
    for entry in entries {
        let Some(key) = S::KEYS.iter().find(|key| key.name == entry.key) else {
            let note = Note::warning(NoteKind::UnknownKey, unknown(&entry.key, named));
            read.problems.push(note.at(file.place(entry.key_span.clone())).suggest(suggestion::<S>(&entry.key)));
            continue;
        };
        let Some(setting) = read.section.setting_mut(key.name) else { continue };
        if let Err(mismatch) = setting.read(&entry.node) {
            let message = format!("`{}{}` in [{named}]: {}", key.name, mismatch.within, mismatch.message);
            let span = mismatch.span.or_else(|| entry.node.span.clone());
            let note = Note::warning(NoteKind::WrongValue, message).at(file.place(span));
            read.problems.push(note.about(named, key.name));
            continue;
        }
        read.set.push((key.name, file.line(entry.key_span.clone())));
        if let Some(instead) = key.deprecated {
            let message = format!("`{}` in [{named}] is deprecated", key.name);
            let note = Note::hint(NoteKind::Deprecated, message).at(file.place(entry.key_span.clone()));
            read.remarks.push(note.suggest(Some(instead.to_owned())));
        }
        read.remarks.extend(unknown_members(key.kind, key.name, &entry.node, file));
    }
    read
}

/// The text for a key that a section does not have.
pub(super) fn unknown_key(key: &str, section: &str) -> String {
    format!("unknown key `{key}` in [{section}]")
}

/// A near key of the section, or the section that has the key.
fn suggestion<S: Section>(written: &str) -> Option<String> {
    did_you_mean(written, S::KEYS.iter().map(|key| key.name))
        .or_else(|| keys::section_of(written).map(|section| format!("it is a key of [{section}]")))
        .or_else(|| {
            let section = keys::file_sections().find(|section| *section == written)?;
            Some(format!("it is a section of its own, [{section}]"))
        })
}

/// Members of server entries that have no meaning; they are passed over, as the reference does.
fn unknown_members(kind: Kind, key: &str, servers: &Node, file: &SourceFile) -> Vec<Note> {
    let known: &[&str] = match kind {
        Kind::SseServers => &["url", "api_key"],
        Kind::ShttpServers => &["url", "api_key", "timeout"],
        Kind::StdioServers => &["name", "command", "args", "env"],
        _ => return Vec::new(),
    };
    let NodeValue::List(elements) = &servers.value else { return Vec::new() };
    let entries = elements
        .iter()
        .enumerate()
        .flat_map(|(at, element)| element.table().unwrap_or_default().iter().map(move |entry| (at, entry)));
    let remark = |(at, entry): (usize, &Entry)| {
        let message = format!("unknown member `{}` in `{key}[{at}]` of [mcp]; it is ignored", entry.key);
        let remark = Note::warning(NoteKind::UnknownKey, message).at(file.place(entry.key_span.clone()));
        remark.suggest(did_you_mean(&entry.key, known.iter().copied()))
    };
    entries.filter(|(_, entry)| !known.contains(&entry.key.as_str())).map(remark).collect()
}
