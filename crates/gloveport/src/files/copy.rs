//! `gloveport cp`.

mod local;
mod native;
mod progress;
pub(super) mod zipped;

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use gloveport_archive::ArchiveLimits;
use gloveport_client::{ActionExecutionClient, RemotePath};
use gloveport_protocol::files::FileKind;
use serde::Serialize;

use self::progress::Progress;
use super::{
    CopyArgs,
    place::{Place, lacks_native_files},
};
use crate::{cli::WRONG_COMMAND_LINE, output::print_json};

/// Bytes that are handed on at once.
const PIECE: usize = 256 * 1024;

/// One end of a copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Standard input or output.
    Stream,
    /// A path in the sandbox.
    Sandbox(PathBuf),
    /// A path on this machine.
    Here(PathBuf),
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Copied {
    /// Where it is now; nowhere if it was a stream.
    destination: Option<String>,
    /// Files, links included.
    files: u64,
    /// Bytes of their contents.
    bytes: u64,
}

impl Copied {
    fn file(destination: &Path, bytes: u64) -> Self {
        Self::tree(destination, 1, bytes)
    }

    fn tree(destination: &Path, files: u64, bytes: u64) -> Self {
        Self { destination: Some(destination.to_string_lossy().into_owned()), files, bytes }
    }

    /// To a stream, which tells how much it was itself.
    const fn printed() -> Self {
        Self { destination: None, files: 0, bytes: 0 }
    }
}

impl End {
    /// What is wrong with a summary of a copy that goes here, if anything.
    pub(crate) fn mixes_with_json(&self) -> Option<clap::Error> {
        let text = "the argument '--json' cannot be used with the destination '-': both go to standard output\n";
        (*self == Self::Stream).then(|| clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, text))
    }

    fn parse(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        match path.as_os_str().as_bytes() {
            b"-" => Self::Stream,
            [b':', rest @ ..] => Self::Sandbox(std::ffi::OsStr::from_bytes(rest).into()),
            _ => Self::Here(path.to_owned()),
        }
    }

    /// Without a server the sandbox is this machine.
    fn here(self) -> Self {
        match self {
            Self::Sandbox(path) => Self::Here(path),
            other => other,
        }
    }
}

pub(crate) async fn copy(arguments: CopyArgs) -> anyhow::Result<ExitCode> {
    let (source, destination) = (End::parse(&arguments.source), End::parse(&arguments.destination));
    if let Some(error) = destination.mixes_with_json().filter(|_| arguments.json) {
        error.print()?;
        return Ok(ExitCode::from(WRONG_COMMAND_LINE));
    }
    let place = Place::new(&arguments.server)?;
    let progress = Progress::new(!arguments.quiet && std::io::stderr().is_terminal());
    let copied = match &place {
        Place::Here { .. } => local::copy(source.here(), destination.here(), &progress).await?,
        Place::There(client) => between(client, source, destination, &progress).await?,
    };
    progress.finish();
    if arguments.json {
        print_json(&copied)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies between this machine and the sandbox of a server.
pub(crate) async fn copy_between(
    client: &ActionExecutionClient,
    source: End,
    destination: End,
    quiet: bool,
) -> anyhow::Result<Copied> {
    let progress = Progress::new(!quiet && std::io::stderr().is_terminal());
    let copied = between(client, source, destination, &progress).await?;
    progress.finish();
    Ok(copied)
}

async fn between(
    client: &ActionExecutionClient,
    source: End,
    destination: End,
    progress: &Progress,
) -> anyhow::Result<Copied> {
    let native = knows_native_files(client).await?;
    if !native {
        tracing::warn!(
            "this server has only the OpenHands interface: modes, links, times and empty directories are not copied"
        );
    }
    match (source, destination) {
        (End::Sandbox(from), End::Here(to)) if native => native::download(client, &from, &to, progress).await,
        (End::Sandbox(from), End::Here(to)) => zipped::download(client, &from, &to).await,
        (End::Sandbox(from), End::Stream) if native => native::print(client, &from, progress).await,
        (End::Here(from), End::Sandbox(to)) if native => native::upload(client, &from, &to, progress).await,
        (End::Here(from), End::Sandbox(to)) => zipped::upload(client, &from, &to).await,
        (End::Stream, End::Sandbox(to)) if native => native::store(client, &to, progress).await,
        (End::Stream, End::Sandbox(_)) | (End::Sandbox(_), End::Stream) => {
            anyhow::bail!("this server has only the OpenHands interface, which cannot copy streams; copy a file")
        }
        (End::Sandbox(_), End::Sandbox(_)) => {
            anyhow::bail!("both paths are in the sandbox; copy there: gloveport run --url URL 'cp -a FROM TO'")
        }
        (End::Here(_) | End::Stream, End::Here(_) | End::Stream) => {
            anyhow::bail!("no path is in the sandbox; mark the one that is with a colon, such as :/workspace")
        }
    }
}

/// Whether the server has the native file API.
async fn knows_native_files(client: &ActionExecutionClient) -> anyhow::Result<bool> {
    match client.files().stat("/", false).await {
        Ok(_) => Ok(true),
        Err(error) if lacks_native_files(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Where something called like `source` goes: into `destination` if that is a directory, else to that very name.
fn target(source: &Path, destination: &Path, destination_is_directory: bool) -> anyhow::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let means_directory = destination.as_os_str().as_bytes().ends_with(b"/");
    if !destination_is_directory && !means_directory {
        return Ok(destination.to_owned());
    }
    // `DIRECTORY/.` means what is in it.
    if source.as_os_str().as_bytes().ends_with(b"/.") || source == Path::new(".") {
        return Ok(destination.to_owned());
    }
    let name = source.file_name().with_context(|| format!("{} has no name to copy it by", source.display()))?;
    Ok(destination.join(name))
}

/// What a tree that comes from elsewhere may take up: only the disk is the limit.
fn limits() -> ArchiveLimits {
    ArchiveLimits { bytes: u64::MAX, files: u64::MAX, ..ArchiveLimits::default() }
}

/// What is at a path of the sandbox, links followed; `None` if nothing is.
async fn kind_there(client: &ActionExecutionClient, path: &Path) -> anyhow::Result<Option<FileKind>> {
    match client.files().stat(RemotePath::from(path), true).await {
        Ok(entry) => Ok(Some(entry.kind)),
        Err(error) if error.status().is_some_and(|status| status == 404) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_marks_the_sandbox_and_a_dash_a_stream() {
        for (text, expected) in [
            ("-", End::Stream),
            (":/a", End::Sandbox("/a".into())),
            (":a", End::Sandbox("a".into())),
            ("a:b", End::Here("a:b".into())),
            ("./-", End::Here("./-".into())),
        ] {
            assert_eq!(End::parse(Path::new(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_copy_goes_into_a_directory_or_to_the_name() {
        for (source, destination, is_directory, expected) in [
            ("/a/file", "/b", true, "/b/file"),
            ("/a/file", "/b", false, "/b"),
            ("/a/file", "/b/", false, "/b/file"),
            ("/a/dir/", "/b", true, "/b/dir"),
            ("/a/dir/.", "/b", true, "/b"),
            (".", "/b", true, "/b"),
        ] {
            let found = target(Path::new(source), Path::new(destination), is_directory).unwrap();
            assert_eq!(found, Path::new(expected), "{source} {destination}");
        }
        assert!(target(Path::new("/"), Path::new("/b"), true).is_err());
    }
}
