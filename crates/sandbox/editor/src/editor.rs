//! One request, checked in the order of file-editor 3.2 and answered.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_sys::{os_error, reach::Reach, replace::NewFile};

use crate::{
    commands,
    documents::{Format, Interrupt, Reader},
    encoding::TextEncoding,
    error::{EditorError, Hint},
    history::History,
    lint::Linter,
    locks::PathLocks,
    path,
    request::{EditReport, EditRequest},
    source::{self, Encodings, Source},
};

/// Bytes of former states of all files, if nothing else is said.
const HISTORY_BYTES: usize = 64 * 1024 * 1024;

/// How an editor works.
pub struct EditorOptions {
    /// Where a relative path may have been meant to be; for a hint only, which is not given without it.
    pub workspace_root: Option<PathBuf>,
    /// Which files there are for it. Beneath a directory, paths must be those that the bounds resolve to
    /// ([`Bounds::resolve`](gloveport_sys::reach::Bounds::resolve)), so that a file has one history.
    pub reach: Reach,
    /// Owner and mode of created files.
    pub new_file: NewFile,
    /// Most bytes of former states of all files. Over it the oldest go, but for the newest of each file, which have a
    /// bound of their own.
    pub history_bytes: usize,
    /// What judges edits; nothing does if there is none.
    pub linter: Option<Arc<dyn Linter>>,
    /// What reads documents.
    pub documents: Reader,
}

impl EditorOptions {
    /// The usual bounds, files as this process creates them, no linter.
    pub fn new(workspace_root: PathBuf) -> Self {
        Self { workspace_root: Some(workspace_root), ..Self::without_workspace() }
    }

    /// The same for an editor that belongs to no workspace.
    pub fn without_workspace() -> Self {
        Self {
            workspace_root: None,
            reach: Reach::Anywhere,
            new_file: NewFile::default(),
            history_bytes: HISTORY_BYTES,
            linter: None,
            documents: Reader::default(),
        }
    }
}

impl std::fmt::Debug for EditorOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EditorOptions")
            .field("workspace_root", &self.workspace_root)
            .field("reach", &self.reach)
            .field("new_file", &self.new_file)
            .field("history_bytes", &self.history_bytes)
            .field("linter", &self.linter.is_some())
            .field("documents", &self.documents)
            .finish()
    }
}

/// The file editor, with the history of its edits. It can be used by many threads at once.
#[derive(Debug)]
pub struct Editor {
    pub(crate) options: EditorOptions,
    pub(crate) history: History,
    pub(crate) encodings: Encodings,
    locks: PathLocks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    View,
    Create,
    Replace,
    Insert,
    Undo,
}

impl Command {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "view" => Self::View,
            "create" => Self::Create,
            "str_replace" => Self::Replace,
            "insert" => Self::Insert,
            "undo_edit" => Self::Undo,
            _ => return None,
        })
    }
}

impl Editor {
    /// An editor without a history.
    pub fn new(options: EditorOptions) -> Self {
        Self {
            history: History::new(options.history_bytes),
            options,
            encodings: Encodings::default(),
            locks: PathLocks::default(),
        }
    }

    /// Does what is asked. It blocks, for as long as the file system does, a document takes to be read or a linter to
    /// run; both of those have a time limit.
    ///
    /// # Errors
    ///
    /// The request is refused or fails; then nothing is changed.
    pub fn run(&self, request: &EditRequest<'_>) -> Result<EditReport, EditorError> {
        self.run_until(request, &Interrupt::default())
    }

    /// Does what is asked, but reads a document only as long as somebody waits for it.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), and that of a document that nobody waits for any more.
    pub fn run_until(&self, request: &EditRequest<'_>, interrupt: &Interrupt) -> Result<EditReport, EditorError> {
        self.run_with(request, self.options.linter.as_deref(), interrupt)
    }

