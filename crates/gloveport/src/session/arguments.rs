//! The flags of the session commands.

use std::{path::PathBuf, time::Duration};

use clap::{Arg, Args, Subcommand};
use gloveport_protocol::kernels::DEFAULT_KERNEL as DEFAULT;
use gloveport_provider::{ExposedPort, Mount, NetworkPolicy, RunAs};

use super::{
    handling::Handling,
    values::{self, SecretFrom},
};
use crate::{
    approve::ApproveArgs,
    attach::DetachKeys,
    files::{EditWhat, ViewWhat, WriteWhat},
    ipython::CellArgs,
};

/// Below `gloveport session --help`.
const SESSION_HELP: &str = "ID is the id of a session or of its sandbox, or the beginning of one if it matches no other. \
    Without --runtime, `start` uses the runtime that the configuration names, or else `local`. The other commands look \
    there first and then in all runtimes: the built-in ones, and programs named gloveport-provider-NAME in PATH.\n\n\
    A first session:\n  \
    id=$(gloveport session start)\n  \
    gloveport session exec \"$id\" -- 'cd /tmp && ls'\n  \
    gloveport session cp notes.txt \"$id\":notes.txt\n  \
    gloveport session rm -f \"$id\"\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong command line, 77 refused as risky; `exec`, `attach` and `ipython` have their own.";

/// Below `gloveport session start --help`.
const START_HELP: &str = "The session goes on until you stop it, or until --ttl or --idle-stop end it. When its server \
    answers, standard output gets the id and nothing else; progress goes to standard error.\n\n\
    The configuration fills in what the flags leave open: runtime, image, volumes, variables and more. `gloveport config \
    check` shows which settings have an effect.\n\n\
    Examples:\n  \
    id=$(gloveport session start --workspace . --ttl 2h)\n  \
    gloveport session start build --secret GITHUB_TOKEN --label team=infra --memory 2g\n  \
    gloveport session start --runtime docker --image debian:13 --mount /data:/data:ro --cpus 2\n\n\
    Exit codes: 0 it runs; 1 it failed, and nothing is left of it; 2 wrong command line.";

/// Below `gloveport session exec --help`.
const EXEC_HELP: &str = "The words form one shell command line, which runs in the session's own shell: variables and the \
    directory stay for the next one. With --cwd, --env or -d it runs in a shell of its own. C-c interrupts the command, a \
    second C-c leaves it running. The command and its output are added to the session's history, without the \
    session's key and secrets; with a terminal, only the exit code is added.\n\n\
    If the section [security] of the configuration finds the command risky, you are asked at the terminal before it \
    begins; without a terminal it is refused. --yes and --deny answer in advance. Question and answer are in the \
    history.\n\n\
    Examples:\n  \
    gloveport session exec build -- make -j8\n  \
    gloveport session exec build 'cd src && export A=1'\n  \
    gloveport session exec -it build vim notes.txt\n  \
    echo 'ls | wc -l' | gloveport session exec build\n\n\
    Exit codes: the command's own; 77 if it was refused as risky and never began; 124 if the time limit passed; 125 if gloveport itself failed; 130 if it was \
    interrupted twice; 2 for a wrong command line.";

/// Below `gloveport session cp --help`.
const COPY_HELP: &str = "The copy is added to the session's history, but not the contents. If the section [security] of \
    the configuration finds it risky, you are asked at the terminal first, as with `exec`.\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong command line, 77 refused as risky.";

/// Below `gloveport session view --help`, and those of `write` and `edit`.
const FILES_HELP: &str = "PATH is a path in the session; a relative path starts where its tools start. What you read or \
    change is added to the session's history, like an agent's work, without the session's key and secrets. If the \
    section [security] of the configuration finds it risky, you are asked at the terminal first, as with `exec`.\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong command line, 77 refused as risky.";

/// Below `gloveport session ipython --help`.
const IPYTHON_HELP: &str = "The kernel and its variables stay. You need a session that was started with --plugin jupyter. C-c \
    interrupts the running cell, a second C-c leaves it running. The cell and its output are added to the session's \
    history, without the session's key and secrets. If the section [security] of the configuration finds the cell risky, \
    you are asked at the terminal first, as with `exec`.\n\n\
    Examples:\n  \
    gloveport session ipython build 'import pandas; pandas.__version__'\n  \
    gloveport session ipython --timeout 15m build < train.py\n\n\
    Exit codes: 0 if the cell ran to its end, 1 if it raised an exception, 77 if it was refused as risky and never began, \
    124 if the time limit passed, 125 if gloveport itself failed or the kernel ended, 130 if it was interrupted twice, 2 \
    for a wrong command line.";

/// Below `gloveport session ps --help` and that of `interrupt`.
const INSIDE_HELP: &str = "A command that never ends keeps the next ones waiting. Examples:\n  \
    gloveport session ps build\n  \
    gloveport session interrupt build\n  \
    gloveport session ps --url http://127.0.0.1:8000";

