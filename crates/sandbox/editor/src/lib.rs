//! The file editor: view, create, str_replace, insert, undo, with diffs, encodings and documents.
//!
//! It blocks, so its caller runs it where blocking is allowed. Edits of one file come one after the other, edits of
//! different files run side by side. A file is written whole or not at all, in the encoding that it has.
//!
//! | module | idea |
//! |---|---|
//! | [`editor`](Editor) | one request, checked in the order of file-editor 3.2 and answered |
//! | [`encoding`] | bytes to text and back without a loss |
//! | [`binary`] | whether bytes are text |
//! | [`diff`] | what an edit changed |
//! | [`documents`] | documents shown as Markdown |
//! | [`lint`] | what an edit broke |
//!
//! ```
//! use gloveport_editor::{EditRequest, Editor, EditorOptions};
//! # let directory = tempfile::tempdir()?;
//! let editor = Editor::new(EditorOptions::new(directory.path().to_owned()));
//! let path = directory.path().join("greeting.txt").display().to_string();
//! editor.run(&EditRequest { file_text: Some("hello\n"), ..EditRequest::new("create", &path) })?;
//! let request = EditRequest { old_str: Some("hello"), new_str: Some("goodbye"), ..EditRequest::new("str_replace", &path) };
//! let report = editor.run(&request)?;
//! assert_eq!(report.diff, format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-hello\n+goodbye"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commands;
mod editor;
mod error;
mod history;
mod listing;
mod locks;
mod output;
mod request;
mod source;

pub use gloveport_changes::{diff, lint};
pub use gloveport_documents as documents;
pub use gloveport_text::{binary, encoding};
use gloveport_text::{path, python};

pub use editor::{Editor, EditorOptions};
pub use error::{EditorError, Hint, LineNumbers, Reason};
pub use lint::{Issue, Linter};
pub use path::normalised;
pub use request::{EditReport, EditRequest, ViewRange};
