//! `gloveport config`: what the configuration is, where it comes from, and what is wrong with it.

mod check;
mod show;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use gloveport_config::{DEFAULT_TOML, LoadOptions, schema};

use crate::output::print;

/// Exit codes, as `--help` shows them.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 the configuration cannot be used, 2 wrong command line.";

/// Exit codes of `check`.
const CHECK_EXIT_CODES: &str = "Exit codes: 0 nothing is wrong (there may be hints, and settings of OpenHands that have no \
    effect in gloveport); 1 the configuration cannot be used, or a part of it is lost: an unknown section or key, a wrong \
    value, a section that is skipped, a variable that cannot be read, or a file that you named and that does not exist; 2 \
    wrong command line.";

/// Where the configuration comes from.
const SOURCES: &str = "The configuration is that of OpenHands 0.62. A value comes from the last of these that sets it: the \
    defaults; config.toml in the current directory, or --config-file; a .env file here or in a directory above; the \
    environment, with variables such as SANDBOX_TIMEOUT.";

#[derive(Debug, Args)]
#[command(after_help = SOURCES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show the values in force. Secrets are masked.
    #[command(after_help = EXIT_CODES)]
    Show(ShowArgs),
    /// Find mistakes, such as unknown keys and wrong values, and show where each setting has an effect.
    #[command(after_help = CHECK_EXIT_CODES)]
    Check(CheckArgs),
    /// Print the JSON schema of the file, for editors that check and complete TOML.
    Schema(SchemaArgs),
    /// Print a file with every key at its default, with explanations.
    Default,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The file to read instead of config.toml.
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Show all values, not only those that differ from the defaults.
    #[arg(long, short)]
    all: bool,
    /// Show where each value comes from.
    #[arg(long)]
    origin: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SchemaArgs {
    /// Print JSON, which is the only format.
    #[arg(long = "json")]
    _json: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// The file to read instead of config.toml.
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn config(arguments: ConfigArgs) -> anyhow::Result<ExitCode> {
    match arguments.command {
        ConfigCommand::Show(arguments) => show::show(&arguments),
        ConfigCommand::Check(arguments) => check::check(&arguments),
        ConfigCommand::Schema(_) => {
            print(&format!("{:#}\n", schema()))?;
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Default => {
            print(DEFAULT_TOML)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// This process, and the file that was named.
fn options(file: Option<&PathBuf>) -> anyhow::Result<LoadOptions> {
    Ok(LoadOptions { file: file.cloned(), ..LoadOptions::from_process()? })
}
