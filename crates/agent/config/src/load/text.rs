//! The text of a file, and where its bytes stand in it.

use std::{
    fs::File,
    io::{self, Read as _},
    ops::Range,
    path::{Path, PathBuf},
};

use toml::de::DeTable;

use crate::{
    error::ConfigError,
    node::Node,
    note::{Note, NoteKind, Place},
};

/// Longest file that is read.
const LIMIT: u64 = 4 * 1024 * 1024;

/// Most syntax errors that are told of one file.
const ERRORS: usize = 10;

/// A file that was read.
pub(super) struct SourceFile {
    /// As it was named.
    pub(super) path: PathBuf,
    /// Where each line starts.
    starts: Vec<usize>,
    text: String,
}

/// What came of reading a file.
pub(super) enum Source {
    Missing,
    /// No configuration has this form.
    Other(&'static str),
    NotUtf8,
    Text(SourceFile),
}

impl SourceFile {
    /// Reads a file; `named` is what people call it. Where nobody has named it, one that cannot be a configuration is no
    /// error.
    pub(super) fn read_if_ours(path: &Path, named: &Path) -> Result<Source, ConfigError> {
        match Self::read(path, named) {
            Err(ConfigError::ReadFile { source, .. }) if source.kind() == io::ErrorKind::IsADirectory => {
                Ok(Source::Other("it is a directory"))
            }
            Err(ConfigError::FileTooLarge { .. }) => Ok(Source::Other("it is larger than any configuration")),
            read => read,
        }
    }

    /// Reads a file; `named` is what people call it.
    pub(super) fn read(path: &Path, named: &Path) -> Result<Source, ConfigError> {
        let failed = |source| ConfigError::ReadFile { path: named.to_owned(), source };
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Source::Missing),
            Err(error) => return Err(failed(error)),
        };
        if u64::try_from(bytes.len()).is_ok_and(|length| length > LIMIT) {
            return Err(ConfigError::FileTooLarge { path: named.to_owned(), limit: LIMIT });
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Source::Text(Self::new(named.to_owned(), text)),
            Err(_) => Source::NotUtf8,
        })
    }

    pub(super) fn new(path: PathBuf, text: String) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { path, starts, text }
    }

    /// Reads the text as TOML.
    pub(super) fn parse(&self) -> Result<Node, Vec<Note>> {
        let (table, mut errors) = DeTable::parse_recoverable(&self.text);
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        if errors.is_empty() {
            return Ok(Node::from_toml(table.get_ref(), table.span()));
        }
        // Only the message of an error: its full text quotes the line, which may hold a secret.
        let note = |error: &toml::de::Error| {
            let text = format!(
                "Cannot parse config from toml, toml values have not been applied: {}",
                error.message().trim().replace('\n', ", ")
            );
            Note::warning(NoteKind::InvalidToml, text).at(self.place(error.span()))
        };
        Err(errors.iter().take(ERRORS).map(note).collect())
    }

    /// The names of the tables at the top, as far as the lines of a text that is not TOML tell them.
    pub(super) fn headers(&self) -> Vec<String> {
        let names = self.text.lines().filter_map(|line| {
            let name = line.trim_start().strip_prefix('[')?.trim_start_matches('[').trim_start();
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))?;
            name.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
        });
        names.collect()
    }

    /// Where a piece of the text starts.
    pub(super) fn place(&self, span: Option<Range<usize>>) -> Place {
        let Some(span) = span else { return Place::File { path: self.path.clone(), line: 0, column: 0 } };
        let line = self.starts.partition_point(|start| *start <= span.start);
        let start = line.checked_sub(1).and_then(|before| self.starts.get(before)).copied().unwrap_or(0);
        let column = self.text.get(start..span.start).map_or(0, |before| before.chars().count() + 1);
        Place::File { path: self.path.clone(), line, column }
    }

    /// The line that a piece of the text starts in.
    pub(super) fn line(&self, span: Option<Range<usize>>) -> Place {
        match self.place(span) {
            Place::File { path, line, .. } => Place::File { path, line, column: 0 },
            other => other,
        }
    }
}
