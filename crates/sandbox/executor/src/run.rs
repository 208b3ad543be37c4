//! The `run` action: what is asked of a shell, and how its report becomes an observation (`bash-session` §§1, 3).
//!
//! The texts of §1 stand here for every executor of commands.

use std::{fmt::Display, time::Duration};

use gloveport_protocol::{
    CommandMetadata, ErrorObservation, Observation, RunAction, RunObservation, python::float_text, seconds,
};
use gloveport_terminal::{
    ControlKey, Facts, Mode, RunEnd, RunReport, RunRequest, ShellLoss, TerminalError, WhenWaiting,
};

/// What an agent can do about a command that still runs.
const HELP: &str = "You may wait longer to see additional output by sending empty command '', send other commands to \
    interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to interrupt/kill the previous command before \
    sending your new command, or use the timeout parameter in execute_bash for future commands.";

/// The prefix of what comes later from a command that went on.
pub const CONTINUED: &str = "[Below is the output of the previous command.]\n";

/// What an agent can do about a program that waits for input.
const WAITING: &str = "The program is waiting for input. To answer it, send the text with `is_input` set to `true`; a key is \
    sent the same way, by its name (\"C-c\", \"C-d\", \"Up\", \"Escape\"). No other command is executed until the program ends.";

/// Time limits of one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    no_change: Option<Duration>,
    limit: Option<Duration>,
    when_waiting: WhenWaiting,
    /// The soft limit as text shows it, in whole seconds.
    no_change_seconds: u64,
    /// The hard limit as it was given.
    limit_seconds: f64,
}

impl Waits {
    /// The hard limit.
    pub(crate) const fn limit(&self) -> Option<Duration> {
        self.limit
    }

    pub(crate) fn request(&self, action: &RunAction) -> RunRequest {
        RunRequest {
            text: action.command.clone(),
            mode: if action.is_input { Mode::Input } else { Mode::Command },
            no_change: self.no_change,
            limit: self.limit,
            waiting: self.when_waiting,
            progress: None,
        }
    }
}

/// The time limits of an action. Zero counts as none, as in the reference.
pub(crate) fn waits(
    action: &RunAction,
    timeout: Option<f64>,
    no_change: Duration,
    when_waiting: WhenWaiting,
) -> Result<Waits, Box<Observation>> {
    let limit_seconds = timeout.unwrap_or(0.0);
    let Ok(limit) = seconds::limit(limit_seconds) else {
        let text = format!("timeout must not be negative, and is {}", float_text(limit_seconds));
        return Err(Box::new(failed(action, text)));
    };
    let limit = limit.filter(|_| limit_seconds > 0.0);
    Ok(Waits {
        no_change: (!action.blocking).then_some(no_change),
        limit,
        when_waiting: if action.blocking { WhenWaiting::GoOn } else { when_waiting },
        no_change_seconds: no_change.as_secs(),
        limit_seconds,
    })
}

/// The observation of a report.
pub(crate) fn observe(action: &RunAction, waits: &Waits, result: Result<RunReport, TerminalError>) -> Observation {
    let report = match result {
        Ok(report) => report,
        Err(error) => return failed(action, error.to_string()),
    };
    let command = action.command.trim();
    let still_running = |suffix: String| CommandMetadata {
        prefix: if report.continued { CONTINUED.into() } else { String::new() },
        suffix,
        ..CommandMetadata::default()
    };
    match &report.end {
        RunEnd::Completed { status } => completed(action, command, *status, &report),
        RunEnd::NoChange => observation(command, &report, false, still_running(no_change(waits.no_change_seconds))),
        RunEnd::TimedOut => observation(command, &report, false, still_running(timed_out(waits.limit_seconds))),
        RunEnd::Waiting => observation(command, &report, false, still_running(format!("\n[{WAITING}]"))),
        RunEnd::Refused => {
            let suffix = format!(
                "\n[Your command \"{command}\" is NOT executed. The previous command is still running - You CANNOT send \
                 new commands until the previous command is completed. By setting `is_input` to `true`, you can \
                 interact with the current process: {HELP}]"
            );
            observation(command, &report, action.hidden, still_running(suffix))
        }
        RunEnd::NothingToFetch => nothing_to_fetch(),
        RunEnd::NothingToType => nothing_to_type(),
        RunEnd::Several(pieces) => {
            let list: Vec<String> =
                pieces.iter().enumerate().map(|(index, piece)| format!("({}) {piece}", index + 1)).collect();
            let content = format!(
                "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately OR chain them \
                 into a single command via && or ;\nProvided commands:\n{}",
                list.join("\n")
            );
            failed(action, content)
        }
    }
}

