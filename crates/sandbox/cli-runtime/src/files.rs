//! `read`, `write` and `edit` (local-and-cli-runtime B6 to B8).

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use gloveport_editor::{Editor, EditorOptions, binary, documents::Interrupt};
use gloveport_executor::files::{self, ANSWER_LIMIT, BINARY_FILE};
use gloveport_protocol::{
    EditAction, EditObservation, ErrorObservation, ExecuteError, FileEditSource, FileReadSource, Observation,
    ReadAction, ReadObservation, WriteAction, WriteObservation,
};
use gloveport_sys::{os_error::described, reach::Obstacle, replace::NewFile};
use rustix::io::Errno;

use crate::{error::CliError, paths::Workspace};

/// Bytes by which a file is judged.
const JUDGED: u64 = 1024;

/// The file tools of one workspace.
#[derive(Debug)]
pub(crate) struct Files {
    workspace: Workspace,
    editor: Editor,
}

impl Files {
    pub(crate) fn new(workspace: Workspace) -> Self {
        let options =
            EditorOptions { reach: workspace.reach.clone(), ..EditorOptions::new(workspace.bounds.path().to_owned()) };
        Self { editor: Editor::new(options), workspace }
    }

    pub(crate) fn read(&self, action: &ReadAction) -> Observation {
        let path = match self.located(&action.path) {
            Ok(path) => path,
            Err(CliError::Unresolved { path, .. }) if action.impl_source == FileReadSource::OhAci => path,
            Err(CliError::Unresolved { .. }) => return failed(format!("File not found: {}", action.path)),
            Err(error) => return failed(error.to_string()),
        };
        if action.impl_source == FileReadSource::OhAci {
            return files::view(&self.editor, action, &path.to_string_lossy(), &Interrupt::default());
        }
        match self.content(&path) {
            Ok(Content::Text(text)) => Observation::Read(ReadObservation::new(text, action.path.clone())),
            Ok(Content::Binary) => failed(BINARY_FILE),
            Err(error) => self.unread(&action.path, &path, &error),
        }
    }

    fn content(&self, path: &Path) -> io::Result<Content> {
        let file = self.workspace.reach.open_to_read(path)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        (&file).take(JUDGED).read_to_end(&mut bytes)?;
        if binary::is_binary(&bytes) {
            return Ok(Content::Binary);
        }
        if size <= ANSWER_LIMIT {
            bytes.reserve(usize::try_from(size).unwrap_or(0).saturating_sub(bytes.len()) + 1);
            (&file).take(ANSWER_LIMIT + 1 - JUDGED).read_to_end(&mut bytes)?;
        }
        if size > ANSWER_LIMIT || bytes.len() as u64 > ANSWER_LIMIT {
            return Err(Errno::FBIG.into());
        }
        Ok(Content::Text(text(bytes)))
    }

    /// The observation of a file that can not be read.
    fn unread(&self, given: &str, path: &Path, error: &io::Error) -> Observation {
        if let Some(refusal) = self.workspace.refusal(given, error) {
            return failed(refusal.to_string());
        }
        let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
        if is(Errno::NOENT) || is(Errno::NOTDIR) || is(Errno::NAMETOOLONG) || is(Errno::LOOP) {
            return failed(format!("File not found: {given}"));
        }
        if is(Errno::ISDIR) {
            return failed(format!("Cannot read directory: {given}"));
        }
        let reason = if is(Errno::FBIG) {
            format!("it is larger than the {ANSWER_LIMIT} bytes of an answer; read parts of it with head, tail or grep")
        } else {
            match self.workspace.reach.special_kind(path).filter(|_| is(Errno::INVAL)) {
                // The reference would wait for ever.
                Some(kind) => format!("it is a {kind}, and only regular files can be read"),
                None => described(error, path),
            }
        };
        failed(format!("Error reading file {given}: {reason}"))
    }

    pub(crate) fn write(&self, action: &WriteAction) -> Observation {
        let path = match self.located(&action.path) {
            Ok(path) => path,
            Err(error @ CliError::Unresolved { .. }) => {
                return failed(format!("Error writing to file {}: {error}", action.path));
            }
            Err(error) => return failed(error.to_string()),
        };
        match self.put(&path, action.content.as_bytes()) {
            Ok(()) => Observation::Write(WriteObservation::new("", action.path.clone())),
            Err(Obstacle { path: at, source }) => match self.workspace.refusal(&action.path, &source) {
                Some(refusal) => failed(refusal.to_string()),
                None => failed(format!("Error writing to file {}: {}", action.path, described(&source, at))),
            },
        }
    }

    /// Writes a file, with all directories that are missing.
    fn put(&self, path: &Path, content: &[u8]) -> Result<(), Obstacle> {
        let failed = |source| Obstacle { path: path.to_owned(), source };
        if let Some(parent) = path.parent().filter(|_| path != self.workspace.bounds.path()) {
            self.workspace.bounds.make_directories(parent)?;
        }
        self.workspace.reach.write(path, content, NewFile::default()).map_err(failed)
    }

    pub(crate) fn edit(&self, action: &EditAction) -> Result<Observation, ExecuteError> {
        let path = match self.located(&action.path) {
            // Where links lead in circles the editor finds nothing, and says so.
            Ok(path) | Err(CliError::Unresolved { path, .. }) => path,
            Err(error) => return Ok(failed(error.to_string())),
        };
        if self.is_binary(&path) {
            return Ok(failed(BINARY_FILE));
        }
        // Such an edit is made by the caller's model; the reference refuses it without a reason.
        if action.impl_source == FileEditSource::LlmBasedEdit {
            return Err(ExecuteError::Failed(String::new()));
        }
        let observation = files::edit(&self.editor, action, &path.to_string_lossy(), &Interrupt::default());
        let diff = observation.diff.map(|diff| renamed(&diff, &action.path));
        Ok(Observation::Edit(EditObservation { diff, ..observation }))
    }

    /// Whether there is a file that is not text. What can not be read is none: the editor says why.
    fn is_binary(&self, path: &Path) -> bool {
        let mut head = Vec::new();
        let read = self.workspace.reach.open_to_read(path).and_then(|file| file.take(JUDGED).read_to_end(&mut head));
        read.is_ok() && binary::is_binary(&head)
    }

    fn located(&self, path: &str) -> Result<PathBuf, CliError> {
        self.workspace.locate(path)
    }
}

enum Content {
    Text(String),
    Binary,
}

/// Text as text mode reads it.
fn text(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    files::unify(&text).into_owned()
}

/// The diff with the name that the caller gave.
fn renamed(diff: &str, path: &str) -> String {
    match diff.splitn(3, '\n').nth(2) {
        Some(hunks) => {
            let path = path.trim_end();
            format!("--- {path}\n+++ {path}\n{hunks}")
        }
        None => String::new(),
    }
}

fn failed(content: impl Into<String>) -> Observation {
    Observation::Error(ErrorObservation::new(content.into()))
}