/// Below `gloveport session attach --help`.
const ATTACH_HELP: &str = "When you attach again, you see what happened in the meantime. Several people can attach at once. \
    The session's history has when someone was attached, but not what goes through the terminal. If the section \
    [security] of the configuration has every command confirmed, you are asked first, because what you type on the \
    terminal is not rated.\n\n\
    Exit codes: that of the terminal's program when it ends; 0 after the detach keys; 77 if it was refused; 125 if \
    gloveport itself failed; 2 for a wrong command line.";

#[derive(Debug, Args)]
#[command(after_help = SESSION_HELP)]
pub(crate) struct SessionArgs {
    /// What hosts the sandbox: `local`, `docker`, `exec:PROGRAM`, or NAME for a program gloveport-provider-NAME in PATH.
    #[arg(long, value_name = "NAME", env = "GLOVEPORT_RUNTIME", global = true)]
    pub(super) runtime: Option<String>,
    #[command(subcommand)]
    pub(super) command: SessionCommand,
}

impl SessionArgs {
    /// Whether the exit code is that of a command in the sandbox.
    pub(crate) const fn runs_a_command(&self) -> bool {
        matches!(self.command, SessionCommand::Exec(_) | SessionCommand::Attach(_) | SessionCommand::Ipython(_))
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// Start a session and print its id.
    #[command(visible_alias = "create", after_help = START_HELP)]
    Start(Box<StartArgs>),
    /// Run a command in a session.
    #[command(after_help = EXEC_HELP)]
    Exec(ExecArgs),
    /// Run a cell in an IPython kernel of a session and print its output as it comes.
    #[command(after_help = IPYTHON_HELP)]
    Ipython(IpythonArgs),
    /// Show a file of a session with numbered lines, or the contents of a directory.
    #[command(after_help = FILES_HELP)]
    View(ViewArgs),
    /// Write a whole file of a session, or some of its lines.
    #[command(after_help = FILES_HELP)]
    Write(WriteArgs),
    /// Change a file of a session: replace a text, insert lines, create it, undo an edit.
    #[command(after_help = FILES_HELP)]
    Edit(EditArgs),
    /// Show the commands that run in a session and those that wait for their turn.
    #[command(after_help = INSIDE_HELP)]
    Ps(PsArgs),
    /// Interrupt a command in a session, like C-c: the running one, or the one that you name.
    #[command(after_help = INSIDE_HELP)]
    Interrupt(InterruptArgs),
    /// End a command in a session. A waiting command never begins; a running one is interrupted, and quit if it keeps
    /// running.
    #[command(after_help = INSIDE_HELP)]
    Kill(InterruptArgs),
    /// Attach to a terminal of a session, which is created if it is missing. The detach keys leave it running.
    #[command(after_help = ATTACH_HELP)]
    Attach(AttachArgs),
    /// Show the history of a session: actions and observations.
    Events(EventsArgs),
    /// List the sessions that have a sandbox.
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    /// Show everything about a session.
    Show(ShowArgs),
    /// Pause sessions. Their files and, where the runtime can, their processes stay.
    Pause(IdsArgs),
    /// Resume paused sessions.
    Resume(ResumeArgs),
    /// End the sandboxes of sessions, and keep the histories.
    Stop(IdsArgs),
    /// Remove sessions: sandboxes and histories.
    #[command(visible_alias = "delete")]
    Rm(RemoveArgs),
    /// Keep the files of a session as an image, and print its name. `start --image` starts sessions from it.
    Snapshot(SnapshotArgs),
    /// Start a session with the files and settings of another one, and print its id. It gets no secrets and no processes.
    Fork(ForkArgs),
    /// Show the log of a session's server.
    Logs(LogsArgs),
    /// Copy files and trees into and out of a session. The path in it is ID:PATH; `-` is standard input or output.
    #[command(after_help = COPY_HELP)]
    Cp(CopyArgs),
    /// Remove garbage: what is left of sandboxes that have ended, orphans, and servers that wait for a session.
    Gc(GcArgs),
    /// Print the URL of a session's server, or of one of its ports.
    Url(UrlArgs),
    /// Print shell commands that set GLOVEPORT_URL and GLOVEPORT_KEY for the other gloveport commands.
    #[command(after_help = "This prints the key. Use it like this: eval \"$(gloveport session env ID)\"")]
    Env(EnvArgs),
}

/// What a sandbox is made from.
#[derive(Debug, Default, Args)]
pub(crate) struct MakeArgs {
    /// The image that the sandbox is made from.
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<String>,
    /// Directory of this machine to work in; it stays when the session ends. By default, one that ends with the sandbox.
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) workspace: Option<PathBuf>,
    /// Mount a directory of this machine (/DIRECTORY:/PATH) or a volume (NAME:/PATH) in the sandbox. With `:ro` the sandbox
    /// cannot write to it, with `:overlay` the directory does not change. May be repeated.
    #[arg(long, short = 'v', visible_alias = "volume", value_name = "SOURCE:PATH[:MODE]", value_parser = values::mount)]
    pub(super) mount: Vec<Mount>,
    /// User that its server and tools work as, by number; by default the image or the runtime chooses.
    #[arg(long, value_name = "USER[:GROUP]", value_parser = values::user)]
    pub(super) user: Option<RunAs>,
    /// Set a variable that stays out of logs and histories: NAME to pass on your own, or NAME=@FILE; may be repeated.
    #[arg(long, value_name = "NAME[=@FILE]", value_parser = values::secret)]
    pub(super) secret: Vec<SecretFrom>,
    /// A label to find it by; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::pair)]
    pub(super) label: Vec<(String, String)>,
    /// Give a URL to a port of a program in the sandbox; may be repeated. See `session url`.
    #[arg(long, short, value_name = "NAME[:PORT]", value_parser = values::port)]
    pub(super) port: Vec<ExposedPort>,
    /// Maximum memory of all its processes together, such as 512m or 2g.
    #[arg(long, value_name = "SIZE", value_parser = values::memory)]
    pub(super) memory: Option<u64>,
    /// Maximum number of processors, such as 1.5.
    #[arg(long, value_name = "NUMBER", value_parser = values::processors, allow_negative_numbers = true)]
    pub(super) cpus: Option<f64>,
    /// Maximum number of processes and threads.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(super) processes: Option<u64>,
    /// Give it the machine's GPUs.
    #[arg(long)]
    pub(super) gpus: bool,
    /// Delete it after this time, such as 90s, 15m, 2h or 1d.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration)]
    pub(super) ttl: Option<Duration>,
    /// Stop it when it has had no requests for this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration)]
    pub(super) idle_stop: Option<Duration>,
    /// What it may talk to: `full`, `none`, or hosts and networks, separated by commas.
    #[arg(long, value_name = "POLICY", value_parser = values::network)]
    pub(super) network: Option<NetworkPolicy>,
    /// Start this plugin, such as jupyter or vscode; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(super) plugin: Vec<String>,
}

