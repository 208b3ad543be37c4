//! Sessions whose tools are those of this process, for replays.

use std::path::PathBuf;

use gloveport_config::Config;
use gloveport_runtime::{Cli, InProcess, RuntimeOptions};
use gloveport_sandbox::{Owner, plugins, tools};

/// A session with the tools of the runtime `cli`, confined to this directory.
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such session")]
pub(crate) fn cli_session(config: Config, directory: PathBuf, owner: &Owner) -> anyhow::Result<RuntimeOptions> {
    let cli = Cli::from_config(&config).within(directory).owned_by(owner.spawner.clone());
    Ok(RuntimeOptions { attach_to_existing: true, ..RuntimeOptions::new(config, cli) })
}

/// A session with all tools, which begin in this directory.
pub(crate) fn own_session(config: Config, directory: PathBuf, owner: &Owner) -> anyhow::Result<RuntimeOptions> {
    let mut tools = tools::executor_options(owner, directory)?;
    // Cells of the trajectory have a kernel; without one none is started.
    tools.plugins = plugins::for_cells(plugins::interpreter())?;
    Ok(RuntimeOptions { attach_to_existing: true, ..RuntimeOptions::new(config, InProcess::new(tools)) })
}
