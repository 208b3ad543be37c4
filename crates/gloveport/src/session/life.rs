//! `gloveport session pause`, `resume`, `stop` and `rm`: several sessions at once, each with its own result.

use std::process::ExitCode;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::{Progress, SandboxState, SessionId};
use serde_json::json;

use super::{
    arguments::{IdsArgs, RemoveArgs, ResumeArgs},
    history::History,
    runtimes::{Missing, Runtimes},
};
use crate::output::{print, print_json, tell};

/// Sessions that are worked on at the same time.
const AT_ONCE: usize = 8;

pub(super) async fn pause(runtimes: &Runtimes, arguments: &IdsArgs) -> anyhow::Result<ExitCode> {
    each(&arguments.ids, arguments.json, async |id| {
        let found = runtimes.find(id).await?;
        found.provider.pause(&found.sandbox.id).await?;
        Ok(found.name().to_owned())
    })
    .await
}

/// Returns when their servers answer.
pub(super) async fn resume(runtimes: &Runtimes, arguments: &ResumeArgs) -> anyhow::Result<ExitCode> {
    each(&arguments.ids, arguments.json, async |id| {
        let found = runtimes.find(id).await?;
        found.provider.resume(&found.sandbox.id).await?;
        let options = WaitOptions { limit: arguments.timeout, ..WaitOptions::default() };
        let sandbox = found.provider.find(&found.sandbox.id).await?.context("it is gone")?;
        wait_until_alive(&*found.provider, sandbox, &options, &Progress::silent()).await?;
        Ok(found.name().to_owned())
    })
    .await
}

pub(super) async fn stop(runtimes: &Runtimes, arguments: &IdsArgs) -> anyhow::Result<ExitCode> {
    each(&arguments.ids, arguments.json, async |id| {
        let found = runtimes.find(id).await?;
        // One that is gone meanwhile is stopped, too.
        found.provider.delete(&found.sandbox.id).await?;
        Ok(found.name().to_owned())
    })
    .await
}

pub(super) async fn remove(runtimes: &Runtimes, arguments: &RemoveArgs) -> anyhow::Result<ExitCode> {
    each(&arguments.ids, arguments.json, async |id| {
        let found = match runtimes.find(id).await {
            Ok(found) => found,
            // Of a session that was stopped there is only the history, and only its whole id means it.
            Err(error) if error.is::<Missing>() => {
                let sid = SessionId::new(id)?;
                let Some(history) = History::of(&runtimes.context, sid.as_str())? else { return Err(error) };
                if !history.exists().await? {
                    return Err(error);
                }
                if !arguments.force {
                    runtimes.ensure_gone(&sid, history.runtime().await?).await?;
                }
                return if history.remove().await? { Ok(id.to_owned()) } else { Err(error) };
            }
            Err(error) => return Err(error),
        };
        let state = &found.sandbox.state;
        anyhow::ensure!(
            arguments.force || !state.is_live(),
            "the session `{}` is {}; stop it first, or remove it with -f",
            found.name(),
            if *state == SandboxState::Running { "running".to_owned() } else { state.to_string() }
        );
        found.provider.delete(&found.sandbox.id).await?;
        if let Some(history) = History::of(&runtimes.context, found.name())? {
            history.remove().await.context("the sandbox is gone, but its history remains")?;
        }
        Ok(found.name().to_owned())
    })
    .await
}

/// Does something with each, and tells the id or the error of each in their order.
pub(super) async fn each(
    ids: &[String],
    as_json: bool,
    act: impl AsyncFn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<ExitCode> {
    let mut results = stream::iter(ids).map(|id| act(id)).buffered(AT_ONCE).zip(stream::iter(ids));
    let mut failed = false;
    let mut told = Vec::new();
    while let Some((result, given)) = results.next().await {
        match result {
            Ok(id) if as_json => told.push(json!({"id": id, "ok": true})),
            Ok(id) => print(&format!("{id}\n"))?,
            Err(error) => {
                failed = true;
                let reason = crate::explained(&error);
                // One of several, while the others go on.
                tell(&format!("gloveport: {reason}"));
                told.push(json!({"id": given, "ok": false, "error": reason}));
            }
        }
    }
    if as_json {
        print_json(&told)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
