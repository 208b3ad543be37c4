//! `gloveport plugin`: which plugins there are, whether they work, and a beginning for another one.

mod arguments;
mod check;
mod list;
mod new;

use std::process::ExitCode;

use gloveport_plugin::Registry;

pub(crate) use self::arguments::PluginArgs;
use self::arguments::PluginCommand;
use crate::{Owner, plugins};

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