/// A session that is to be started.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct StartArgs {
    /// The session's id; random by default.
    #[arg(value_name = "ID")]
    pub(super) name: Option<String>,
    /// The same.
    #[arg(long, value_name = "ID", conflicts_with = "name", hide_short_help = true)]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) make: MakeArgs,
    /// Set a variable: NAME=VALUE, or NAME to pass on your own; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = values::variable)]
    pub(super) env: Vec<(String, String)>,
    /// Return when its server answers. This is the default.
    #[arg(long, overrides_with = "no_wait")]
    pub(super) wait: bool,
    /// Return as soon as the runtime has created it.
    #[arg(long, overrides_with = "wait")]
    pub(super) no_wait: bool,
    /// Give up after this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration, default_value = "2m")]
    pub(super) timeout: Duration,
    /// Print everything about it as JSON instead of its id.
    #[arg(long)]
    pub(super) json: bool,
    /// Do not show progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct ExecArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The command; several words are joined by blanks. Flags come before its first word: everything after it belongs to
    /// the command. `-` or nothing: a script from standard input.
    #[arg(trailing_var_arg = true)]
    pub(super) command: Vec<String>,
    /// Pass on the lines of standard input, each when the command waits for one.
    #[arg(long, short)]
    pub(super) interactive: bool,
    /// Run it on a terminal of its own, and show that terminal on yours. Without a command, run a shell. It keeps running
    /// when you leave it with the detach keys.
    #[arg(long, short, conflicts_with_all = ["json", "timeout", "detach"])]
    pub(super) tty: bool,
    /// Keys that leave the terminal without ending it.
    #[arg(long, value_name = "KEYS", default_value_t, requires = "tty")]
    pub(super) detach_keys: DetachKeys,
    /// Start it and print the id of the command, without its output.
    #[arg(long, short, conflicts_with_all = ["interactive", "json", "timeout"])]
    pub(super) detach: bool,
    /// Directory to run in. A relative path starts where the tools of the session or server start.
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(super) cwd: Option<PathBuf>,
    /// Set a variable: NAME=VALUE, or NAME to pass on your own; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = values::variable)]
    pub(super) env: Vec<(String, String)>,
    /// Interrupt it after this time, such as 90s or 15m.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration)]
    pub(super) timeout: Option<Duration>,
    /// Print the observation as JSON after the command has ended, instead of its output as it comes.
    #[arg(long)]
    pub(super) json: bool,
    /// Leave the command out of the session's history.
    #[arg(long)]
    pub(super) no_history: bool,
    #[command(flatten)]
    pub(super) approve: ApproveArgs,
}

