//! `gloveport session snapshot` and `fork`: the files of a session as an image, and a session that begins with them.

use std::process::ExitCode;

use anyhow::Context as _;
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::SessionId;
use serde_json::json;
use tokio::time::timeout;

use super::{
    arguments::{ForkArgs, SnapshotArgs},
    report::Report,
    runtimes::Runtimes,
    start::tell,
};
use crate::{
    output::{print, print_json},
    signals,
};

/// Prints the name under which the engine knows the image.
pub(super) async fn snapshot(runtimes: &Runtimes, arguments: &SnapshotArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    let image = found.provider.snapshot(&found.sandbox.id, &arguments.name).await?;
    if arguments.json {
        print_json(&json!({"image": image}))?;
    } else {
        print(&format!("{image}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the id of the new session when its server answers.
pub(super) async fn fork(runtimes: &Runtimes, arguments: &ForkArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    let session = match &arguments.new {
        Some(id) => SessionId::new(id.clone())?,
        None => SessionId::random().map_err(|error| anyhow::anyhow!("cannot make a random id: {error}"))?,
    };
    let stop = signals::stop()?;
    let report = Report::new(arguments.quiet);
    let progress = report.progress();
    let provider = &*found.provider;
    let made = async {
        let made = tokio::select! {
            made = timeout(arguments.timeout, provider.fork(&found.sandbox.id, &session, &progress)) => made,
            () = stop.cancelled() => anyhow::bail!("interrupted; what was begun is being removed"),
        };
        let made = made.with_context(|| {
            format!("the fork was not created within {} s; --timeout allows more", arguments.timeout.as_secs_f64())
        })??;
        let id = made.id.clone();
        let options = WaitOptions { limit: arguments.timeout, cancel: stop.clone() };
        match wait_until_alive(provider, made, &options, &progress).await {
            Ok(sandbox) => Ok(sandbox),
            Err(error) => {
                provider.delete(&id).await.context("what was begun could not be removed")?;
                Err(error.into())
            }
        }
    };
    let made = made.await;
    tell(provider, &report, &progress.timings(), made, arguments.json).await
}
