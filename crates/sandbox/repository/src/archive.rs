//! A directory as one file (`agent-server-workspace-api` §5.1): what has changed in its repository, or all of it.

mod delta;
mod excludes;
mod origin;
mod root;
mod tarball;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use gloveport_sys::Surroundings;
use rustix::fs::OFlags;
use tokio_util::sync::CancellationToken;

use self::excludes::Excludes;
pub use self::{excludes::DEFAULT_EXCLUDES, origin::Origin};
use crate::{as_user::as_user, git::GitError};

/// Most patterns of what is left out.
const PATTERNS: usize = 1000;
/// Longest of them, in bytes.
const LONGEST: usize = 4096;

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A patch that git understands, against a commit.
    GitDelta,
    /// All files and directories.
    TarGz,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ArchiveRequest {
    /// The directory, which exists.
    pub path: PathBuf,
    /// What kind of file.
    pub format: Format,
    /// The commit that a patch is against, if it is not to be found out.
    pub base: Option<String>,
    /// Patterns of what is left out.
    pub excludes: Vec<String>,
}

/// The file, and what it is of.
#[derive(Debug)]
pub struct Archive {
    /// The name of the directory, by which the file is called.
    pub name: String,
    /// What the directory is a clone of, if it is a repository.
    pub origin: Option<Origin>,
    /// The commit that a patch is against, in full, and what was asked for.
    pub base: Option<(String, String)>,
    /// The content, from its beginning. It has no name on the disk.
    pub content: File,
    /// Its length in bytes.
    pub size: u64,
}

/// Why there is none. The text is for whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The name of the base would be an option.
    #[error("base_ref must not start with '-'")]
    Option,
    /// The base names no commit.
    #[error("base_ref '{0}' could not be resolved")]
    Unresolved(String),
    /// There is nothing that a patch could be of.
    #[error("Not a git repository: Not a git repository: {}", .0.display())]
    NoRepository(PathBuf),
    /// There are too many patterns, or they are too long.
    #[error("at most {PATTERNS} patterns of at most {LONGEST} bytes can be excluded")]
    Patterns,
    /// Git fails.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Files cannot be read, or the archive cannot be written.
    #[error("{what}: {source}")]
    Files {
        /// What was done.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// Makes an archive with the rights of commands. It is given up when `stop` is cancelled.
///
/// # Errors
///
/// [`ArchiveError`]; then nothing is left on the disk.
pub async fn archive(
    surroundings: &Surroundings,
    request: ArchiveRequest,
    stop: &CancellationToken,
) -> Result<Archive, ArchiveError> {
    let ArchiveRequest { path, format, base, excludes } = request;
    if excludes.len() > PATTERNS || excludes.iter().any(|pattern| pattern.len() > LONGEST) {
        return Err(ArchiveError::Patterns);
    }
    let excludes = Excludes::new(excludes);
    let root = as_user(surroundings, move || root::of(path)).await.map_err(files("looking for a repository"))?;
    let origin = if root.is_repository { Origin::of(surroundings, &root.path).await? } else { None };
    let name = name_of(&root.path);
    let (mut content, base) = match format {
        Format::GitDelta => delta::write(surroundings, &root.path, base.as_deref(), &excludes).await?,
        Format::TarGz => {
            let (path, name, stop) = (root.path, name.clone(), stop.clone());
            let written = as_user(surroundings, move || tarball::write(&path, &name, &excludes, &stop)).await;
            (written.and_then(|written| written).map_err(files("writing the archive"))?, None)
        }
    };
    let size = content.seek(io::SeekFrom::End(0)).and_then(|size| content.rewind().map(|()| size));
    Ok(Archive { name, origin, base, content, size: size.map_err(files("reading the archive"))? })
}

fn files(what: &'static str) -> impl Fn(io::Error) -> ArchiveError {
    move |source| ArchiveError::Files { what, source }
}

/// What a directory is called.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "workspace".to_owned())
}

/// Opens a file for reading that is neither a link nor anything else than a file, and says what it is.
fn open(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok((file, metadata))
}
