//! The command line.

mod keeper;
#[cfg(test)]
mod rules;
mod run;
mod serve;

use std::ffi::OsString;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::run::{RUN_HELP, no_sandbox};
pub(crate) use self::{keeper::SandboxKeeperArgs, run::RunArgs, serve::ServeArgs};
use crate::files::{CopyArgs, EditArgs, ListArgs, ViewArgs, WriteArgs};

/// Exit codes, as `--help` shows them.
const EXIT_CODES: &str = "Exit codes of `run`: the command's own; 124 if the time limit passed; 125 if gloveport itself \
    failed; 130 if it was interrupted twice; 2 for a wrong command line.\nExit codes of the other commands: 0 done, 1 \
    failed, 2 wrong command line.";

/// A runtime for AI agents: a shell that keeps its state, behind one small server.
#[derive(Debug, Parser)]
#[command(name = "gloveport", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Understands the command line, or ends the program with what is wrong or was asked for.
pub(crate) fn parse(words: Vec<OsString>) -> Cli {
    // To know all commands takes longer than many a command runs.
    if words.get(1).is_some_and(|word| word == "run")
        && let Ok(matches) = RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(&words[1..])
        && let Ok(arguments) = RunArgs::settled(&matches)
    {
        return Cli { command: Command::Run(Box::new(arguments)) };
    }
    try_parse(words).unwrap_or_else(|error| error.exit())
}

fn try_parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut known = Cli::command();
    let mut matches = known.try_get_matches_from_mut(words)?;
    if let Some(("run", given)) = matches.subcommand() {
        // The usage that an error shows is that of the subcommand.
        let settled = RunArgs::settled(given);
        let settled = match known.find_subcommand_mut("run") {
            Some(run) => settled.map_err(|error| error.format(run)),
            None => settled,
        };
        return Ok(Cli { command: Command::Run(Box::new(settled?)) });
    }
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut known))
}

/// The command line without what is not for people, for completions.
pub(crate) fn visible() -> clap::Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("gloveport")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(shown)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a persistent shell and print its output as it comes.
    #[command(after_help = RUN_HELP)]
    Run(Box<RunArgs>),
    /// Run a cell in an IPython kernel and print its output as it comes.
    #[command(after_help = crate::ipython::EXIT_CODES)]
    Ipython(crate::ipython::IpythonArgs),
    /// Show a file with numbered lines, or the contents of a directory.
    View(ViewArgs),
    /// Write a whole file, or some of its lines.
    Write(WriteArgs),
    /// Change a file: replace a text, insert lines, create it, undo an edit.
    Edit(EditArgs),
    /// List a directory.
    Ls(ListArgs),
    /// Copy files and trees into and out of a sandbox.
    Cp(CopyArgs),
    /// Start, use and end sessions: sandboxes that stay, on this machine or elsewhere.
    Session(crate::session::SessionArgs),
    /// Serve a sandbox on this machine over HTTP.
    Serve(ServeArgs),
    /// What a sandbox is served by.
    #[command(flatten)]
    Inside(crate::here::Inside),
    /// Keep servers of the runtime `local` waiting for the next session, as the session commands start it.
    #[command(hide = true)]
    SandboxKeeper(SandboxKeeperArgs),
    /// Execute a recorded trajectory once more, and print the observations.
    #[command(after_help = crate::replay::EXIT_CODES)]
    Replay(crate::replay::ReplayArgs),
    /// Check a live server against the protocol of OpenHands or SWE-ReX, or compare two servers.
    #[command(after_help = crate::conformance::EXIT_CODES)]
    Conformance(crate::conformance::ConformanceArgs),
    /// Serve the sandboxes of any runtime over HTTP, for many agents, as the Remote Runtime API of OpenHands.
    ///
    /// Without a command it serves until it is ended. The sandboxes outlive it.
    #[command(after_help = crate::gateway::HELP)]
    Gateway(Box<crate::gateway::GatewayArgs>),
    /// Build images for sandboxes, and print their names.
    Image(crate::image::ImageArgs),
    /// List and check what can host sandboxes.
    Provider(crate::provider::ProviderArgs),
    /// List, check and create plugins.
    Plugin(crate::plugin::PluginArgs),
    /// Give MCP clients a sandbox as a tool, and try tools of other MCP servers by hand.
    ///
    /// Without a command it is an MCP server on standard input and output, which an MCP client starts. The sandbox is made for
    /// the client, and ends with it.
    #[command(after_help = crate::mcp::HELP)]
    Mcp(crate::mcp::McpArgs),
    /// Show and check what was recorded of sandboxes (`session start --audit FILE`).
    Audit(crate::audit::AuditArgs),
    /// Show and check the configuration.
    Config(crate::config::ConfigArgs),
    /// Show what this machine can do, what is missing, and how to fix it.
    Doctor(crate::doctor::DoctorArgs),
    /// Print the completion script for a shell. It completes sessions, runtimes and plugins, too.
    #[command(after_help = crate::completions::INSTALL)]
    Completions(crate::completions::CompletionsArgs),
}

/// Tells that a flag of `run` says what a sandbox is made from, when the configuration names no runtime either.
pub(crate) fn refuse_without_sandbox(flag: &str) -> anyhow::Result<()> {
    let mut known = Cli::command();
    // The usage has the whole name of the subcommand.
    known.build();
    let error = no_sandbox(flag, false);
    let error = match known.find_subcommand_mut("run") {
        Some(run) => error.format(run),
        None => error,
    };
    Ok(error.print()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_is_understood_alone_as_among_all_commands() {
        for words in
            ["run true", "run --runtime cli -- echo --json", "run --timeout 2 --env A=b --cwd /x a -b", "run -"]
        {
            let words = || std::iter::once("gloveport").chain(words.split(' ')).map(OsString::from);
            let all = Cli::try_parse_from(words()).unwrap();
            assert_eq!(format!("{:?}", parse(words().collect())), format!("{all:?}"));
        }
    }
}
