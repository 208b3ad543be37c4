//! A build folder as clients send it (remote-runtime-api 2.9): a form with names, and a tar archive in Base64.

use std::{fs::File, io::Seek as _, path::Path, time::Duration};

use axum::extract::{Multipart, multipart::Field};
use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use flate2::read::MultiGzDecoder;
use gloveport_archive::{
    ArchiveLimits,
    tar::{Origin, unpack},
};
use http::StatusCode;
use tempfile::TempDir;
use tokio::{fs, io::AsyncWriteExt as _, time::timeout};

use crate::fault::Fault;

/// Most bytes of an archive.
const ARCHIVE: u64 = 2 << 30;
/// What it may become.
const LIMITS: ArchiveLimits = ArchiveLimits { bytes: 8 << 30, files: 200_000, ratio: 200, unsuspicious: 100_000_000 };
/// Time for all of it to come.
const WITHIN: Duration = Duration::from_mins(10);
/// Most bytes of a name.
const NAME: usize = 512;
/// Most names.
const NAMES: usize = 16;

/// What a client wants to have built.
#[derive(Debug)]
pub(crate) struct Upload {
    /// The first one is the main one.
    pub(crate) names: Vec<String>,
    pub(crate) folder: TempDir,
}

fn broken(error: impl std::fmt::Display) -> Fault {
    Fault::wrong(format!("the form cannot be read: {error}"))
}

fn not_kept(error: impl std::fmt::Display) -> Fault {
    tracing::error!(%error, "a build folder was not kept");
    Fault::new(StatusCode::INSUFFICIENT_STORAGE, "the gateway could not keep the build folder")
}

/// Receives a build folder into a new one below this directory.
pub(crate) async fn receive(form: Multipart, directory: &Path) -> Result<Upload, Fault> {
    let late = |_| Fault::new(StatusCode::REQUEST_TIMEOUT, format!("the build folder did not come within {WITHIN:?}"));
    timeout(WITHIN, all(form, directory)).await.map_err(late)?
}

async fn all(mut form: Multipart, directory: &Path) -> Result<Upload, Fault> {
    let (mut main, mut others, mut archive) = (None, Vec::new(), None);
    while let Some(field) = form.next_field().await.map_err(broken)? {
        match field.name().unwrap_or_default() {
            "target_image" => main = Some(text(field).await?),
            "tags" => {
                others.push(text(field).await?);
                if others.len() >= NAMES {
                    return Err(Fault::wrong(format!("{NAMES} names are possible at most")));
                }
            }
            "context" => archive = Some(decoded(field, directory).await?),
            // What other versions of clients send has no meaning here.
            _ => {}
        }
    }
    let main = main.ok_or_else(|| Fault::wrong("`target_image` is missing"))?;
    let archive = archive.ok_or_else(|| Fault::wrong("`context` is missing"))?;
    let folder = tempfile::Builder::new().prefix("build-").tempdir_in(directory).map_err(not_kept)?;
    let place = folder.path().to_owned();
    let unpacked = tokio::task::spawn_blocking(move || {
        unpack(MultiGzDecoder::new(archive), &place, Origin::Foreign, &LIMITS).map_err(|error| error.to_string())
    });
    let unpacked = unpacked.await.map_err(not_kept)?;
    unpacked.map_err(|error| Fault::wrong(format!("`context` is no archive that can be used: {error}")))?;
    if !fs::try_exists(folder.path().join("Dockerfile")).await.map_err(not_kept)? {
        return Err(Fault::wrong("there is no Dockerfile at the root of `context`"));
    }
    let mut names = vec![main];
    names.extend(others.into_iter().filter(|name| *name != names[0]).collect::<Vec<_>>());
    Ok(Upload { names, folder })
}

/// A short text.
async fn text(mut field: Field<'_>) -> Result<String, Fault> {
    let mut all = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(broken)? {
        all.extend_from_slice(&piece);
        if all.len() > NAME {
            return Err(Fault::wrong(format!("a name has more than {NAME} bytes")));
        }
    }
    String::from_utf8(all).map_err(broken)
}

/// The bytes that a field in Base64 means, as a file that has no name.
async fn decoded(mut field: Field<'_>, directory: &Path) -> Result<File, Fault> {
    let file = tempfile::tempfile_in(directory).map_err(not_kept)?;
    let mut out = fs::File::from_std(file);
    let (mut left, mut length): (Vec<u8>, u64) = (Vec::new(), 0);
    while let Some(piece) = field.chunk().await.map_err(broken)? {
        left.extend(piece.iter().filter(|byte| !byte.is_ascii_whitespace()));
        // Four letters are three bytes; the rest comes with the next piece.
        let whole = left.len() - left.len() % 4;
        let bytes = STANDARD.decode(&left[..whole]).map_err(broken)?;
        left.drain(..whole);
        length += bytes.len() as u64;
        if length > ARCHIVE {
            let detail = format!("the archive has more than {} MiB", ARCHIVE >> 20);
            return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        out.write_all(&bytes).await.map_err(not_kept)?;
    }
    out.write_all(&STANDARD.decode(&left).map_err(broken)?).await.map_err(not_kept)?;
    out.flush().await.map_err(not_kept)?;
    let mut file = out.into_std().await;
    file.rewind().map_err(not_kept)?;
    Ok(file)
}
