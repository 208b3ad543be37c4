//! The flags of `gloveport run`.

use std::path::PathBuf;

use clap::{ArgGroup, ArgMatches, Args, FromArgMatches as _, Id, error::ErrorKind, parser::ValueSource};

use gloveport_provider_remote::Remote;

use crate::{
    approve::ApproveArgs,
    attach::DetachKeys,
    names::{CLI, LOCAL},
    session::{
        GatewayFlags, MakeArgs, Service,
        values::{limit, variable},
    },
};

/// Below `gloveport run --help`.
pub(super) const RUN_HELP: &str = "Without --url and --runtime there is no isolation: the command runs on this machine as you, with all your \
    files. --isolation container gives it the directory that you are in and what the system has, and nothing else. The \
    runtime `local` keeps its sandbox apart as far as this machine can. The command gets the variables of a fresh login; --env NAME passes another one on.\n\n\
    Exit codes: the command's own; 77 if it was refused as risky (--runtime); 124 if the time limit passed; 125 if \
    gloveport itself failed or the command is incomplete; 130 if it was interrupted twice; 141 if the reader of its \
    output has gone; 2 for a wrong command line.";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("elsewhere").args(["url", "runtime", "gateway"]).multiple(true))]
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
    #[command(flatten)]
    pub(crate) gateway: GatewayFlags,
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
    /// The gateway in whose sandbox it runs.
    #[arg(skip)]
    pub(crate) service: Option<Service>,
}

impl RunArgs {
    /// The flags as they were given, when they do not contradict each other. A flag counts more than a variable, and the
    /// server that GLOVEPORT_URL names more than the runtime of GLOVEPORT_RUNTIME.
    pub(super) fn settled(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Self::from_arg_matches(matches)?;
        arguments.url = arguments.url.filter(|url| !url.is_empty());
        arguments.runtime = arguments.runtime.filter(|runtime| !runtime.is_empty());
        let is_flag = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_flag("url") && arguments.gateway.is_given() {
            let text = "--url and --gateway exclude each other: the command runs either on the server of a sandbox or in a fresh sandbox of a gateway\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        let has_server = arguments.url.is_some() && !is_flag("runtime") && !arguments.gateway.is_given();
        if !has_server && !arguments.no_tty {
            let service = std::mem::take(&mut arguments.gateway).service(arguments.runtime.as_deref());
            let told = |error| clap::Error::raw(ErrorKind::ArgumentConflict, format!("{error}\n"));
            arguments.service = service.map_err(told)?;
        }
        if arguments.service.is_some() {
            (arguments.runtime, arguments.url) = (Some(Remote::NAME.to_owned()), None);
        }
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
            if is_flag("url") || is_flag("runtime") || arguments.gateway.is_given() {
                let text = "--no-tty runs a command on this machine; shells of servers and sandboxes have a terminal\n";
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
            }
            (arguments.url, arguments.runtime) = (None, None);
        }
        let given = |group| matches.get_many::<Id>(group).into_iter().flatten().next();
        let of_sandbox = given("MakeArgs").map(|flag| flag.as_str().replace('_', "-"));
        let is_elsewhere = arguments.no_tty || arguments.url.is_some();
        let has_none = is_elsewhere || arguments.runtime.as_deref() == Some(CLI);
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
            if arguments.runtime.is_none() && arguments.make.keep_here() {
                arguments.runtime = Some(LOCAL.to_owned());
            }
            arguments.of_sandbox = arguments.runtime.is_none().then_some(flag);
        }
        Ok(arguments)
    }
}

/// That a flag says what a sandbox is made from, and there is none.
pub(super) fn no_sandbox(flag: &str, on_server: bool) -> clap::Error {
    let text = format!(
        "--{flag} says what a sandbox is made from, and there is none without --runtime NAME (or the variable \
         GLOVEPORT_RUNTIME, or `runtime` in [core] of the configuration) or --isolation container: the command would run {}\n",
        if on_server { "on a server" } else { "on this machine" }
    );
    clap::Error::raw(ErrorKind::MissingRequiredArgument, text)
}
