//! Copies over the OpenHands interface: regular files alone, as zip archives.

use std::{fs, path::Path};

use anyhow::Context as _;
use gloveport_client::ActionExecutionClient;
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, RunAction};

use super::copied::{Copied, limits, target};
use crate::files::place::with_slashes;

/// Copies a file or a tree into the sandbox.
pub(super) async fn upload(client: &ActionExecutionClient, from: &Path, to: &Path) -> anyhow::Result<Copied> {
    let metadata = fs::metadata(from).with_context(|| format!("cannot read {}", from.display()))?;
    let to = with_slashes(target(from, to, is_directory(client, to).await?)?);
    if metadata.is_dir() {
        let done = client.upload_tree(from, &to, |_| {}).await?;
        return Ok(Copied::tree(&to, done.files, done.bytes));
    }
    upload_file(client, from, &to).await?;
    Ok(Copied::file(&to, metadata.len()))
}

/// Copies one file to a path in the sandbox.
pub(in crate::files) async fn upload_file(
    client: &ActionExecutionClient,
    from: &Path,
    to: &Path,
) -> anyhow::Result<()> {
    let directory = to.parent().with_context(|| format!("{} is not the path of a file", to.display()))?;
    let name = to.file_name().with_context(|| format!("{} is not the path of a file", to.display()))?;
    anyhow::ensure!(
        !name.as_encoded_bytes().ends_with(b".zip"),
        "this server unpacks every zip file, so {} cannot be stored as one",
        to.display()
    );
    // The server takes the name from the file that is sent.
    let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
    let link = temporary.path().join(name);
    let source = std::path::absolute(from).with_context(|| format!("cannot use the path {}", from.display()))?;
    // Not everybody may make links on Windows.
    gloveport_platform::link_to_file(&source, &link)
        .or_else(|error| fs::copy(&source, &link).map(drop).map_err(|_| error))
        .with_context(|| format!("cannot make the link {}", link.display()))?;
    Ok(client.copy_to(&link, text(directory)?, false).await?)
}

/// Copies a file or a tree from the sandbox.
pub(super) async fn download(client: &ActionExecutionClient, from: &Path, to: &Path) -> anyhow::Result<Copied> {
    let to = target(from, to, to.is_dir())?;
    if is_directory(client, from).await? {
        let done = client.download_tree(from, &to, &limits(), |_| {}).await?;
        return Ok(Copied::tree(&to, done.files, done.bytes));
    }
    // Only directories can be fetched, so the file is put into one.
    let quoted = format!("'{}'", text(from)?.replace('\'', "'\\''"));
    let made = run(client, &format!("d=$(mktemp -d) && cp -- {quoted} \"$d\"/ && echo \"$d\"")).await?;
    let directory = made.trim();
    let local = tempfile::tempdir().context("cannot make a temporary directory")?;
    let fetched = client.download_tree(directory, local.path(), &limits(), |_| {}).await;
    run(client, &format!("rm -r '{directory}'")).await?;
    fetched?;
    let name = from.file_name().with_context(|| format!("{} is not the path of a file", from.display()))?;
    let cannot_write = || format!("cannot write {}", to.display());
    let bytes = fs::copy(local.path().join(name), &to).with_context(cannot_write)?;
    Ok(Copied::file(&to, bytes))
}

/// Whether a path of the sandbox is a directory, by the list of its parent.
async fn is_directory(client: &ActionExecutionClient, path: &Path) -> anyhow::Result<bool> {
    let Some((parent, name)) = path.parent().zip(path.file_name()) else { return Ok(true) };
    let names = client.list_files(Some(text(parent)?)).await?;
    let directory = format!("{}/", name.to_string_lossy());
    Ok(names.contains(&directory))
}

async fn run(client: &ActionExecutionClient, command: &str) -> anyhow::Result<String> {
    let event = ActionEvent::from(Action::Run(RunAction::new(command)));
    match client.execute(&event).await? {
        Observation::Run(run) if run.metadata.exit_code == 0 => Ok(run.content),
        Observation::Run(run) => anyhow::bail!("the sandbox could not run `{command}`: {}", run.content),
        other => anyhow::bail!("the sandbox could not run `{command}`: {}", other.content()),
    }
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8, which this server cannot be asked for", path.display()))
}
