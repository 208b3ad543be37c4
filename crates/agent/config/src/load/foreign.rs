//! Tells the file of another program from ours. `config.toml` is a common name: Cargo, Hugo, containerd and many others
//! have files that are called so, and a command in their directories must not fail, or believe their words.

use crate::{
    keys::{self, FREE_SECTIONS, SECTIONS, SectionKeys},
    node::Entry,
    suggest::nearest,
};

/// Names that are told of a foreign file.
const TOLD: usize = 3;

/// What a file of another program has at the top, for people; `None` if it is ours. Ours is what has a section of ours with
/// a key of it, or nearly, and what has nothing that we do not know.
pub(super) fn names(root: &[Entry]) -> Option<String> {
    let mut unknown = root.iter().filter(|entry| !is_section(&entry.key)).peekable();
    unknown.peek()?;
    if root.iter().any(|entry| is_ours(entry, root)) {
        return None;
    }
    let names = unknown.take(TOLD).map(|entry| match entry.node.table() {
        Some(_) => format!("[{}]", entry.key),
        None => format!("`{}`", entry.key),
    });
    Some(names.collect::<Vec<_>>().join(", "))
}

/// Whether these are the tables of another program.
pub(super) fn are_headers(names: &[String]) -> bool {
    !names.is_empty() && names.iter().all(|name| nearest(name, keys::file_sections()).is_none())
}

fn is_ours(entry: &Entry, root: &[Entry]) -> bool {
    let Some(entries) = entry.node.table() else {
        // A key of ours in the wrong place; other programs have some of the same names.
        return root.iter().all(|entry| entry.node.table().is_none()) && keys::section_of(&entry.key).is_some();
    };
    if FREE_SECTIONS.iter().any(|(name, _)| *name == entry.key) {
        return true;
    }
    let lower = entry.key.to_lowercase();
    let named = |name: &str| SECTIONS.iter().find(|section| section.in_file && section.name == name);
    let has_key = |section: &SectionKeys| entries.iter().any(|entry| is_key(section, entry));
    match named(&lower) {
        Some(section) => entries.is_empty() || has_key(section),
        None => nearest(&entry.key, keys::file_sections())
            .is_some_and(|near| entries.is_empty() || named(near).is_none_or(has_key)),
    }
}

/// Whether it is a key of the section, or of a group in it, or nearly one.
fn is_key(section: &SectionKeys, entry: &Entry) -> bool {
    let known = |written: &str| nearest(written, section.keys.iter().map(|key| key.name)).is_some();
    let in_group = |entry: &Entry| {
        section.groups && entry.node.table().is_some_and(|group| group.iter().any(|entry| known(&entry.key)))
    };
    known(&entry.key) || in_group(entry)
}

fn is_section(name: &str) -> bool {
    keys::file_sections().any(|section| section == name.to_lowercase())
}
