//! The flags of `gloveport plugin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
    pub(crate) command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
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
pub(crate) struct LsArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A manifest, a folder with one, or the name of a plugin.
    #[arg(value_name = "FILE|NAME")]
    pub(crate) plugin: String,
    /// Start it in a temporary sandbox, wait until it is healthy, and stop it.
    #[arg(long)]
    pub(crate) start: bool,
    /// Print JSON: `plugin`, `ok`, `message`, and `problems` with their places.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the plugin.
    pub(crate) name: String,
    /// Folder to write it to; created if it is missing. By default a new folder named after the plugin.
    pub(crate) directory: Option<PathBuf>,
    /// Print the names of the written files as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
