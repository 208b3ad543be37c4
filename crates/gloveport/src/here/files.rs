//! Files of this machine, from the current directory on.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gloveport_executor::files as native;
use gloveport_protocol::{
    Action, Observation,
    files::{FileEntry, FileKind},
};
use gloveport_sys::replace::{self, NewFile};

/// The tools for files.
pub(crate) struct Files {
    tools: native::Files,
    directory: PathBuf,
}

impl Files {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let directory = std::env::current_dir().context("the current directory cannot be used")?;
        Ok(Self { tools: native::Files::new(&directory, None, None), directory })
    }

    /// Executes an action on files.
    pub(crate) async fn execute(&self, action: Action) -> anyhow::Result<Observation> {
        let (tools, directory) = (self.tools.clone(), self.directory.clone());
        let result = tokio::task::spawn_blocking(move || tools.execute(&action, &directory)).await?;
        Ok(result.context("no action on files")??)
    }

    /// Writes a file whole; its directory is made if it is missing.
    pub(crate) fn store(path: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = Path::new(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot make the directory {}", parent.display()))?;
        }
        replace::write(path, content, NewFile::default()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// What is in a directory, or the file of this path; and whether something is left out.
    pub(crate) async fn list(path: String, hidden: bool) -> anyhow::Result<(Vec<FileEntry>, bool)> {
        tokio::task::spawn_blocking(move || {
            let path = Path::new(&path);
            let entry = native::entry(path, true)?;
            if entry.kind != FileKind::Directory {
                return Ok((vec![entry], false));
            }
            let list = native::list(path, 1, hidden, Some(usize::MAX))?;
            Ok((list.entries, list.truncated))
        })
        .await?
    }
}
