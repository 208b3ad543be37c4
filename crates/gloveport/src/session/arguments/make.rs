//! Flags of what makes sessions: `start`, `fork`, `snapshot`, and `run` in a fresh sandbox.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use gloveport_provider::{ExposedPort, Level, Mount, NetworkPolicy, RunAs};

use crate::session::values::{self, SecretGiven};

/// What a sandbox is made from.
#[derive(Debug, Default, Args)]
pub(crate) struct MakeArgs {
    /// The image that the sandbox is made from.
    #[arg(long, value_name = "IMAGE")]
    pub(in crate::session) image: Option<String>,
    /// Directory of this machine to work in; it stays when the session ends. By default, one that ends with the sandbox.
    #[arg(long, value_name = "DIRECTORY")]
    pub(in crate::session) workspace: Option<PathBuf>,
    /// Mount a directory of this machine (/DIRECTORY:/PATH) or a volume (NAME:/PATH) in the sandbox. With `:ro` the sandbox
    /// cannot write to it, with `:overlay` the directory does not change. May be repeated.
    #[arg(long, short = 'v', visible_alias = "volume", value_name = "SOURCE:PATH[:MODE]", value_parser = values::mount)]
    pub(in crate::session) mount: Vec<Mount>,
    /// User that its server and tools work as, by number; by default the image or the runtime chooses.
    #[arg(long, value_name = "USER[:GROUP]", value_parser = values::user)]
    pub(in crate::session) user: Option<RunAs>,
    /// Set a variable that stays out of logs and histories: NAME to pass on your own, or NAME=@FILE; may be repeated. With
    /// @HOST the sandbox only gets a placeholder: the value is put into HTTPS requests to that host on their way out.
    #[arg(long, value_name = "NAME[@HOST,…][=@FILE]", value_parser = values::secret)]
    pub(in crate::session) secret: Vec<SecretGiven>,
    /// A label to find it by; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::pair)]
    pub(in crate::session) label: Vec<(String, String)>,
    /// Give a URL to a port of a program in the sandbox; may be repeated. See `session url`.
    #[arg(long, short, value_name = "NAME[:PORT]", value_parser = values::port)]
    pub(in crate::session) port: Vec<ExposedPort>,
    /// Maximum memory of all its processes together, such as 512m or 2g.
    #[arg(long, value_name = "SIZE", value_parser = values::memory)]
    pub(in crate::session) memory: Option<u64>,
    /// Maximum number of processors, such as 1.5.
    #[arg(long, value_name = "NUMBER", value_parser = values::processors, allow_negative_numbers = true)]
    pub(in crate::session) cpus: Option<f64>,
    /// Maximum number of processes and threads.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(in crate::session) processes: Option<u64>,
    /// Give it the machine's GPUs.
    #[arg(long)]
    pub(in crate::session) gpus: bool,
    /// Delete it after this time, such as 90s, 15m, 2h or 1d.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration)]
    pub(in crate::session) ttl: Option<Duration>,
    /// Stop it when it has had no requests for this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration)]
    pub(in crate::session) idle_stop: Option<Duration>,
    /// What it may talk to: `full`, `none`, or hosts and networks, separated by commas.
    #[arg(long, value_name = "POLICY", value_parser = values::network)]
    pub(in crate::session) network: Option<NetworkPolicy>,
    /// How far the runtime `local` keeps it apart from this machine: `none`, `files`, `container` or `gvisor`. With `files` the kernel
    /// keeps it to its workspace, a home and temporary directory of its own, the files of the system, and its own processes.
    /// With `container` it sees nothing else: it has a root directory, users and processes of its own. No engine is needed.
    /// `gvisor` is the same on a kernel of its own, for which gVisor's `runsc` is needed.
    /// `session start` and `run --runtime local` choose the strongest that this machine has.
    #[arg(long, value_name = "LEVEL", value_parser = values::level)]
    pub(in crate::session) isolation: Option<Level>,
    /// Let it read this place of this machine, too, where it is kept apart; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(in crate::session) allow_read: Vec<PathBuf>,
    /// Let it write in this place of this machine, too, where it is kept apart; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(in crate::session) allow_write: Vec<PathBuf>,
    /// Record commands, files that clients write, connections and secrets that are used in this file of this machine, where it is
    /// kept apart and cannot change it. Records are added to those that are there; `gloveport audit` shows and checks them.
    /// With the runtime `docker` the log is beside the sandbox (`gloveport session audit`), which needs --network HOSTS or none, and the
    /// file is written when the sandbox ends.
    #[arg(long, value_name = "FILE")]
    pub(in crate::session) audit: Option<PathBuf>,
    /// Start this plugin, such as jupyter or vscode; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(in crate::session) plugin: Vec<String>,
}