/// Whether something is asked about, and whether it is kept.
#[derive(Debug, Args)]
pub(super) struct RecordArgs {
    /// Leave it out of the session's history.
    #[arg(long)]
    pub(super) no_history: bool,
    #[command(flatten)]
    pub(super) approve: ApproveArgs,
}

impl RecordArgs {
    /// How the flags want an operation to be handled.
    pub(super) const fn handling(&self, input_is_taken: bool) -> Handling {
        Handling { approve: self.approve, input_is_taken, unrecorded: self.no_history }
    }
}

#[derive(Debug, Args)]
pub(super) struct ViewArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) what: ViewWhat,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

#[derive(Debug, Args)]
pub(super) struct WriteArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) what: WriteWhat,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

#[derive(Debug, Args)]
#[command(mut_args(behind_the_change))]
pub(super) struct EditArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) what: EditWhat,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

/// Flags may stand behind the change, too.
fn behind_the_change(argument: Arg) -> Arg {
    let is_flag = argument.get_long().is_some();
    argument.global(is_flag)
}

#[derive(Debug, Args)]
pub(super) struct IpythonArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Name of the kernel; it is started if it does not exist. The agent's kernel is `default`.
    #[arg(long, value_name = "NAME", default_value = DEFAULT)]
    pub(super) kernel: String,
    #[command(flatten)]
    pub(super) cell: CellArgs,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

/// A session, or a server that somebody serves.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Ask this server instead of that of a session, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true)]
    pub(super) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct PsArgs {
    /// The session.
    #[arg(value_name = "ID", required_unless_present = "url", conflicts_with = "url")]
    pub(super) id: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Also show those that have ended.
    #[arg(long, short)]
    pub(super) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InterruptArgs {
    /// The session (not with --url), then the command: its id in `ps` or the beginning of it. By default, the running
    /// command.
    #[arg(value_name = "ID [COMMAND]", num_args = 0..=2)]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AttachArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Which terminal of the session, by a name of your choice.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(super) terminal: String,
    /// Keys that leave the terminal without ending it.
    #[arg(long, value_name = "KEYS", default_value_t)]
    pub(super) detach_keys: DetachKeys,
    #[command(flatten)]
    pub(super) record: RecordArgs,
}

#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// The session. If its sandbox is gone, give the whole id.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Keep printing new events.
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Begin with the event that has this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub(super) since: i64,
    /// Only these actions or observations, such as run or message; may be repeated.
    #[arg(long, value_name = "KIND")]
    pub(super) kind: Vec<String>,
    /// Print each event as one line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Also list those that have ended and left something behind, such as their history.
    #[arg(long, short)]
    pub(super) all: bool,
    /// Only those with this label; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::pair)]
    pub(super) label: Vec<(String, String)>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Print the sessions' ids only.
    #[arg(long, short, conflicts_with = "json")]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct IdsArgs {
    /// The sessions.
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The sessions.
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    /// Give up waiting for their servers after this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration, default_value = "2m")]
    pub(super) timeout: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// The sessions.
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    /// Also remove sessions that run, and histories of sessions whose runtime cannot say whether they run.
    #[arg(long, short)]
    pub(super) force: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct SnapshotArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Name of the snapshot: letters, digits, `_`, `.` and `-`.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ForkArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Id of the new session; random by default.
    #[arg(long = "id", value_name = "ID")]
    pub(super) new: Option<String>,
    /// Give up after this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, default_value = "10m", value_parser = values::duration)]
    pub(super) timeout: Duration,
    /// Print everything about it as JSON instead of its id.
    #[arg(long)]
    pub(super) json: bool,
    /// Do not show progress.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Keep printing until the sandbox ends.
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Begin with this many lines from the end.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(super) tail: Option<usize>,
    /// Print each line as one line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct CopyArgs {
    /// File or directory: PATH on this machine, ID:PATH in a session, `-` for standard input.
    pub(super) source: PathBuf,
    /// Where it goes: into an existing directory, or to this name. `-` is standard output.
    pub(super) destination: PathBuf,
    /// Do not show progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Has no effect: trees are always copied whole.
    #[arg(long, short, hide_short_help = true)]
    pub(super) recursive: bool,
    /// Print the destination and the number of files and bytes as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Leave the copy out of the session's history.
    #[arg(long)]
    pub(super) no_history: bool,
    #[command(flatten)]
    pub(super) approve: ApproveArgs,
}

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Also remove sessions that were to be kept and that no living program uses, such as those of `session start`.
    #[arg(long)]
    pub(super) all: bool,
    /// Only list what would be removed.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct UrlArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The name of a port; by default the server itself.
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct EnvArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}