fn completed(action: &RunAction, command: &str, status: i32, report: &RunReport) -> Observation {
    let Facts { background_pid, directory, python, user_name, host_name, .. } = &report.facts;
    let mut prefix = match report.lines_kept {
        Some(lines) => {
            format!("[Previous command outputs are truncated. Showing the last {lines} lines of the output below.]\n")
        }
        None => String::new(),
    };
    if let Some(loss) = report.loss.filter(|loss| loss.before_command) {
        prefix = format!("[{}]\n{prefix}", describe(&loss, directory));
    }
    let mut suffix = ended(status.into(), &key_sent(command));
    if let Some(loss) = report.loss.filter(|loss| !loss.before_command) {
        suffix = format!("{suffix}\n[{}]", describe(&loss, directory));
    }
    let metadata = CommandMetadata {
        exit_code: status.into(),
        pid: background_pid.map_or(-1, i64::from),
        username: Some(user_name.clone()),
        hostname: Some(host_name.clone()),
        working_dir: Some(directory.clone()),
        py_interpreter_path: Some(python.as_ref().map(|path| path.display().to_string()).unwrap_or_default()),
        prefix,
        suffix,
    };
    observation(command, report, action.hidden, metadata)
}

fn describe(loss: &ShellLoss, directory: &str) -> String {
    let how = match (loss.exit.code, loss.exit.signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let when = if loss.before_command { "The shell had ended before this command" } else { "The shell ended" };
    format!(
        "{when}: it {how}. A new shell was started in {directory}; variables, functions and jobs of the old one are gone."
    )
}

fn observation(command: &str, report: &RunReport, hidden: bool, metadata: CommandMetadata) -> Observation {
    Observation::Run(RunObservation::new(command, &report.output, hidden, metadata))
}

/// The suffix of a command that was silent for so long, and goes on.
pub fn no_change(seconds: impl Display) -> String {
    format!("\n[The command has no new output after {seconds} seconds. {HELP}]")
}

/// The suffix of a command whose time limit passed, and which goes on.
pub fn timed_out(seconds: f64) -> String {
    format!("\n[The command timed out after {} seconds. {HELP}]", float_text(seconds))
}

/// The suffix of a command that ended, with what is to be said about it.
pub fn ended(status: i64, note: &str) -> String {
    format!("\n[The command completed with exit code {status}.{note}]")
}

/// What is said about a text that is a key; nothing about another.
pub fn key_sent(text: &str) -> String {
    ControlKey::parse(text).map(|key| format!(" CTRL+{} was sent.", key.name())).unwrap_or_default()
}

/// No command runs or has run that more could come from.
pub fn nothing_to_fetch() -> Observation {
    nothing("ERROR: No previous running command to retrieve logs from.")
}

/// No command runs that could take input.
pub fn nothing_to_type() -> Observation {
    nothing("ERROR: No previous running command to interact with.")
}

/// Nothing runs: no command, default metadata.
fn nothing(content: &str) -> Observation {
    Observation::Run(RunObservation::new("", content, false, CommandMetadata::default()))
}

/// An error, in the form that the caller can rebuild: a hidden action needs a `run` observation
/// (`actions-and-observations` 2.5, rule 7).
fn failed(action: &RunAction, content: String) -> Observation {
    if action.hidden {
        Observation::Run(RunObservation::new(action.command.trim(), content, true, CommandMetadata::default()))
    } else {
        Observation::Error(ErrorObservation::new(content))
    }
}
