//! Whole trees between this machine and the sandbox: as tar where the server has the native routes, else as zip.

use std::path::{Path, PathBuf, is_separator};

use bytes::Bytes;
use futures_util::StreamExt as _;
use gloveport_archive::{ArchiveError, ArchiveLimits, Summary, tar, zip};

use crate::{
    ActionExecutionClient, ClientError, RemotePath, Upload,
    call::Call,
    pipe::{channel, written_by},
};

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeCopy {
    /// Files, links included.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// In which form it travelled.
    pub form: TreeForm,
}

/// How a tree travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeForm {
    /// The native form: everything is kept.
    Tar,
    /// The form of OpenHands.
    Zip,
}

impl TreeForm {
    /// What does not arrive, if anything.
    pub const fn lost(self) -> Option<&'static str> {
        match self {
            Self::Tar => None,
            Self::Zip => Some("modes, owners, times, links and empty directories"),
        }
    }
}

impl ActionExecutionClient {
    /// Copies what is in a directory of this machine into a directory of the sandbox, which is made if it is missing.
    ///
    /// A server without the native routes gets a zip file, with which something is lost ([`TreeForm::lost`]). Of a tar
    /// stream `progress` is told each number of bytes that is sent.
    pub async fn upload_tree(
        &self,
        source: &Path,
        destination: impl Into<RemotePath>,
        progress: impl Fn(usize) + Send + Sync + 'static,
    ) -> Result<TreeCopy, ClientError> {
        let destination = destination.into();
        if !source.exists() {
            return Err(ClientError::SourceMissing(source.to_owned()));
        }
        if !self.has_tar_routes().await? {
            tracing::warn!(
                lost = TreeForm::Zip.lost(),
                "the server has no native routes for trees; a zip file is sent"
            );
            let plan = plan(source, zip::Plan::of_contents).await?;
            let copy = TreeCopy { files: plan.files(), bytes: plan.bytes(), form: TreeForm::Zip };
            self.upload_zip(plan, destination.as_text()?).await?;
            return Ok(copy);
        }
        let root = source.to_owned();
        let tar = written_by(move |out| tar::pack(&root, out).map(drop));
        let tar = tar.inspect(move |piece| progress(piece.as_ref().map_or(0, Bytes::len)));
        let stored = self.files().write_tar(destination, Upload::stream(tar, None), true).await?;
        Ok(TreeCopy { files: stored.files, bytes: stored.bytes, form: TreeForm::Tar })
    }

    /// Copies what is in a directory of the sandbox into a directory of this machine, which is made if it is missing.
    /// What is written never leaves that directory, whatever the server sends, and stays within the bounds. Of a tar
    /// stream `progress` is told each number of bytes that arrived.
    pub async fn download_tree(
        &self,
        source: impl Into<RemotePath>,
        destination: &Path,
        limits: &ArchiveLimits,
        progress: impl Fn(usize) + Send + Sync,
    ) -> Result<TreeCopy, ClientError> {
        let source = source.into();
        let failed = |error| ClientError::File { action: "make", path: destination.to_owned(), source: error };
        tokio::fs::create_dir_all(destination).await.map_err(failed)?;
        let (path, limits) = (destination.to_owned(), *limits);
        if !self.has_tar_routes().await? {
            tracing::warn!(
                lost = TreeForm::Zip.lost(),
                "the server has no native routes for trees; a zip file is fetched"
            );
            let file = self.copy_from(source.as_text()?).await?;
            let unpacked = blocking(destination, move || {
                let file = std::fs::File::open(&file).map_err(ArchiveError::Input)?;
                zip::unpack(&file, &path, &limits)
            });
            let Summary { files, bytes, .. } = unpacked.await?;
            return Ok(TreeCopy { files, bytes, form: TreeForm::Zip });
        }
        let mut stream = self.files().read_tar(source).await?;
        let (sender, reader) = channel();
        let unpacked = tokio::spawn(blocking_owned(destination.to_owned(), move || {
            tar::unpack(reader, &path, tar::Origin::Foreign, &limits)
        }));
        let received = async {
            // A receiver that is gone has failed, and says why itself.
            while let Some(piece) = stream.next().await? {
                progress(piece.len());
                if sender.send(Some(piece)).await.is_err() {
                    return Ok(());
                }
            }
            let _gone = sender.send(None).await;
            Ok::<_, ClientError>(())
        }
        .await;
        // Without the mark of the end the other side sees that something is missing.
        drop(sender);
        let unpacked = unpacked.await.map_err(|error| interrupted(destination, &error));
        received?;
        let Summary { files, bytes, .. } = unpacked??;
        Ok(TreeCopy { files, bytes, form: TreeForm::Tar })
    }

    /// Copies a file or a directory into a directory of the sandbox, as OpenHands does it (`action-execution-client`
    /// 5.1).
    ///
    /// Of a directory all regular files are copied. Their names begin with the name of the directory, unless the path
    /// ends with a slash. A single file whose name ends in `.zip` is unpacked by the server.
    pub async fn copy_to(&self, source: &Path, destination: &str, recursive: bool) -> Result<(), ClientError> {
        if !source.exists() {
            return Err(ClientError::SourceMissing(source.to_owned()));
        }
        if !recursive {
            return self.upload_file(source, destination).await;
        }
        let last = source.as_os_str().as_encoded_bytes().last();
        let of = if last.is_some_and(|last| is_separator(char::from(*last))) {
            zip::Plan::of_contents
        } else {
            zip::Plan::of_directory
        };
        self.upload_zip(plan(source, of).await?, destination).await
    }

    /// Whether the server has the native routes for trees. It is asked one time.
    async fn has_tar_routes(&self) -> Result<bool, ClientError> {
        if let Some(known) = self.shared.tar_routes.get() {
            return Ok(*known);
        }
        let found = match self.session().once(&Call::get("v1/files/archive", self.session().limits.other)).await {
            Ok(_) => true,
            // A server that has them says what is wrong with the request in the native form.
            Err(ClientError::Status(error)) if error.native.is_some() && error.status == 400 => true,
            Err(ClientError::Status(error)) if error.is_unknown_call() => false,
            Err(error) => return Err(error),
        };
        Ok(*self.shared.tar_routes.get_or_init(|| found))
    }
}

async fn plan(source: &Path, make: fn(&Path) -> Result<zip::Plan, ArchiveError>) -> Result<zip::Plan, ClientError> {
    let root = source.to_owned();
    blocking(source, move || make(&root)).await
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ClientError> {
    blocking_owned(path.to_owned(), work).await
}

async fn blocking_owned<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ClientError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|source| ClientError::Archive { path, source }),
        Err(error) => Err(interrupted(&path, &error)),
    }
}

fn interrupted(path: &Path, error: &tokio::task::JoinError) -> ClientError {
    ClientError::File { action: "copy", path: path.to_owned(), source: std::io::Error::other(error.to_string()) }
}
