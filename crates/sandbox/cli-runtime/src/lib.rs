//! Actions executed by this process and confined to one directory (local-and-cli-runtime B).
//!
//! There is no sandbox: commands run on this machine, as this user. What is confined are the *file* actions, which can
//! not leave the workspace by any name or link (`gloveport_sys::reach`).
//!
//! | module | idea |
//! |---|---|
//! | `runtime` | [`CliRuntime`]: which tool an action is for |
//! | `paths` | the path of an action as one in the workspace, and the texts of those that are refused (B5) |
//! | `files` | `read`, `write` and `edit` (B6 to B8) |
//! | `transfer` | copies into and out of the workspace, and what is in it (B10) |
//! | `command` | one command: its processes, its terminal, its output, its end (B4.1) |
//! | `launch` | how a bash is started for one command |
//! | `commands` | all commands that somebody may still ask for, and input for them |
//! | `transcript` | output within a bound, and its lines as they come |
//! | [`attended`] | a command at somebody's own terminal |
//!
//! # Commands and their input
//!
//! Each command is a `bash -c` of its own in a new session, so no state survives it, and several can run at once. Output
//! of both kinds goes into one pipe, as in the reference. Standard input is a terminal, so that a command can ask; it is
//! not the controlling one, so that what runs in the background is not ended with the command.
//!
//! * A command that ends is told with its exit code; a signal that ended it is a negative number. What it left running in
//!   the background goes on until the runtime is closed; its output is read and not kept.
//! * At its time limit a command gets SIGTERM, with its whole group, and SIGKILL after [`GRACE`]; its output until then is
//!   told.
//! * A command that *waits for input* is given back: one of its processes reads from its terminal, nothing new came for
//!   [`CliOptions::patience`], and its action is not `blocking`. It goes on without a time limit. The observation has exit
//!   code -1 and the suffix of a shell that shows nothing new (bash-session 1). A command that is silent and does not
//!   read from its terminal is never given back. At most [`GIVEN_BACK`] are; the next one is waited for.
//! * An action with `is_input` goes to the command that was *given back last*; if there is none, to the one that was
//!   *started last* and still runs, whose output goes on to whoever waits for it. If nothing runs, nothing is typed, and
//!   the text of bash-session 1 says so. Text is typed with Enter, a key such as `C-d` alone. `C-c` and `C-\` send their signals
//!   to all processes of the command, unless it has taken these keys for itself. `C-z` does nothing, since there is no job
//!   control.
//! * What comes of input is told as soon as the command ends or waits again, or after the action's time limit, at which
//!   the command goes on. An empty command asks for more in the same way; without a command that was given back it is a
//!   command like all others, which does nothing.
//! * Any other action runs beside the commands that were given back; it is not refused.
//! * A command whose action nobody waits for any more goes on within its time limit, and counts as given back.

pub mod attended;
mod command;
mod commands;
mod error;
mod files;
mod launch;
mod paths;
mod runtime;
mod transcript;
mod transfer;

pub use command::GRACE;
pub use commands::GIVEN_BACK;
pub use error::CliError;
pub use runtime::{CliOptions, CliRuntime, CommandInput, ShellStream, delete_workspaces};
