//! What is asked and answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The only kind of session that there is.
pub const BASH: &str = "bash";

fn default_session() -> String {
    "default".to_owned()
}

fn one_second() -> f64 {
    1.0
}

fn short() -> f64 {
    0.2
}

fn three() -> u32 {
    3
}

/// A new session is wanted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CreateSession {
    /// Files that its shell reads first, in order.
    #[serde(default)]
    pub startup_source: Vec<String>,
    /// Its name.
    #[serde(default = "default_session")]
    pub session: String,
    /// Its kind.
    pub session_type: Kind,
    /// Seconds until it must be ready.
    #[serde(default = "one_second")]
    pub startup_timeout: f64,
}

/// A kind of session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A bash.
    Bash,
}

/// A session is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Created {
    /// What the files printed that it has read.
    pub output: String,
    /// Its kind.
    pub session_type: Kind,
}

/// A session is to be closed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CloseSession {
    /// Its name.
    #[serde(default = "default_session")]
    pub session: String,
    /// Its kind.
    pub session_type: Kind,
}

/// A session is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Closed {
    /// Its kind.
    pub session_type: Kind,
}

/// What is done in a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "action_type")]
pub enum SessionAction {
    /// A command, or something that is said to a program.
    #[serde(rename = "bash")]
    Bash(BashAction),
    /// An interrupt.
    #[serde(rename = "bash_interrupt")]
    Interrupt(Interrupt),
}

/// A command, or something that is said to a program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BashAction {
    /// The text.
    pub command: String,
    /// Name of the session.
    #[serde(default = "default_session")]
    pub session: String,
    /// Seconds that the answer may take; none for no limit.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// It starts a program that does not end, or is said to one.
    #[serde(default)]
    pub is_interactive_command: bool,
    /// It ends such a program.
    #[serde(default)]
    pub is_interactive_quit: bool,
    /// What becomes of the exit code.
    #[serde(default)]
    pub check: Check,
    /// What the message of an error begins with.
    #[serde(default)]
    pub error_msg: String,
    /// Regular expressions that also end the wait.
    #[serde(default)]
    pub expect: Vec<String>,
}

/// What becomes of an exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// It is told.
    Silent,
    /// It is told, and another one than 0 is an error.
    #[default]
    Raise,
    /// It is not looked for.
    Ignore,
}

/// An interrupt of what runs in a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Interrupt {
    /// Name of the session.
    #[serde(default = "default_session")]
    pub session: String,
    /// Seconds that each try has.
    #[serde(default = "short")]
    pub timeout: f64,
    /// How often it is tried.
    #[serde(default = "three")]
    pub n_retry: u32,
    /// Regular expressions that also end the wait.
    #[serde(default)]
    pub expect: Vec<String>,
}

/// What came of an action in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// What was printed.
    pub output: String,
    /// The exit code, if it was looked for.
    pub exit_code: Option<i32>,
    /// Always empty: failures are exceptions.
    pub failure_reason: &'static str,
    /// What the wait ended with.
    pub expect_string: String,
    /// The kind of the session.
    pub session_type: Kind,
}

/// A program without a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Command {
    /// What is run.
    pub command: Words,
    /// Seconds that it may take; none for no limit.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// A shell reads it.
    #[serde(default)]
    pub shell: bool,
    /// Another exit code than 0 is an error.
    #[serde(default)]
    pub check: bool,
    /// What the message of an error begins with.
    #[serde(default)]
    pub error_msg: String,
    /// Its whole environment, in place of the one that programs have.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// Directory to start in.
    #[serde(default)]
    pub cwd: Option<String>,
    /// What it writes on its standard error is a part of its output.
    #[serde(default)]
    pub merge_output_streams: bool,
}

/// One text or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// For a shell, or the name of a program.
    Text(String),
    /// A program and its arguments.
    List(Vec<String>),
}

/// A program has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandResponse {
    /// What it wrote on its standard output.
    pub stdout: String,
    /// And on its standard error.
    pub stderr: String,
    /// Its exit code; below 0 for a signal.
    pub exit_code: i32,
}

/// A file is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadFile {
    /// Its path.
    pub path: String,
    /// Its encoding, as Python calls it; UTF-8 if absent.
    #[serde(default)]
    pub encoding: Option<String>,
    /// What becomes of bytes that are none of its characters, as Python calls it; an error if absent.
    #[serde(default)]
    pub errors: Option<String>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileContent {
    /// Its text.
    pub content: String,
}

/// A file is to be written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WriteFile {
    /// Its path.
    pub path: String,
    /// Its text.
    pub content: String,
}
