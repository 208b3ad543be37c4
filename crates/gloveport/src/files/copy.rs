//! `gloveport cp`.

pub(crate) mod copied;
mod native;
pub(crate) mod progress;
pub(super) mod zipped;

use std::{io::IsTerminal as _, path::Path, process::ExitCode};

use gloveport_client::{ActionExecutionClient, RemotePath};
use gloveport_protocol::files::FileKind;

pub(crate) use self::copied::{Copied, End};
use self::progress::Progress;
use super::{
    CopyArgs,
    place::{Place, lacks_native_files},
};
use crate::{exit::WRONG_COMMAND_LINE, here, output::print_json};

pub(crate) async fn copy(arguments: CopyArgs) -> anyhow::Result<ExitCode> {
    let (source, destination) = (End::parse(&arguments.source), End::parse(&arguments.destination));
    if let Some(error) = destination.mixes_with_json().filter(|_| arguments.json) {
        error.print()?;
        return Ok(ExitCode::from(WRONG_COMMAND_LINE));
    }
    let place = Place::new(&arguments.server)?;
    let progress = Progress::new(!arguments.quiet && std::io::stderr().is_terminal());
    let copied = match &place {
        Place::Here(_) => here::copy(source.here(), destination.here(), &progress).await?,
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

/// What is at a path of the sandbox, links followed; `None` if nothing is.
async fn kind_there(client: &ActionExecutionClient, path: &Path) -> anyhow::Result<Option<FileKind>> {
    match client.files().stat(RemotePath::from(path), true).await {
        Ok(entry) => Ok(Some(entry.kind)),
        Err(error) if error.status().is_some_and(|status| status == 404) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