    /// Does what is asked, and has the edit judged by this linter and no other.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn run_judged(
        &self,
        request: &EditRequest<'_>,
        linter: Option<&dyn Linter>,
    ) -> Result<EditReport, EditorError> {
        self.run_with(request, linter, &Interrupt::default())
    }

    fn run_with(
        &self,
        request: &EditRequest<'_>,
        linter: Option<&dyn Linter>,
        interrupt: &Interrupt,
    ) -> Result<EditReport, EditorError> {
        let path = &path::normalised(request.path);
        if !path.starts_with('/') {
            return Err(invalid_path(path, Hint::Relative { meant: self.meant(path) }));
        }
        let command = Command::parse(request.command);
        let lease = self.locks.lease(self.options.reach.real_path(Path::new(path)));
        if command == Some(Command::View) {
            let _shared = lease.shared();
            let is_directory = self.check(command, path)?;
            return commands::view(self, path, is_directory, request.view_range, interrupt);
        }
        let exclusive = lease.exclusive();
        self.check(command, path)?;
        let edit = match command {
            Some(Command::Create) => commands::create(self, path, request.file_text),
            Some(Command::Replace) => commands::replace(self, path, request.old_str, request.new_str),
            Some(Command::Insert) => commands::insert(self, path, request.insert_line, request.new_str),
            Some(Command::Undo) => commands::undo(self, path),
            Some(Command::View) | None => Err(EditorError::UnknownCommand(request.command.to_owned())),
        }?;
        // What follows takes its time and touches no file.
        drop(exclusive);
        Ok(edit.report(path, linter))
    }

    pub(crate) fn read(&self, path: &str) -> Result<Source, EditorError> {
        source::read(&self.options.reach, path, &self.encodings)
    }

    pub(crate) fn write(&self, path: &str, text: &str, encoding: TextEncoding) -> Result<(), EditorError> {
        let options = &self.options;
        source::write(&options.reach, path, text, encoding, options.new_file, &self.encodings)
    }

    /// The path below the workspace, if something is there.
    fn meant(&self, path: &str) -> Option<String> {
        let meant = self.options.workspace_root.as_ref()?.join(path);
        self.options.reach.metadata(&meant).is_ok().then(|| path::normalised(&meant.to_string_lossy()))
    }

    /// The checks of a path for a command (file-editor 3.2). Tells whether it is a directory.
    fn check(&self, command: Option<Command>, path: &str) -> Result<bool, EditorError> {
        let metadata = match self.options.reach.metadata(Path::new(path)) {
            Ok(metadata) => Some(metadata),
            Err(error) if is_absence(&error) => None,
            // Whether it exists can not be said; to create it fails with the reason.
            Err(_) if command == Some(Command::Create) => None,
            Err(error) => {
                return Err(EditorError::Read { path: path.to_owned(), reason: os_error::described(&error, path) });
            }
        };
        let is_directory = metadata.as_ref().is_some_and(fs::Metadata::is_dir);
        match (command, metadata.is_some()) {
            (Some(Command::Create), true) => return Err(invalid_path(path, Hint::Exists(path.to_owned()))),
            (Some(Command::Create), false) | (_, true) => {}
            (_, false) => return Err(invalid_path(path, Hint::Missing(path.to_owned()))),
        }
        if command == Some(Command::View) {
            return Ok(is_directory);
        }
        if is_directory {
            return Err(invalid_path(path, Hint::Directory(path.to_owned())));
        }
        if Format::of(path).is_some() {
            let extension = path::extension(path).to_owned();
            return Err(invalid_path(path, Hint::Document { path: path.to_owned(), extension }));
        }
        Ok(false)
    }
}

/// Whether the error says that there is no such file. A name with a NUL can not exist.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error().is_none() && error.kind() == io::ErrorKind::InvalidInput
}

fn invalid_path(path: &str, hint: Hint) -> EditorError {
    EditorError::InvalidParameter { parameter: "path", value: path.to_owned(), hint }
}
