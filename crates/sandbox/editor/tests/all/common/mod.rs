//! An editor with a directory of its own, and short ways to ask it.
#![expect(
    dead_code,
    clippy::unwrap_used,
    reason = "test programs stop at the first broken assumption, and each uses a part of this"
)]

use std::{fs, path::PathBuf};

use gloveport_editor::{EditReport, EditRequest, Editor, EditorError, EditorOptions, documents::choose_program};
use tempfile::TempDir;

/// The program that cargo builds beside the tests.
fn document_reader() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/editor_document_reader")
}

pub(crate) struct Desk {
    pub(crate) editor: Editor,
    /// The real path of the directory.
    pub(crate) root: String,
    directory: TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(|options| options)
    }

    pub(crate) fn with(change: impl FnOnce(EditorOptions) -> EditorOptions) -> Self {
        choose_program(document_reader());
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let editor = Editor::new(change(EditorOptions::new(root.clone())));
        Self { editor, root: root.into_os_string().into_string().unwrap(), directory }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path(name).into()
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.file(name), content).unwrap();
        self.path(name)
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).unwrap()
    }

    /// The output, or the message of the error, with the directory as `/w`.
    pub(crate) fn ask(&self, request: EditRequest<'_>) -> Result<String, String> {
        let shown = |text: String| text.replace(&self.root, "/w");
        self.editor.run(&request).map(|report| shown(report.output)).map_err(|error| shown(error.to_string()))
    }

    pub(crate) fn create(&self, name: &str, text: &str) -> Result<EditReport, EditorError> {
        let path = self.path(name);
        self.editor.run(&EditRequest { file_text: Some(text), ..EditRequest::new("create", &path) })
    }

    pub(crate) fn replace(&self, name: &str, old: &str, new: &str) -> Result<EditReport, EditorError> {
        let path = self.path(name);
        self.editor.run(&EditRequest {
            old_str: Some(old),
            new_str: Some(new),
            ..EditRequest::new("str_replace", &path)
        })
    }

    pub(crate) fn insert(&self, name: &str, line: i64, text: &str) -> Result<EditReport, EditorError> {
        let path = self.path(name);
        self.editor.run(&EditRequest {
            insert_line: Some(line),
            new_str: Some(text),
            ..EditRequest::new("insert", &path)
        })
    }

    pub(crate) fn undo(&self, name: &str) -> Result<EditReport, EditorError> {
        let path = self.path(name);
        self.editor.run(&EditRequest::new("undo_edit", &path))
    }

    pub(crate) fn view(&self, name: &str) -> Result<String, String> {
        self.ask(EditRequest::new("view", &self.path(name)))
    }
}
