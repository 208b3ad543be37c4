//! Bodies of the native commands (`/v1/exec`).

mod form;

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request for a native command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// Name that the caller chooses: letters, digits, `-`, `_`, `.`; made up if it is absent.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9._-]{1,128}$", example = "build-1")]
    pub id: Option<String>,
    /// The command text, of one or many lines.
    #[schema(min_length = 1, example = "ls -la")]
    pub command: String,
    /// Where it runs.
    #[serde(default)]
    pub session: Session,
    /// Directory to run in; only with a new session.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub cwd: Option<PathBuf>,
    /// Variables added to the environment; only with a new session.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Seconds, counted from the request, after which the command is given up: one that waits for its turn never begins;
    /// one that runs is interrupted, 2 s later quit (C-\\), and 2 s later killed with its session (new session) or left to
    /// itself (main session).
    #[serde(default)]
    #[schema(exclusive_minimum = 0)]
    pub timeout: Option<f64>,
}

/// The shell that a native command runs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Session {
    /// The persistent shell that `run` actions use.
    #[default]
    Main,
    /// A shell of its own, ended with the command.
    New,
}

/// What is typed into a running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecInput {
    /// Text, sent with Enter; a key such as `C-c`, sent without; or the name of a key (`Up`, `Escape`, `F1`, `M-x`), which is
    /// pressed and followed by Enter, as the reference does it (`bash-session` 5.2).
    pub text: String,
}

/// How a native command stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum ExecState {
    /// Commands before it run.
    Queued,
    /// It runs.
    Running {
        /// Offset where its output begins: 0 in every answer of a server.
        start: u64,
        /// The program in the foreground waits for input.
        waiting_for_input: bool,
        /// It waits for a line that its terminal does not show, such as a password. Absent where it is false.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hides_input: bool,
    },
    /// It ended, or was left to itself.
    Ended(ExecEnd),
}

impl ExecState {
    /// The same with offsets that count from the beginning of the command's own output, as all of the interface has them.
    #[must_use]
    pub fn counted_from_its_start(self) -> Self {
        match self {
            Self::Queued => Self::Queued,
            Self::Running { waiting_for_input, hides_input, .. } => {
                Self::Running { start: 0, waiting_for_input, hides_input }
            }
            Self::Ended(end) => {
                let length = end.end.saturating_sub(end.start);
                Self::Ended(ExecEnd { start: 0, end: length, ..end })
            }
        }
    }
}

/// How a native command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecEnd {
    /// Exit status; absent if there is none.
    pub exit_code: Option<i32>,
    /// `exited`, `timed_out`, `cancelled`, `refused` (a command of the `run` action is running in the main session), `shell_ended`
    /// (with the status in `exit_code`), or `failed`.
    #[schema(value_type = form::Reason)]
    pub reason: Cow<'static, str>,
    /// What failed, for people; absent for `exited`.
    pub message: Option<String>,
    /// Offset where its output begins: 0 in every answer of a server.
    pub start: u64,
    /// Offset behind its output: how many bytes it wrote, in every answer of a server.
    pub end: u64,
    /// Working directory of the shell afterwards.
    pub cwd: String,
    /// What it used.
    pub usage: Option<ExecUsage>,
}

/// Something that a native command does.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecEvent {
    /// It wrote something.
    Output {
        /// Offset of the first byte in the session's output.
        offset: u64,
        /// The bytes as they were written.
        bytes: Vec<u8>,
    },
    /// A part of the output is no longer kept by the server.
    Gap {
        /// Offset of the first byte that is lost.
        from: u64,
        /// Offset behind the last one.
        to: u64,
    },
    /// It waits for input, or no longer does.
    Waiting(bool),
    /// It waits for a line that its terminal does not show, such as a password.
    WaitingForSecret,
    /// It ended. Nothing follows.
    Ended(ExecEnd),
}

/// What a native command used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecUsage {
    /// CPU time in seconds, in steps of the kernel's clock tick.
    pub cpu_seconds: f64,
    /// Largest private memory that a sample saw, in bytes; absent for a command that ended before the first.
    pub peak_memory_bytes: Option<u64>,
    /// Bytes written to storage.
    pub written_bytes: Option<u64>,
    /// Time from the start to the end in seconds.
    pub wall_seconds: f64,
}

/// A command as listings show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecStatus {
    /// Its id.
    pub id: String,
    /// Its text.
    pub command: String,
    /// Where it runs.
    pub session: Session,
    /// How it stands.
    #[serde(flatten)]
    pub state: ExecState,
}
