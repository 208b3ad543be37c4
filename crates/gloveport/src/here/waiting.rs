//! Servers of the runtime `local` that wait for the next session (`DESIRED_NUM_WARM_SERVERS`).
//!
//! A command ends at once, and what it starts ahead would end with it. So they are kept by a process of their own, which
//! ends when nobody has used it for a time, or by `session gc`.

use std::{
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use anyhow::Context as _;
use gloveport_provider::ProviderContext;
use gloveport_provider_local::{Local, keeper};
use gloveport_runtime::WarmPool;

use super::local::options;
use crate::{cli::SandboxKeeperArgs, providers, signals};

/// Is the keeper until its end.
pub(crate) async fn keep(arguments: SandboxKeeperArgs) -> anyhow::Result<ExitCode> {
    let options = options(&providers::context()?)?;
    // No terminal ends it, and it holds no directory.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "it leads a session already");
    }
    rustix::process::chdir(Path::new("/")).context("cannot leave the current directory")?;
    let stop = signals::stop()?;
    keeper::keep(options, arguments.count, arguments.idle, stop.cancelled_owned()).await?;
    Ok(ExitCode::SUCCESS)
}

/// Lets as many wait as the environment wants, after a sandbox of this runtime was made. What fails costs time later, and
/// nothing else.
pub(crate) async fn refill_waiting(runtime: &str, context: &ProviderContext) {
    if runtime != Local::NAME {
        return;
    }
    if let Err(error) = try_refill(context).await {
        tracing::warn!("no server waits for the next session: {error:#}");
    }
}

async fn try_refill(context: &ProviderContext) -> anyhow::Result<()> {
    let WarmPool { initial, desired } = WarmPool::from_environment(&context.environment)?;
    if desired == 0 && initial == 0 {
        return Ok(());
    }
    // There is no backend that starts before its first session; so the first ones are those after it.
    if keeper::fill(options(context)?, desired).await? {
        return Ok(());
    }
    let count = desired.max(initial);
    let program = &context.program;
    let mut command = Command::new(program);
    command.args(["sandbox-keeper", "--count", &count.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(())
}

/// How many wait.
pub(crate) async fn count_waiting(context: &ProviderContext) -> usize {
    let Ok(options) = options(context) else { return 0 };
    match keeper::count(&options).await {
        Ok(count) => count.unwrap_or(0),
        Err(error) => {
            tracing::debug!(%error, "nobody knows how many servers wait");
            0
        }
    }
}

/// Ends those that wait, and tells how many that were.
pub(crate) async fn end_waiting(context: &ProviderContext) -> anyhow::Result<usize> {
    Ok(keeper::end(&options(context)?).await?.unwrap_or(0))
}
