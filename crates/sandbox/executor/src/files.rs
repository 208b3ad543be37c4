//! Files: what the `read`, `write` and `edit` actions do, and the native file operations.
//!
//! Everything here blocks; the executor calls it on threads for that. Nothing here waits for a command.

mod edit;
mod entries;
mod names;
mod paths;
mod read;
mod remove;
mod search;
mod text;
pub mod watch;
mod write;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_editor::{
    Editor, EditorOptions,
    documents::{Interrupt, Reader},
};
use gloveport_protocol::{Action, ExecuteError, Observation};
use gloveport_sys::{Identity, os_error::described, replace::NewFile};

pub use edit::{edit, view};
pub use entries::{entry, list, make_directory, move_to};
pub use names::names;
pub use paths::shown;
pub use read::{ANSWER_LIMIT, BINARY_FILE};
pub use remove::remove;
pub use search::{glob, grep};
pub use text::unify;

/// Mode of files that `write` and the editor make.
const NEW_FILE_MODE: u32 = 0o664;

/// The file tools of one sandbox. Clones share the editor's history.
#[derive(Clone)]
pub struct Files {
    editor: Arc<Editor>,
    new_file: NewFile,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("new_file", &self.new_file).finish_non_exhaustive()
    }
}

impl Files {
    /// The tools for a workspace. New files belong to `user`, where one is given, and documents are read with the rights
    /// of `reader`.
    pub fn new(workspace: &Path, user: Option<u32>, reader: Option<Identity>) -> Self {
        let new_file = NewFile { mode: Some(NEW_FILE_MODE), owner: user.map(|user| (user, user)) };
        let options =
            EditorOptions { new_file, documents: Reader::new(reader), ..EditorOptions::new(workspace.to_owned()) };
        Self { editor: Arc::new(Editor::new(options)), new_file }
    }

    /// Executes a `read`, `write` or `edit` action; relative paths begin at `directory`. Blocks. `None` for an action
    /// of another kind.
    pub fn execute(&self, action: &Action, directory: &Path) -> Option<Result<Observation, ExecuteError>> {
        let mut result = None;
        self.execute_and_tell(action, directory, &Interrupt::default(), |told| result = Some(told));
        result
    }

    /// Like [`execute`](Self::execute); tells the result as soon as it is there, before it cleans up. An action of
    /// another kind is not told. After the interrupt nothing goes on that takes long.
    pub(crate) fn execute_and_tell(
        &self,
        action: &Action,
        directory: &Path,
        interrupt: &Interrupt,
        tell: impl FnOnce(Result<Observation, ExecuteError>),
    ) {
        match action {
            Action::Read(action) => tell(self.read(action, directory, interrupt)),
            Action::Write(action) => {
                let written = self.write(action, directory);
                tell(written.result);
                drop(written.old);
            }
            Action::Edit(action) => {
                tell(Ok(Observation::Edit(edit(&self.editor, action, &action.path, interrupt))));
            }
            _ => {}
        }
    }
}

/// Why a native file operation failed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused it.
    #[error("{}", described(.source, .path))]
    Os {
        /// What it was done to.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The request does not make sense.
    #[error("{0}")]
    Invalid(String),
    /// Others do too much of the same.
    #[error("{0}; try again later")]
    Busy(String),
    /// The place is taken.
    #[error("{} exists already; set overwrite to replace it", .0.display())]
    Exists(PathBuf),
    /// A directory that is not empty.
    #[error("{} is a directory that is not empty; set recursive to remove it with everything in it", .0.display())]
    NotEmpty(PathBuf),
}

impl FileError {
    pub(crate) fn os(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Os { path, source }
    }
}

/// The error of an action that the system refused, in the words of the reference.
fn refused(error: &io::Error, path: impl AsRef<Path>) -> ExecuteError {
    if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none() {
        return ExecuteError::Failed("embedded null byte".to_owned());
    }
    ExecuteError::Failed(described(error, path.as_ref()))
}
