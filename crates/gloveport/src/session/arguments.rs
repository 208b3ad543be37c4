//! The flags of the session commands.

mod inside;
mod life;
mod make;
mod network;

use clap::{Args, Subcommand};

pub(crate) use self::make::MakeArgs;
pub(super) use self::{inside::*, life::*, make::*, network::*};
use super::service::GatewayFlags;

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
    #[command(flatten)]
    pub(super) gateway: GatewayFlags,
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
    /// List the snapshots of sessions, and delete them.
    #[command(subcommand)]
    Snapshots(SnapshotsCommand),
    /// Start a session with the files and settings of another one, and print its id. It gets no secrets and no processes.
    Fork(ForkArgs),
    /// Show and change whom a running session may talk to.
    #[command(subcommand)]
    Network(NetworkCommand),
    /// Show the log of a session's server.
    Logs(LogsArgs),
    /// Show what was recorded of a session up to now (`start --audit FILE`), wherever that is kept. It ends where the log was
    /// changed.
    Audit(AuditArgs),
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
