//! What a file would become: shown, and written.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_platform::replace::Replacement;
use similar::TextDiff;

use crate::{error::InstallError, file};

/// Permission bits of a new file: an environment often has secrets.
const NEW_FILE: u32 = 0o600;
/// How long a diff may be looked for; a coarser one comes then.
const DIFF: Duration = Duration::from_secs(2);
/// Lines that a diff shows around a change.
const CONTEXT: usize = 3;

/// A file, and what it is to become.
///
/// `Debug` hides both texts, which often have secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, as it was asked for. It may be a link.
    pub file: PathBuf,
    /// Its text; `None` if it does not exist.
    pub before: Option<String>,
    /// What it becomes.
    pub after: String,
}

impl Change {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.old() == self.after
    }

    /// A unified diff with three lines of context; nothing if nothing changes. It shows what the file has around the entry.
    pub fn diff(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let name = self.file.display().to_string();
        let old_name = if self.before.is_some() { &name } else { "/dev/null" };
        let diff = TextDiff::configure().timeout(DIFF).diff_lines(self.old(), self.after.as_str());
        diff.unified_diff().context_radius(CONTEXT).header(old_name, &name).to_string()
    }

    /// Writes the file, if something changes. It is replaced whole, behind a link if it is one, and keeps its permissions;
    /// a new one is its owner's alone. Missing directories are made.
    ///
    /// # Errors
    ///
    /// The file is no longer what [`before`](Self::before) says, or cannot be written. It is as it was then.
    pub fn apply(&self) -> Result<(), InstallError> {
        if self.is_empty() {
            return Ok(());
        }
        file::check_length(&self.file, self.after.len())?;
        self.check_unchanged()?;
        self.write()
    }

    fn old(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    fn check_unchanged(&self) -> Result<(), InstallError> {
        if file::read(&self.file)? == self.before { Ok(()) } else { Err(InstallError::Changed(self.file.clone())) }
    }

    fn write(&self) -> Result<(), InstallError> {
        let failed = |source| InstallError::Write { path: self.file.clone(), source };
        fs::create_dir_all(directory(&self.file)).map_err(failed)?;
        let mut replacement = Replacement::begin(&self.file, Some(NEW_FILE)).map_err(failed)?;
        let write = |replacement: &mut Replacement| -> io::Result<()> {
            replacement.file().write_all(self.after.as_bytes())?;
            replacement.file().sync_all()
        };
        write(&mut replacement).map_err(failed)?;
        // As late as can be: what others write from here on until the file has its name is lost.
        self.check_unchanged()?;
        replacement.commit().map_err(failed)?;
        let target = self.file.canonicalize().map_err(failed)?;
        gloveport_platform::sync_directory(directory(&target)).map_err(failed)
    }
}

fn directory(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl fmt::Debug for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Change")
            .field("file", &self.file)
            .field("before", &self.before.as_ref().map(String::len))
            .field("after", &self.after.len())
            .finish()
    }
}
