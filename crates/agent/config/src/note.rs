//! What the reader of a configuration should know about it.

use std::{fmt, path::PathBuf};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Hint,
    /// Something is not as its author may think.
    Warning,
    /// The configuration cannot be used.
    Error,
}

impl Severity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// There is no file.
    MissingFile,
    /// The file is that of another program; nothing of it is used.
    ForeignFile,
    /// The file is not TOML; nothing of it is used.
    InvalidToml,
    /// The file has no `[core]`.
    NoCore,
    /// No such section.
    UnknownSection,
    /// No such key.
    UnknownKey,
    /// A value of a wrong type, or against a rule.
    WrongValue,
    /// A section or group is not used because of what is wrong in it.
    Skipped,
    /// A key or value that should not be used any more.
    Deprecated,
    /// Accepted, but not used by gloveport.
    NotUsed,
    /// A variable that cannot be what its author meant.
    Variable,
    /// A variable whose name is nearly that of a setting.
    UnknownVariable,
    /// The `.env` file, or a line of it, cannot be read.
    DotEnv,
    /// Settings that do not fit together, or to this machine.
    Conflict,
}

impl NoteKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingFile => "missing_file",
            Self::ForeignFile => "foreign_file",
            Self::InvalidToml => "invalid_toml",
            Self::NoCore => "no_core",
            Self::UnknownSection => "unknown_section",
            Self::UnknownKey => "unknown_key",
            Self::WrongValue => "wrong_value",
            Self::Skipped => "skipped",
            Self::Deprecated => "deprecated",
            Self::NotUsed => "not_used",
            Self::Variable => "variable",
            Self::UnknownVariable => "unknown_variable",
            Self::DotEnv => "dot_env",
            Self::Conflict => "conflict",
        }
    }
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File {
        /// The file, as it was named.
        path: PathBuf,
        /// Counted from 1; 0 for the file as a whole.
        line: usize,
        /// In characters, counted from 1; 0 for the line as a whole.
        column: usize,
    },
    /// In the environment.
    Variable {
        /// Its name.
        name: String,
        /// The `.env` file that it comes from.
        file: Option<PathBuf>,
    },
    /// On the command line.
    Flag {
        /// With its dashes.
        name: &'static str,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            Self::File { path, line, column: 0 } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable { name, file: None } => write!(f, "${name}"),
            Self::Variable { name, file: Some(file) } => write!(f, "${name} ({})", file.display()),
            Self::Flag { name } => f.write_str(name),
        }
    }
}

/// One thing to know. It never holds the value of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub kind: NoteKind,
    /// The text, with that of the specification where there is one.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
    /// What to do about it.
    pub suggestion: Option<String>,
    /// The setting whose value is wrong, as in `sandbox.timeout`, where it is one.
    pub setting: Option<String>,
}

impl Note {
    pub(crate) fn new(severity: Severity, kind: NoteKind, message: impl Into<String>) -> Self {
        Self { severity, kind, message: printable(&message.into()), place: None, suggestion: None, setting: None }
    }

    pub(crate) fn hint(kind: NoteKind, message: impl Into<String>) -> Self {
        Self::new(Severity::Hint, kind, message)
    }

    pub(crate) fn warning(kind: NoteKind, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, kind, message)
    }

    pub(crate) fn error(kind: NoteKind, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, kind, message)
    }

    pub(crate) fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    pub(crate) fn suggest(self, suggestion: Option<String>) -> Self {
        Self { suggestion, ..self }
    }

    pub(crate) fn about(self, section: &str, key: &str) -> Self {
        Self { setting: Some(format!("{section}.{key}")), ..self }
    }

    /// Whether something that somebody wrote has no effect because of it, or nothing has.
    pub fn costs_a_setting(&self) -> bool {
        match self.kind {
            NoteKind::InvalidToml
            | NoteKind::UnknownSection
            | NoteKind::UnknownKey
            | NoteKind::WrongValue
            | NoteKind::Skipped
            | NoteKind::Variable
            | NoteKind::DotEnv => true,
            // A file that was named, and is not there.
            NoteKind::MissingFile => self.severity > Severity::Hint,
            NoteKind::ForeignFile
            | NoteKind::NoCore
            | NoteKind::Deprecated
            | NoteKind::NotUsed
            | NoteKind::UnknownVariable
            | NoteKind::Conflict => self.severity == Severity::Error,
        }
    }
}

/// A text that does nothing to a terminal: names in a file may have any characters.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { printable.extend(c.escape_default()) } else { printable.push(c) }
    }
    printable
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}
