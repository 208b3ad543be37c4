//! What has changed since a commit, as a patch. Git writes nothing into the repository: its index and its new objects are
//! in a directory that goes away.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use gloveport_sys::Surroundings;
use tempfile::TempDir;

use super::{ArchiveError, excludes::Excludes, files, open};
use crate::{
    as_user::as_user,
    base::default_branch,
    git::{Git, failed},
};

/// Time for one call: a large tree is read as a whole.
const LIMIT: Duration = Duration::from_mins(5);
/// Time in which what a git that was given up has written can be removed, and between two tries.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Most bytes of a patch.
const MOST: u64 = 4 << 30;

/// Writes the patch. Beside it: the commit that it is against, in full, and what was asked for.
pub(super) async fn write(
    surroundings: &Surroundings,
    root: &Path,
    reference: Option<&str>,
    excludes: &Excludes,
) -> Result<(File, Option<(String, String)>), ArchiveError> {
    if reference.is_some_and(|name| name.starts_with('-')) {
        return Err(ArchiveError::Option);
    }
    let Some(git) = Git::open(surroundings, root).await? else {
        return Err(ArchiveError::NoRepository(root.to_owned()));
    };
    let (base, told) = base(&git, reference).await?;
    let scratch = Scratch::new(surroundings, &git).await?;
    let git = git.with_pathspecs().with(scratch.variables());
    let specs: Vec<String> = ["--".into(), ".".into()].into_iter().chain(excludes.pathspecs()).collect();
    git.within(LIMIT, &words(&["add", "--all"], &specs)).await?;
    // As whoever applies it expects, whatever the settings of the repository are.
    let diff = [
        "diff",
        "--cached",
        "--binary",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        &format!("--output={}", scratch.patch().display()),
        &base,
    ];
    git.within(LIMIT, &words(&diff, &specs)).await?;
    Ok((scratch.into_patch(surroundings).await?, told))
}

fn words<'a>(words: &[&'a str], specs: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(specs.iter().map(String::as_str)).collect()
}

/// The commit that everything is compared with, or the empty tree.
async fn base(git: &Git, reference: Option<&str>) -> Result<(String, Option<(String, String)>), ArchiveError> {
    if let Some(name) = reference {
        let commit = git.commit(name).await?.ok_or_else(|| ArchiveError::Unresolved(name.to_owned()))?;
        return Ok((commit.clone(), Some((commit, name.to_owned()))));
    }
    let found = match git.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await? {
        None => git.commit("HEAD").await?,
        Some(branch) => match git.commit(&format!("refs/remotes/origin/{branch}")).await? {
            Some(published) => Some(published),
            None => match default_branch(git).await? {
                Some(default) => git.commit(&format!("refs/remotes/origin/{default}")).await?,
                None => None,
            },
        },
    };
    match found {
        Some(commit) => Ok((commit.clone(), Some((commit, "auto".to_owned())))),
        None => Ok((git.empty_tree().await?, None)),
    }
}

/// Where git writes, as the user of commands.
struct Scratch {
    /// There until the patch is taken.
    directory: Option<TempDir>,
    place: PathBuf,
    objects: OsString,
}

impl Drop for Scratch {
    /// Removes what a git that was given up may still write to for a moment.
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let place = directory.keep();
        let remove = move || {
            let deadline = Instant::now() + REMOVED_WITHIN;
            while let Err(error) = fs::remove_dir_all(&place)
                && error.kind() != io::ErrorKind::NotFound
            {
                if Instant::now() >= deadline {
                    tracing::warn!(%error, place = %place.display(), "what git has written for an archive is left");
                    return;
                }
                thread::sleep(PAUSE);
            }
        };
        if let Err(error) = thread::Builder::new().name("archive".into()).spawn(remove) {
            tracing::warn!(%error, "what git has written for an archive is left");
        }
    }
}

impl Scratch {
    async fn new(surroundings: &Surroundings, git: &Git) -> Result<Self, ArchiveError> {
        let place = async |name: &str| {
            let line = git.line(&["rev-parse", "--git-path", name]).await?;
            let line = line.ok_or_else(|| failed(&["rev-parse"], "it has no place for objects"))?;
            Ok::<PathBuf, ArchiveError>(git.directory().join(line))
        };
        let (index, objects) = (place("index").await?, place("objects").await?);
        let made = as_user(surroundings, move || {
            let directory = tempfile::Builder::new().prefix("gloveport-archive-").tempdir()?;
            fs::create_dir(directory.path().join("objects"))?;
            // With what git knows of the files it need not read them all.
            match open(&index) {
                Ok((mut known, metadata)) => {
                    let mut copy = File::create_new(directory.path().join("index"))?;
                    io::copy(&mut known, &mut copy)?;
                    // By its time git knows of which files it cannot be sure.
                    copy.set_modified(metadata.modified()?)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            Ok(directory)
        });
        let directory = made.await.and_then(|made| made).map_err(files("making a directory for git"))?;
        let place = directory.path().to_owned();
        Ok(Self { directory: Some(directory), place, objects: quoted(&objects) })
    }

    fn variables(&self) -> [(&'static str, OsString); 3] {
        let path = &self.place;
        [
            ("GIT_INDEX_FILE", path.join("index").into()),
            ("GIT_OBJECT_DIRECTORY", path.join("objects").into()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.objects.clone()),
        ]
    }

    fn patch(&self) -> PathBuf {
        self.place.join("patch")
    }

    /// The patch, without a name; all else is gone.
    async fn into_patch(mut self, surroundings: &Surroundings) -> Result<File, ArchiveError> {
        let taken = as_user(surroundings, move || {
            let (patch, metadata) = open(&self.patch())?;
            if metadata.len() > MOST {
                return Err(io::Error::other(format!("it has more than {MOST} bytes")));
            }
            match self.directory.take() {
                Some(directory) => directory.close().map(|()| patch),
                None => Ok(patch),
            }
        });
        taken.await.and_then(|taken| taken).map_err(files("reading the patch"))
    }
}

/// A path as it stands in a list of paths.
fn quoted(path: &Path) -> OsString {
    let text = path.to_string_lossy();
    if !text.contains([':', '"', '\\']) {
        return path.into();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")).into()
}
