//! `gloveport plugin`: which plugins there are, whether they work, and a beginning for another one.

mod check;
mod list;
mod new;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use gloveport_plugin::Registry;

use crate::{Owner, plugins};

/// Exit codes, as `--help` shows them.
const EXIT_CODES: &str = "Exit codes: 0 done, and all is well; 1 something is wrong; 2 wrong command line.";

/// Where plugins are looked for.
const FOLDERS: &str = "gloveport looks for plugins in the folders of GLOVEPORT_PLUGINS (separated by colons), in \
    ~/.config/gloveport/plugins, /etc/gloveport/plugins and /usr/local/share/gloveport/plugins: NAME.toml, or \
    NAME/plugin.toml. The first one with a name wins.";

#[derive(Debug, Args)]
#[command(after_help = FOLDERS)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// List the plugins.
    #[command(visible_alias = "list", after_help = EXIT_CODES)]
    Ls(LsArgs),
    /// Show everything that is wrong with a plugin, and with --start whether it starts.
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Create a manifest and a small service to start from.
    #[command(after_help = EXIT_CODES)]
    New(NewArgs),
}

#[derive(Debug, Args)]
struct LsArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// A manifest, a folder with one, or the name of a plugin.
    #[arg(value_name = "FILE|NAME")]
    plugin: String,
    /// Start it in a temporary sandbox, wait until it is healthy, and stop it.
    #[arg(long)]
    start: bool,
    /// Print JSON: `plugin`, `ok`, `message`, and `problems` with their places.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct NewArgs {
    /// Name of the plugin.
    name: String,
    /// Folder to write it to; created if it is missing. By default a new folder named after the plugin.
    directory: Option<PathBuf>,
    /// Print the names of the written files as JSON.
    #[arg(long)]
    json: bool,
}

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
