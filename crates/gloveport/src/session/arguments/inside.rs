//! Flags of what is done in a session: commands, cells, files, terminals.

use std::{path::PathBuf, time::Duration};

use clap::{Arg, Args};
use gloveport_protocol::kernels::DEFAULT_KERNEL as DEFAULT;

use crate::{
    approve::ApproveArgs,
    attach::DetachKeys,
    files::{EditWhat, ViewWhat, WriteWhat},
    ipython::CellArgs,
    session::{handling::Handling, values},
};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::session) struct ExecArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// The command; several words are joined by blanks. Flags come before its first word: everything after it belongs to
    /// the command. `-` or nothing: a script from standard input.
    #[arg(trailing_var_arg = true)]
    pub(in crate::session) command: Vec<String>,
    /// Pass on the lines of standard input, each when the command waits for one.
    #[arg(long, short)]
    pub(in crate::session) interactive: bool,
    /// Run it on a terminal of its own, and show that terminal on yours. Without a command, run a shell. It keeps running
    /// when you leave it with the detach keys.
    #[arg(long, short, conflicts_with_all = ["json", "timeout", "detach"])]
    pub(in crate::session) tty: bool,
    /// Keys that leave the terminal without ending it.
    #[arg(long, value_name = "KEYS", default_value_t, requires = "tty")]
    pub(in crate::session) detach_keys: DetachKeys,
    /// Start it and print the id of the command, without its output.
    #[arg(long, short, conflicts_with_all = ["interactive", "json", "timeout"])]
    pub(in crate::session) detach: bool,
    /// Directory to run in. A relative path starts where the tools of the session or server start.
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(in crate::session) cwd: Option<PathBuf>,
    /// Set a variable: NAME=VALUE, or NAME to pass on your own; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = values::variable)]
    pub(in crate::session) env: Vec<(String, String)>,
    /// Interrupt it after this time, such as 90s or 15m.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration)]
    pub(in crate::session) timeout: Option<Duration>,
    /// Print the observation as JSON after the command has ended, instead of its output as it comes.
    #[arg(long)]
    pub(in crate::session) json: bool,
    /// Leave the command out of the session's history.
    #[arg(long)]
    pub(in crate::session) no_history: bool,
    #[command(flatten)]
    pub(in crate::session) approve: ApproveArgs,
}

/// Whether something is asked about, and whether it is kept.
#[derive(Debug, Args)]
pub(in crate::session) struct RecordArgs {
    /// Leave it out of the session's history.
    #[arg(long)]
    pub(in crate::session) no_history: bool,
    #[command(flatten)]
    pub(in crate::session) approve: ApproveArgs,
}

impl RecordArgs {
    /// How the flags want an operation to be handled.
    pub(in crate::session) const fn handling(&self, input_is_taken: bool) -> Handling {
        Handling { approve: self.approve, input_is_taken, unrecorded: self.no_history }
    }
}

#[derive(Debug, Args)]
pub(in crate::session) struct ViewArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    #[command(flatten)]
    pub(in crate::session) what: ViewWhat,
    #[command(flatten)]
    pub(in crate::session) record: RecordArgs,
}

#[derive(Debug, Args)]
pub(in crate::session) struct WriteArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    #[command(flatten)]
    pub(in crate::session) what: WriteWhat,
    #[command(flatten)]
    pub(in crate::session) record: RecordArgs,
}

#[derive(Debug, Args)]
#[command(mut_args(behind_the_change))]
pub(in crate::session) struct EditArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    #[command(flatten)]
    pub(in crate::session) what: EditWhat,
    #[command(flatten)]
    pub(in crate::session) record: RecordArgs,
}

/// Flags may stand behind the change, too.
fn behind_the_change(argument: Arg) -> Arg {
    let is_flag = argument.get_long().is_some();
    argument.global(is_flag)
}

#[derive(Debug, Args)]
pub(in crate::session) struct IpythonArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Name of the kernel; it is started if it does not exist. The agent's kernel is `default`.
    #[arg(long, value_name = "NAME", default_value = DEFAULT)]
    pub(in crate::session) kernel: String,
    #[command(flatten)]
    pub(in crate::session) cell: CellArgs,
    #[command(flatten)]
    pub(in crate::session) record: RecordArgs,
}

/// A session, or a server that somebody serves.
#[derive(Debug, Args)]
pub(in crate::session) struct ServerArgs {
    /// Ask this server instead of that of a session, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL")]
    pub(in crate::session) url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true)]
    pub(in crate::session) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE")]
    pub(in crate::session) key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::session) struct PsArgs {
    /// The session.
    #[arg(value_name = "ID", required_unless_present = "url", conflicts_with = "url")]
    pub(in crate::session) id: Option<String>,
    #[command(flatten)]
    pub(in crate::session) server: ServerArgs,
    /// Also show those that have ended.
    #[arg(long, short)]
    pub(in crate::session) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct InterruptArgs {
    /// The session (not with --url), then the command: its id in `ps` or the beginning of it. By default, the running
    /// command.
    #[arg(value_name = "ID [COMMAND]", num_args = 0..=2)]
    pub(in crate::session) ids: Vec<String>,
    #[command(flatten)]
    pub(in crate::session) server: ServerArgs,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct AttachArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Which terminal of the session, by a name of your choice.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(in crate::session) terminal: String,
    /// Keys that leave the terminal without ending it.
    #[arg(long, value_name = "KEYS", default_value_t)]
    pub(in crate::session) detach_keys: DetachKeys,
    #[command(flatten)]
    pub(in crate::session) record: RecordArgs,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::session) struct CopyArgs {
    /// File or directory: PATH on this machine, ID:PATH in a session, `-` for standard input.
    pub(in crate::session) source: PathBuf,
    /// Where it goes: into an existing directory, or to this name. `-` is standard output.
    pub(in crate::session) destination: PathBuf,
    /// Do not show progress.
    #[arg(long, short)]
    pub(in crate::session) quiet: bool,
    /// Has no effect: trees are always copied whole.
    #[arg(long, short, hide_short_help = true)]
    pub(in crate::session) recursive: bool,
    /// Print the destination and the number of files and bytes as JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
    /// Leave the copy out of the session's history.
    #[arg(long)]
    pub(in crate::session) no_history: bool,
    #[command(flatten)]
    pub(in crate::session) approve: ApproveArgs,
}
