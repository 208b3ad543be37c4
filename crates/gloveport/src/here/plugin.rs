//! `gloveport plugin`: which plugins there are, whether they work, and a beginning for another one.

mod check;
mod list;
mod new;

use std::process::ExitCode;

use gloveport_contract::plugins::BUILT_IN;
use gloveport_plugin::Registry;
use gloveport_sandbox::{Owner, plugins};

use crate::plugin::{PluginArgs, PluginCommand};

pub(crate) async fn plugin(arguments: PluginArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    match arguments.command {
        PluginCommand::Ls(arguments) => list::list(&arguments),
        PluginCommand::Check(arguments) => check::check(&arguments, owner).await,
        PluginCommand::New(arguments) => new::new(&arguments),
    }
}

/// The plugins that there are. Those that are built in are known by name.
fn registry() -> Registry {
    plugins::registry(Vec::new())
}

/// The names of the plugins in the folders of this machine.
pub(crate) fn plugin_names() -> Vec<String> {
    let registry = registry();
    let others = registry.entries().iter().filter(|entry| BUILT_IN.iter().all(|known| known.name != entry.name));
    others.map(|entry| entry.name.clone()).collect()
}
