//! The command line.

#[cfg(test)]
mod rules;

use std::{ffi::OsString, net::IpAddr, path::PathBuf};

use clap::{
    ArgGroup, ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Id, Parser, Subcommand,
    builder::BoolishValueParser, error::ErrorKind, parser::ValueSource,
};

use crate::approve::ApproveArgs;
use crate::attach::DetachKeys;
use crate::confined;
use crate::files::{CopyArgs, EditArgs, ListArgs, ViewArgs, WriteArgs};
use crate::session::{
    MakeArgs,
    values::{duration, memory, variable},
};

/// Exit codes, as `--help` shows them.
const EXIT_CODES: &str = "Exit codes of `run`: the command's own; 124 if the time limit passed; 125 if gloveport itself \
    failed; 130 if it was interrupted twice; 2 for a wrong command line.\nExit codes of the other commands: 0 done, 1 \
    failed, 2 wrong command line.";

/// Exit code of a command line that contradicts itself.
pub(crate) const WRONG_COMMAND_LINE: u8 = 2;

/// Below `gloveport run --help`.
const RUN_HELP: &str = "Without --url and --runtime, and with the runtime `local`, there is no isolation: the command runs on \
    this machine as you, with all your files. It gets the variables of a fresh login; --env NAME passes another one on.\n\n\
    Exit codes: the command's own; 77 if it was refused as risky (--runtime); 124 if the time limit passed; 125 if \
    gloveport itself failed or the command is incomplete; 130 if it was interrupted twice; 141 if the reader of its \
    output has gone; 2 for a wrong command line.";

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
    Inside(gloveport_sandbox::Command),
    /// Keep servers of the runtime `local` waiting for the next session, as the session commands start it.
    #[command(hide = true)]
    SandboxKeeper(crate::session::waiting::SandboxKeeperArgs),
    /// Execute a recorded trajectory once more, and print the observations.
    #[command(after_help = crate::replay::EXIT_CODES)]
    Replay(crate::replay::ReplayArgs),
    /// Check a live server against the OpenHands 0.62 protocol, or compare two servers.
    #[command(after_help = crate::conformance::EXIT_CODES)]
    Conformance(crate::conformance::ConformanceArgs),
    /// Build images for sandboxes, and print their names.
    Image(crate::image::ImageArgs),
    /// List and check what can host sandboxes.
    Provider(crate::provider::ProviderArgs),
    /// List, check and create plugins.
    Plugin(crate::plugin::PluginArgs),
    /// Show and check the configuration.
    Config(crate::config::ConfigArgs),
    /// Show what this machine can do, what is missing, and how to fix it.
    Doctor(DoctorArgs),
    /// Print the completion script for a shell. It completes sessions, runtimes and plugins, too.
    #[command(after_help = crate::completions::INSTALL)]
    Completions(crate::completions::CompletionsArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("elsewhere").args(["url", "runtime"]).multiple(true))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunArgs {
    /// The command; several words are joined by blanks. Flags come before its first word: everything after it belongs to
    /// the command. `-` or nothing: a script from standard input.
    #[arg(trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    /// Run it on this server instead of in this process, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "GLOVEPORT_URL")]
    pub(crate) url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true, requires = "url")]
    pub(crate) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) key_file: Option<PathBuf>,
    /// Run it in a fresh sandbox of this runtime, and delete the sandbox afterwards: `local`, `docker`, `exec:PROGRAM`, or
    /// NAME for a program gloveport-provider-NAME in PATH. With `cli` it runs in this terminal, with neither a sandbox nor a
    /// persistent shell.
    #[arg(long, value_name = "NAME", env = "GLOVEPORT_RUNTIME")]
    pub(crate) runtime: Option<String>,
    /// Interrupt it after this time, such as 2.5, 90s or 15m, and end it if it keeps running.
    #[arg(long, value_name = "TIME", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) timeout: Option<f64>,
    /// Directory to run in. On a server and in a sandbox, a relative path starts where the tools start.
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set a variable: NAME=VALUE, or NAME to pass on your own; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Run it on a terminal of its own on the server or in the sandbox, and show that terminal on yours. Without a command,
    /// run a shell.
    #[arg(short = 't', long, requires = "elsewhere", conflicts_with_all = ["json", "timeout"])]
    pub(crate) tty: bool,
    /// Pass on what you type, each line when the command waits for one; --tty always does. Without it, a command that reads
    /// from your terminal gets the end of its input. Lines of a pipe or a file are always passed on.
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Run it on this machine, without a terminal of its own: its standard error stays apart from its output, and it reads
    /// the standard input of gloveport. With a terminal, both are one stream.
    #[arg(short = 'T', long, conflicts_with_all = ["tty", "interactive", "json"])]
    pub(crate) no_tty: bool,
    /// Id of the terminal. If it exists, attach to it again.
    #[arg(long, value_name = "ID", requires = "tty")]
    pub(crate) terminal: Option<String>,
    /// Keys that leave the terminal without ending it.
    #[arg(long, value_name = "KEYS", default_value_t, requires = "tty")]
    pub(crate) detach_keys: DetachKeys,
    /// Print the observation as JSON after the command has ended, instead of its output as it comes.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "The fresh sandbox of --runtime")]
    pub(crate) make: MakeArgs,
    #[command(flatten, next_help_heading = "The fresh sandbox of --runtime")]
    pub(crate) approve: ApproveArgs,
    /// A flag that says what a sandbox is made from, where only the configuration can tell whether there is one.
    #[arg(skip)]
    pub(crate) of_sandbox: Option<String>,
}