impl MakeArgs {
    /// Whether it is for this machine, which it is then kept apart from. Its work is in the current directory if no other one
    /// is named.
    pub(crate) fn keep_here(&mut self) -> bool {
        let has_places = !self.allow_read.is_empty() || !self.allow_write.is_empty();
        let is_kept = self.isolation.is_some() || has_places || self.audit.is_some();
        if is_kept && self.workspace.is_none() {
            self.workspace = Some(PathBuf::from("."));
        }
        is_kept
    }

    /// The directory to work in, as it was given.
    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }
}

/// A session that is to be started.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::session) struct StartArgs {
    /// The session's id; random by default.
    #[arg(value_name = "ID")]
    pub(in crate::session) name: Option<String>,
    /// The same.
    #[arg(long, value_name = "ID", conflicts_with = "name", hide_short_help = true)]
    pub(in crate::session) id: Option<String>,
    #[command(flatten)]
    pub(in crate::session) make: MakeArgs,
    /// Set a variable: NAME=VALUE, or NAME to pass on your own; may be repeated.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = values::variable)]
    pub(in crate::session) env: Vec<(String, String)>,
    /// Return when its server answers. This is the default.
    #[arg(long, overrides_with = "no_wait")]
    pub(in crate::session) wait: bool,
    /// Return as soon as the runtime has created it.
    #[arg(long, overrides_with = "wait")]
    pub(in crate::session) no_wait: bool,
    /// Give up after this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = values::duration, default_value = "2m")]
    pub(in crate::session) timeout: Duration,
    /// Print everything about it as JSON instead of its id.
    #[arg(long)]
    pub(in crate::session) json: bool,
    /// Do not show progress.
    #[arg(long, short)]
    pub(in crate::session) quiet: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct SnapshotArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Name of the snapshot: letters, digits, `_`, `.` and `-`; in a cluster neither capital letters nor `_`.
    #[arg(value_name = "NAME")]
    pub(in crate::session) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::session) enum SnapshotsCommand {
    /// List the snapshots that somebody asked for, the newest first.
    #[command(visible_alias = "list")]
    Ls(ListSnapshotsArgs),
    /// Delete snapshots. One that a sandbox uses stays where the runtime cannot do without it.
    #[command(visible_alias = "delete")]
    Rm(RemoveSnapshotsArgs),
}

#[derive(Debug, Args)]
pub(in crate::session) struct ListSnapshotsArgs {
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct RemoveSnapshotsArgs {
    /// The snapshots, as `session snapshot` and `session snapshots ls` print them.
    #[arg(value_name = "IMAGE", required = true)]
    pub(in crate::session) images: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct ForkArgs {
    /// The session.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Id of the new session; random by default.
    #[arg(long = "id", value_name = "ID")]
    pub(in crate::session) new: Option<String>,
    /// Give up after this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, default_value = "10m", value_parser = values::duration)]
    pub(in crate::session) timeout: Duration,
    /// Print everything about it as JSON instead of its id.
    #[arg(long)]
    pub(in crate::session) json: bool,
    /// Do not show progress.
    #[arg(short, long)]
    pub(in crate::session) quiet: bool,
}
