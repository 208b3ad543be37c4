//! Copies over the native file API: modes, links and times are kept, and everything is streamed.

use std::{
    fs,
    io::{BufWriter, Write as _},
    path::Path,
};

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use gloveport_client::{ActionExecutionClient, PutOptions, RemotePath, Upload};
use gloveport_platform::replace::{self, Replacement};
use gloveport_protocol::files::FileKind;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::{
    Progress,
    copied::{Copied, PIECE, limits, means_directory, target},
    kind_there,
};
use crate::{files::place::with_slashes, output::print_bytes};

/// Bits of a mode that a file of a sandbox brings along.
const PERMISSIONS: u32 = 0o777;

/// Copies a file or a tree from the sandbox.
pub(super) async fn download(
    client: &ActionExecutionClient,
    from: &Path,
    to: &Path,
    progress: &Progress,
) -> anyhow::Result<Copied> {
    let entry = client.files().stat(RemotePath::from(from), true).await?;
    let to = target(from, to, to.is_dir())?;
    if entry.kind == FileKind::Directory {
        let progress = progress.clone();
        let done = client.download_tree(from, &to, &limits(), move |bytes| progress.add(bytes)).await?;
        return Ok(Copied::tree(&to, done.files, done.bytes));
    }
    let mut content = client.files().read(RemotePath::from(from), None).await?;
    if let Some(length) = content.info.length {
        progress.expect(length);
    }
    // A program of the sandbox must not run with rights of this machine, under a name that is new here or not.
    let mode = content.info.mode.map(|mode| mode & PERMISSIONS);
    let cannot_write = || format!("cannot write {}", to.display());
    let mut replacement = Replacement::begin(&to, mode).with_context(cannot_write)?;
    replacement.drop_privileges().with_context(cannot_write)?;
    let mut count = 0;
    {
        let mut out = BufWriter::with_capacity(PIECE, replacement.file());
        while let Some(bytes) = content.bytes.next().await? {
            out.write_all(&bytes).with_context(cannot_write)?;
            progress.add(bytes.len());
            count += bytes.len() as u64;
        }
        out.flush().with_context(cannot_write)?;
    }
    replacement.commit().with_context(cannot_write)?;
    Ok(Copied::file(&to, count))
}

/// Writes a file, or a tree as a tar archive, to standard output.
pub(super) async fn print(client: &ActionExecutionClient, from: &Path, progress: &Progress) -> anyhow::Result<Copied> {
    let entry = client.files().stat(RemotePath::from(from), true).await?;
    let mut bytes = if entry.kind == FileKind::Directory {
        client.files().read_tar(RemotePath::from(from)).await?
    } else {
        client.files().read(RemotePath::from(from), None).await?.bytes
    };
    while let Some(piece) = bytes.next().await? {
        print_bytes(&piece)?;
        progress.add(piece.len());
    }
    Ok(Copied::printed())
}

/// Stores standard input: as a file, or unpacked if the path is a directory.
pub(super) async fn store(client: &ActionExecutionClient, to: &Path, progress: &Progress) -> anyhow::Result<Copied> {
    let input = counted(tokio::io::stdin(), progress);
    let is_directory = means_directory(to) || kind_there(client, to).await? == Some(FileKind::Directory);
    let stored = if is_directory {
        client.files().write_tar(RemotePath::from(to), Upload::stream(input, None), true).await?
    } else {
        let options = PutOptions { parents: true, ..PutOptions::default() };
        client.files().write(RemotePath::from(to), Upload::stream(input, None), &options).await?
    };
    Ok(Copied::tree(to, stored.files, stored.bytes))
}

/// Copies a file or a tree into the sandbox.
pub(super) async fn upload(
    client: &ActionExecutionClient,
    from: &Path,
    to: &Path,
    progress: &Progress,
) -> anyhow::Result<Copied> {
    let metadata = fs::metadata(from).with_context(|| format!("cannot read {}", from.display()))?;
    let is_directory = kind_there(client, to).await? == Some(FileKind::Directory);
    let to = with_slashes(target(from, to, is_directory)?);
    if metadata.is_dir() {
        let progress = progress.clone();
        let done = client.upload_tree(from, &to, move |bytes| progress.add(bytes)).await?;
        return Ok(Copied::tree(&to, done.files, done.bytes));
    }
    let file = replace::open_to_read(from).with_context(|| format!("cannot read {}", from.display()))?;
    progress.expect(metadata.len());
    let content = Upload::stream(counted(tokio::fs::File::from_std(file), progress), Some(metadata.len()));
    let mode = Some(gloveport_platform::mode(&metadata));
    let options = PutOptions { mode, parents: true, ..PutOptions::default() };
    let stored = client.files().write(RemotePath::from(to.as_path()), content, &options).await?;
    Ok(Copied::file(&to, stored.bytes))
}

/// A stream whose bytes are counted.
fn counted(
    source: impl AsyncRead + Send + 'static,
    progress: &Progress,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let progress = progress.clone();
    ReaderStream::with_capacity(source, PIECE).inspect(move |piece| {
        if let Ok(bytes) = piece {
            progress.add(bytes.len());
        }
    })
}