impl RunArgs {
    /// The flags as they were given, when they do not contradict each other. A flag counts more than a variable, and the
    /// server that GLOVEPORT_URL names more than the runtime of GLOVEPORT_RUNTIME.
    fn settled(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Self::from_arg_matches(matches)?;
        arguments.url = arguments.url.filter(|url| !url.is_empty());
        arguments.runtime = arguments.runtime.filter(|runtime| !runtime.is_empty());
        let is_flag = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        if arguments.url.is_some() && arguments.runtime.is_some() {
            match (is_flag("url"), is_flag("runtime")) {
                (true, true) => {
                    let text = "--url and --runtime exclude each other: the command runs either on a server or in a fresh sandbox\n";
                    return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
                }
                (false, true) => arguments.url = None,
                (_, false) => arguments.runtime = None,
            }
        }
        if arguments.no_tty {
            if is_flag("url") || is_flag("runtime") {
                let text = "--no-tty runs a command on this machine; shells of servers and sandboxes have a terminal\n";
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
            }
            (arguments.url, arguments.runtime) = (None, None);
        }
        let given = |group| matches.get_many::<Id>(group).into_iter().flatten().next();
        let of_sandbox = given("MakeArgs").map(|flag| flag.as_str().replace('_', "-"));
        let is_elsewhere = arguments.no_tty || arguments.url.is_some();
        let has_none = is_elsewhere || arguments.runtime.as_deref() == Some(confined::NAME);
        if let Some(flag) = given("ApproveArgs")
            && (has_none || (arguments.runtime.is_none() && of_sandbox.is_none()))
        {
            let text = format!(
                "--{flag} answers the question whether something risky may run in a sandbox, and `run` asks it only with \
                 --runtime NAME (or the variable GLOVEPORT_RUNTIME), for a fresh sandbox\n"
            );
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, text));
        }
        if let Some(flag) = of_sandbox {
            if has_none {
                return Err(no_sandbox(&flag, arguments.url.is_some()));
            }
            arguments.of_sandbox = arguments.runtime.is_none().then_some(flag);
        }
        Ok(arguments)
    }
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

/// That a flag says what a sandbox is made from, and there is none.
fn no_sandbox(flag: &str, on_server: bool) -> clap::Error {
    let text = format!(
        "--{flag} says what a sandbox is made from, and there is none without --runtime NAME (or the variable \
         GLOVEPORT_RUNTIME, or `runtime` in [core] of the configuration): the command would run {}\n",
        if on_server { "on a server" } else { "on this machine" }
    );
    clap::Error::raw(ErrorKind::MissingRequiredArgument, text)
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ServeArgs {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on; 0 lets the system choose.
    #[arg(long, short, default_value_t = 8000, allow_negative_numbers = true)]
    pub(crate) port: u16,
    /// Directory that tools start in; created if it is missing.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// File with the key that clients must send as X-Session-API-Key. The variables GLOVEPORT_KEY and SESSION_API_KEY
    /// do the same. Without any of them, a new key is printed and kept where your other commands find it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Serve without a key: every user of this machine can run commands, but web pages cannot. On any address other than
    /// loopback you also need --insecure.
    #[arg(long, conflicts_with = "key_file")]
    pub(crate) no_key: bool,
    /// Serve without a key on an address other than loopback: everyone who reaches the port can run commands. Implies
    /// --no-key.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Also answer to this name when there is no key; may be repeated. Addresses and localhost are always allowed.
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Start this plugin with the sandbox; may be repeated. jupyter and agent_skills are always available and start when
    /// first used; `gloveport plugin ls` lists the others.
    #[arg(long = "plugin", value_name = "NAME")]
    pub(crate) plugins: Vec<String>,
    /// Use no plugins.
    #[arg(long, conflicts_with = "plugins")]
    pub(crate) no_plugins: bool,
    /// Maximum memory of all the sandbox's processes together, such as 512m or 2g.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<u64>,
    /// The same in GiB, as a number alone.
    #[arg(long, value_name = "GIB", value_parser = seconds, hide = true, conflicts_with = "memory")]
    pub(crate) max_memory_gb: Option<f64>,
    /// Answer a run action as soon as its program waits for input, and say so. By default the answer comes after the soft
    /// time limit, as in OpenHands. Blocking actions are never answered early.
    #[arg(long, env = "GLOVEPORT_ANSWER_WHEN_WAITING", value_parser = BoolishValueParser::new())]
    pub(crate) answer_when_waiting: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A time limit, in seconds.
pub(crate) fn limit(text: &str) -> Result<f64, String> {
    duration(text).map(|limit| limit.as_secs_f64())
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1e9 => Ok(value),
        _ => Err("it must be a positive number".into()),
    }
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
