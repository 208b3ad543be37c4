//! Applies the file (configuration 3).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Loader, foreign,
    section::{ReadSection, read, unknown_key},
    text::{Source, SourceFile},
};
use crate::{
    error::ConfigError,
    free_form::FreeForm,
    key::Section,
    keys,
    model::{BASE_AGENT, BASE_LLM, LlmConfig},
    node::{Entry, NodeValue, table_json},
    note::{Note, NoteKind, Place, Severity},
    origin::Origin,
    suggest::did_you_mean,
};

/// The file that is looked for if none is named.
const DEFAULT_FILE: &str = "config.toml";

/// What is told of a section with a mistake that must not be passed over.
const SANDBOX_ERROR: &str = "Error in [sandbox] section in config.toml";
const SECURITY_ERROR: &str = "Error in [security] section in config.toml";
const MCP_ERROR: &str = "Error in MCP sections in config.toml";
const KUBERNETES_ERROR: &str = "Invalid kubernetes configuration";

/// A section with named groups.
struct GroupSource<'a, S> {
    /// Name of the section and of its base group.
    base_name: &'static str,
    file: &'a SourceFile,
    /// Sets what follows from other keys; tells whether it did.
    complete: fn(&mut S) -> bool,
}

impl Loader<'_> {
    /// The file, as people call it, and where it is.
    pub(super) fn path(&self) -> (PathBuf, PathBuf) {
        let named = self.options.file.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
        let path = self.options.current_directory.join(&named);
        (named, path)
    }

    /// Applies the file, if there is one.
    pub(super) fn file(&mut self) -> Result<(), ConfigError> {
        let (named, path) = self.path();
        let Some(file) = self.source(&path, &named)? else { return Ok(()) };
        // What is named is meant.
        let may_be_foreign = self.options.file.is_none();
        match file.parse() {
            Ok(root) => {
                let root = root.table().unwrap_or_default();
                match foreign::names(root).filter(|_| may_be_foreign) {
                    Some(others) => self.foreign(&named, &format!("it has {others}, and no setting of OpenHands")),
                    None => self.sections(root, &file),
                }
            }
            Err(_) if may_be_foreign && foreign::are_headers(&file.headers()) => {
                self.foreign(&named, "it is not TOML, and has no section of OpenHands");
            }
            Err(notes) => self.notes.extend(notes),
        }
        Ok(())
    }

    /// Reads a file; tells why there is nothing to apply.
    fn source(&mut self, path: &Path, named: &Path) -> Result<Option<SourceFile>, ConfigError> {
        let place = Place::File { path: named.to_owned(), line: 0, column: 0 };
        let source = match self.options.file {
            Some(_) => SourceFile::read(path, named)?,
            None => SourceFile::read_if_ours(path, named)?,
        };
        match source {
            Source::Text(file) => return Ok(Some(file)),
            Source::Other(why) => self.foreign(named, why),
            Source::Missing => {
                let severity = if self.options.file.is_some() { Severity::Warning } else { Severity::Hint };
                let message = "file not found. Toml values have not been applied.";
                self.note(Note::new(severity, NoteKind::MissingFile, message).at(place));
            }
            Source::NotUtf8 => {
                let message = "Cannot parse config from toml, toml values have not been applied: it is not UTF-8";
                self.note(Note::warning(NoteKind::InvalidToml, message).at(place));
            }
        }
        Ok(None)
    }

    /// A file that happens to have the name of ours.
    fn foreign(&mut self, named: &Path, why: &str) {
        let message = format!("this is the file of another program, and passed over: {why}");
        let place = Place::File { path: named.to_owned(), line: 0, column: 0 };
        let note = Note::hint(NoteKind::ForeignFile, message).at(place);
        self.note(note.suggest(Some("`--config-file` names another file".to_owned())));
    }

    fn sections(&mut self, root: &[Entry], file: &SourceFile) {
        if !root.iter().any(|entry| entry.key == "core") {
            let message =
                format!("No [core] section found in {}. Core settings will use defaults.", file.path.display());
            self.note(Note::warning(NoteKind::NoCore, message).at(file.place(None)));
        }
        for entry in root {
            match entry.key.as_str() {
                "core" => self.core(entry, file),
                "sandbox" => self.strict(entry, file, SANDBOX_ERROR, |config| &mut config.sandbox),
                "security" => self.strict(entry, file, SECURITY_ERROR, |config| &mut config.security),
                "kubernetes" => self.strict(entry, file, KUBERNETES_ERROR, |config| &mut config.kubernetes),
                "mcp" => {
                    self.strict(entry, file, MCP_ERROR, |config| &mut config.mcp);
                    self.duplicate_servers(entry, file);
                }
                "agent" => {
                    let groups = self.groups(entry, &GroupSource { base_name: BASE_AGENT, file, complete: |_| false });
                    self.config.agents = groups;
                }
                "llm" => {
                    let groups =
                        self.groups(entry, &GroupSource { base_name: BASE_LLM, file, complete: LlmConfig::complete });
                    self.config.llms = groups;
                }
                "extended" => {
                    let table = self.free(entry, file);
                    self.config.extended = table.unwrap_or_default();
                }
                "condenser" => {
                    let table = self.unused(entry, file);
                    self.config.condenser = table.unwrap_or_default();
                }
                "model_routing" => {
                    let table = self.unused(entry, file);
                    self.config.model_routing = table.unwrap_or_default();
                }
                _ => self.unknown_section(entry, file),
            }
        }
    }

    fn core(&mut self, entry: &Entry, file: &SourceFile) {
        let Some(entries) = entry.node.table() else {
            let note = Note::warning(NoteKind::WrongValue, "`core` must be a section; it is not applied");
            return self.note(note.at(file.place(entry.key_span.clone())));
        };
        let unknown = |key: &str, _: &str| format!("Unknown config key \"{key}\" in [core] section");
        let ReadSection { section, set, problems, remarks } = read(self.config.clone(), "core", entries, file, unknown);
        self.config = section;
        for (key, place) in set {
            self.origins.set("core", key, Origin::Set(place));
        }
        self.notes.extend(problems);
        self.notes.extend(remarks);
    }

    /// A section in which a mistake is fatal.
    fn strict<S: Section + Clone>(
        &mut self,
        entry: &Entry,
        file: &SourceFile,
        message: &str,
        of: fn(&mut crate::model::Config) -> &mut S,
    ) {
        let Some(entries) = entry.node.table() else {
            let text = format!("{message}: `{}` must be a section, not {}", S::NAME, entry.node.what());
            return self.note(Note::error(NoteKind::WrongValue, text).at(file.place(entry.key_span.clone())));
        };
        let fresh = of(&mut self.defaults).clone();
        let ReadSection { section, set, problems, remarks } = read(fresh, S::NAME, entries, file, unknown_key);
        self.notes.extend(problems.into_iter().map(|note| Note {
            severity: Severity::Error,
            message: format!("{message}: {}", note.message),
            ..note
        }));
        self.notes.extend(remarks);
        for (key, place) in set {
            self.origins.set(S::NAME, key, Origin::Set(place));
        }
        *of(&mut self.config) = section;
    }

    /// Two servers with the same URL; only those with server-sent events are looked at (configuration 6).
    fn duplicate_servers(&mut self, entry: &Entry, file: &SourceFile) {
        let servers = &self.config.mcp.sse_servers;
        let duplicate = |(at, server): &(usize, &crate::mcp::McpSseServer)| {
            servers.iter().take(*at).any(|earlier| earlier.url == server.url)
        };
        let Some((at, _)) = servers.iter().enumerate().find(duplicate) else { return };
        let list = entry.node.table().unwrap_or_default().iter().find(|entry| entry.key == "sse_servers");
        let span = match list.map(|list| &list.node.value) {
            Some(NodeValue::List(elements)) => elements.get(at).and_then(|element| element.span.clone()),
            _ => None,
        };
        let message = format!("{MCP_ERROR}: {}", crate::mcp::McpError::DuplicateUrl);
        self.note(Note::error(NoteKind::WrongValue, message).at(file.place(span)));
    }

    /// A section with named groups. What is wrong costs the base or the group, not the rest.
    fn groups<S: Section + Clone + Default>(
        &mut self,
        entry: &Entry,
        source: &GroupSource<'_, S>,
    ) -> BTreeMap<String, S> {
        let GroupSource { base_name, file, .. } = *source;
        let Some(entries) = entry.node.table() else {
            let message = format!("`{base_name}` must be a section; it is not applied");
            self.note(Note::warning(NoteKind::Skipped, message).at(file.place(entry.key_span.clone())));
            return BTreeMap::from([(base_name.to_owned(), S::default())]);
        };
        let (groups, own): (Vec<Entry>, Vec<Entry>) =
            entries.iter().cloned().partition(|entry| entry.node.table().is_some());
        let base = self.group(S::default(), base_name, &own, entry, source).unwrap_or_default();
        let mut all = BTreeMap::from([(base_name.to_owned(), base.clone())]);
        let inherited = self.origins.clone();
        for group in &groups {
            if S::KEYS.iter().any(|key| key.name == group.key) {
                let message = format!("`{}` in [{base_name}] is a table, so it is read as a named group", group.key);
                let note = Note::hint(NoteKind::Conflict, message).at(file.place(group.key_span.clone()));
                self.note(note.suggest(Some(format!("as a key it can only stand in [{base_name}.NAME]"))));
            }
            let named = full_name(base_name, &group.key);
            for key in S::KEYS {
                self.origins.set(&named, key.name, inherited.of(base_name, key.name).clone());
            }
            let entries = group.node.table().unwrap_or_default();
            match self.group(base.clone(), &named, entries, group, source) {
                Some(read) => drop(all.insert(group.key.clone(), read)),
                None if named == base_name => self.origins = inherited.clone(),
                None => self.origins.forget(&named),
            }
        }
        all
    }

    /// Reads one group over the one that it inherits from; nothing if something is wrong.
    fn group<S: Section>(
        &mut self,
        from: S,
        named: &str,
        entries: &[Entry],
        header: &Entry,
        source: &GroupSource<'_, S>,
    ) -> Option<S> {
        let ReadSection { mut section, set, problems, remarks } = read(from, named, entries, source.file, unknown_key);
        self.notes.extend(remarks);
        if !problems.is_empty() {
            self.notes.extend(problems);
            let message = if named == source.base_name {
                format!("Cannot parse [{named}] config from toml. Continuing with defaults.")
            } else {
                format!("Cannot parse [{named}] config from toml. This section will be skipped.")
            };
            self.note(Note::warning(NoteKind::Skipped, message).at(source.file.place(header.key_span.clone())));
            return None;
        }
        for (key, place) in set {
            self.origins.set(named, key, Origin::Set(place));
        }
        if (source.complete)(&mut section) {
            self.derived(named, "api_version", "`model`");
        }
        Some(section)
    }

    fn free(&mut self, entry: &Entry, file: &SourceFile) -> Option<FreeForm> {
        let Some(entries) = entry.node.table() else {
            let message = format!("`{}` must be a section; it is not applied", entry.key);
            self.note(Note::warning(NoteKind::Skipped, message).at(file.place(entry.key_span.clone())));
            return None;
        };
        self.origins.set(&entry.key, "", Origin::Set(file.line(entry.key_span.clone())));
        Some(table_json(entries).into())
    }

    fn unused(&mut self, entry: &Entry, file: &SourceFile) -> Option<FreeForm> {
        let table = self.free(entry, file)?;
        let message = format!("[{}] is accepted, but not used by gloveport", entry.key);
        self.note(Note::hint(NoteKind::NotUsed, message).at(file.place(entry.key_span.clone())));
        Some(table)
    }

    fn unknown_section(&mut self, entry: &Entry, file: &SourceFile) {
        let lower = entry.key.to_lowercase();
        let (message, suggestion) = match keys::file_sections().find(|section| *section == lower) {
            Some(section) => {
                let message = format!("[{}] is not applied: sections have lower-case names", entry.key);
                (message, Some(format!("write [{section}]")))
            }
            None => (format!("Unknown section [{}] in {}", entry.key, file.path.display()), meant(entry)),
        };
        let note = Note::warning(NoteKind::UnknownSection, message).at(file.place(entry.key_span.clone()));
        self.note(note.suggest(suggestion));
    }

    /// The model group of this name in the user's own file (configuration 1).
    pub(super) fn llm_of_user(&mut self, name: &str) -> Result<Option<LlmConfig>, ConfigError> {
        let Some(home) = &self.options.home else { return Ok(None) };
        let path = home.join(".openhands").join(DEFAULT_FILE);
        if path == self.path().1 {
            return Ok(None);
        }
        let Source::Text(file) = SourceFile::read(&path, &path)? else { return Ok(None) };
        let root = match file.parse() {
            Ok(root) => root,
            Err(notes) => {
                self.notes.extend(notes);
                return Ok(None);
            }
        };
        let member = |entries: &[Entry], name: &str| entries.iter().find(|entry| entry.key == name).cloned();
        let llm = root.table().and_then(|root| member(root, "llm"));
        let Some(group) = llm.and_then(|llm| member(llm.node.table()?, name)) else { return Ok(None) };
        let Some(entries) = group.node.table() else { return Ok(None) };
        let named = format!("llm.{name}");
        let ReadSection { mut section, set, problems, .. } =
            read(LlmConfig::default(), &named, entries, &file, unknown_key);
        self.notes.extend(problems.into_iter().map(|note| Note { severity: Severity::Error, ..note }));
        for (key, place) in set {
            self.origins.set(&named, key, Origin::Set(place));
        }
        if section.complete() {
            self.derived(&named, "api_version", "`model`");
        }
        Ok(Some(section))
    }
}

/// Name of a group's section.
pub(super) fn full_name(base: &str, group: &str) -> String {
    if group == base { base.to_owned() } else { format!("{base}.{group}") }
}

/// What an unknown section may be meant to be.
fn meant(entry: &Entry) -> Option<String> {
    let key = || {
        let section = keys::section_of(&entry.key).filter(|_| entry.node.table().is_none())?;
        Some(format!("it is a key of [{section}]"))
    };
    did_you_mean(&entry.key, keys::file_sections()).or_else(key)
}
