//! A session to try rows in, and the observations that rows expect, with the texts of `bash-session` §1 written out.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor, CommandMetadata, ErrorObservation, Observation, RunAction, RunObservation,
};
use gloveport_sys::host;
pub(crate) use gloveport_testing::{free_port, user_name};
use tempfile::TempDir;

/// What an agent can do about a command that still runs.
pub(crate) const HELP: &str = "You may wait longer to see additional output by sending empty command '', send other \
commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to interrupt/kill the previous \
command before sending your new command, or use the timeout parameter in execute_bash for future commands.";

/// No action of any row takes longer.
const LIMIT: Duration = Duration::from_secs(40);

/// One action.
#[derive(Debug)]
pub(crate) struct Step {
    action: RunAction,
    timeout: Option<f64>,
}

pub(crate) fn run(text: &str) -> Step {
    Step { action: RunAction::new(text), timeout: None }
}

pub(crate) fn input(text: &str) -> Step {
    let action = RunAction { is_input: true, ..RunAction::new(text) };
    Step { action, timeout: None }
}

impl Step {
    pub(crate) fn timeout(self, seconds: f64) -> Self {
        Self { timeout: Some(seconds), ..self }
    }

    pub(crate) fn blocking(mut self) -> Self {
        self.action.blocking = true;
        self
    }

    pub(crate) fn hidden(mut self) -> Self {
        self.action.hidden = true;
        self
    }

    pub(crate) fn in_own_shell(mut self, directory: Option<&str>) -> Self {
        self.action.is_static = true;
        self.action.cwd = directory.map(str::to_owned);
        self
    }
}

impl From<&str> for Step {
    fn from(text: &str) -> Self {
        run(text)
    }
}

/// A session with a home directory of its own, so that no start-up file of the machine has a say.
pub(crate) struct Lab {
    pub(crate) executor: Arc<Executor>,
    pub(crate) home: TempDir,
    pub(crate) work: PathBuf,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with_no_change(10).await
    }

    pub(crate) async fn with_no_change(seconds: u64) -> Self {
        Self::start(|options| options.no_change = Duration::from_secs(seconds)).await
    }

    pub(crate) async fn start(adjust: impl FnOnce(&mut ExecutorOptions)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        fs::create_dir(&work).unwrap();
        let mut options = ExecutorOptions::inherited(work.clone());
        options.environment = environment(home.path());
        options.startup_commands = vec!["alias git=\"git --no-pager\"".to_owned()];
        adjust(&mut options);
        let executor = Executor::start(options).await.unwrap();
        Self { executor, home, work }
    }

    pub(crate) async fn observe(&self, step: impl Into<Step>) -> Observation {
        let Step { action, timeout } = step.into();
        let event = ActionEvent { timeout, ..ActionEvent::from(Action::Run(action)) };
        let name = format!("{:?}", event.action);
        let answer = tokio::time::timeout(LIMIT, self.executor.execute(&event)).await;
        answer.unwrap_or_else(|_elapsed| panic!("no answer to {name} within {LIMIT:?}")).unwrap()
    }

    /// The observation of an action that is known to give output.
    pub(crate) async fn output(&self, step: impl Into<Step>) -> RunObservation {
        match self.observe(step).await {
            Observation::Run(observation) => observation,
            other => panic!("a run observation was expected: {other:?}"),
        }
    }

    /// Runs a command that only prepares something.
    pub(crate) async fn prepare(&self, text: &str) {
        let observation = self.output(text).await;
        assert_eq!(observation.metadata.exit_code, 0, "{text}: {observation:?}");
    }

    /// Compares a table of commands that complete: number, text, content, exit code.
    pub(crate) async fn check_table(&self, table: &[(&str, &str, &str, i64)]) {
        for (row, text, content, exit_code) in table {
            let seen = self.observe(*text).await;
            assert_eq!(seen, self.done(text, content, *exit_code).into_observation(), "row {row}");
        }
    }

    /// Compares one action with what it is to give.
    #[track_caller]
    pub(crate) fn check(
        &self,
        row: &'static str,
        step: impl Into<Step>,
        expected: impl IntoObservation,
    ) -> impl Future<Output = ()> {
        let (step, expected, place) = (step.into(), expected.into_observation(), std::panic::Location::caller());
        async move { assert_eq!(self.observe(step).await, expected, "row {row} at {place}") }
    }

    /// A command that completed in the start directory.
    pub(crate) fn done(&self, command: &str, content: &str, exit_code: i64) -> RunObservation {
        let metadata = CommandMetadata {
            exit_code,
            pid: -1,
            username: Some(user_name()),
            hostname: Some(host::short_host_name()),
            working_dir: Some(self.work.display().to_string()),
            py_interpreter_path: Some(self.home.path().join("bin/python").display().to_string()),
            prefix: String::new(),
            suffix: format!("\n[The command completed with exit code {exit_code}.]"),
        };
        RunObservation::new(command, content, false, metadata)
    }

    /// A special key after which the command completed.
    pub(crate) fn done_by_key(&self, key: &str, content: &str, exit_code: i64) -> RunObservation {
        let letter = key.chars().last().unwrap().to_uppercase();
        let mut observation = self.done(key, content, exit_code);
        observation.metadata.suffix =
            format!("\n[The command completed with exit code {exit_code}. CTRL+{letter} was sent.]");
        observation
    }

    pub(crate) async fn close(self) {
        tokio::time::timeout(LIMIT, self.executor.close()).await.unwrap();
    }
}

/// Changes of an expected observation that rows need.
pub(crate) trait Varied {
    fn in_directory(self, directory: &Path) -> Self;
    fn with_background_pid(self, pid: i64) -> Self;
    fn with_prefix(self, prefix: &str) -> Self;
    fn continued(self) -> Self;
}

impl Varied for RunObservation {
    fn in_directory(mut self, directory: &Path) -> Self {
        self.metadata.working_dir = Some(directory.display().to_string());
        self
    }

    fn with_background_pid(mut self, pid: i64) -> Self {
        self.metadata.pid = pid;
        self
    }

    fn with_prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.metadata.prefix);
        self
    }

    fn continued(self) -> Self {
        self.with_prefix("[Below is the output of the previous command.]\n")
    }
}

fn still_running(command: &str, content: &str, suffix: String) -> RunObservation {
    RunObservation::new(command, content, false, CommandMetadata { suffix, ..CommandMetadata::default() })
}

/// The soft time limit passed.
pub(crate) fn no_change(command: &str, content: &str, seconds: u64) -> RunObservation {
    let suffix = format!("\n[The command has no new output after {seconds} seconds. {HELP}]");
    still_running(command, content, suffix)
}

/// The program waits for input.
pub(crate) fn waiting(command: &str, content: &str) -> RunObservation {
    let suffix = "\n[The program is waiting for input. To answer it, send the text with `is_input` set to `true`; a key is \
        sent the same way, by its name (\"C-c\", \"C-d\", \"Up\", \"Escape\"). No other command is executed until the \
        program ends.]";
    still_running(command, content, suffix.to_owned())
}

/// The hard time limit passed; `seconds` as Python prints the float.
pub(crate) fn timed_out(command: &str, content: &str, seconds: &str) -> RunObservation {
    let suffix = format!("\n[The command timed out after {seconds} seconds. {HELP}]");
    still_running(command, content, suffix)
}

/// Another command still runs.
pub(crate) fn refused(command: &str, content: &str) -> RunObservation {
    let suffix = format!(
        "\n[Your command \"{command}\" is NOT executed. The previous command is still running - You CANNOT send new \
commands until the previous command is completed. By setting `is_input` to `true`, you can interact with the current \
process: {HELP}]"
    );
    still_running(command, content, suffix)
}

/// Nothing runs that output could be fetched from.
pub(crate) fn nothing_to_fetch() -> RunObservation {
    still_running("", "ERROR: No previous running command to retrieve logs from.", String::new())
}

/// Nothing runs that could be interacted with.
pub(crate) fn nothing_to_type() -> RunObservation {
    still_running("", "ERROR: No previous running command to interact with.", String::new())
}

/// The text is several commands.
pub(crate) fn several(pieces: &[&str]) -> Observation {
    let mut content = "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately OR chain \
them into a single command via && or ;\nProvided commands:"
        .to_owned();
    for (index, piece) in pieces.iter().enumerate() {
        write!(content, "\n({}) {piece}", index + 1).unwrap();
    }
    Observation::Error(ErrorObservation::new(content))
}

/// An expectation as it is compared.
pub(crate) trait IntoObservation {
    fn into_observation(self) -> Observation;
}

impl IntoObservation for RunObservation {
    fn into_observation(self) -> Observation {
        Observation::Run(self)
    }
}

impl IntoObservation for Observation {
    fn into_observation(self) -> Observation {
        self
    }
}

/// Blocks of rows that mostly wait for time to pass run at the same time, each in a session of its own. The names of
/// those that fail are told at the end.
pub(crate) async fn at_the_same_time(blocks: Vec<(&'static str, Block)>) {
    let running: Vec<_> = blocks.into_iter().map(|(name, block)| (name, tokio::spawn(block))).collect();
    let mut failed = Vec::new();
    for (name, block) in running {
        if block.await.is_err() {
            failed.push(name);
        }
    }
    assert_eq!(failed, Vec::<&str>::new(), "blocks that failed; their reasons are above");
}

pub(crate) type Block = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Lists blocks by the names of their functions.
macro_rules! blocks {
    ($($block:ident),* $(,)?) => {
        vec![$((stringify!($block), Box::pin($block()) as crate::case_table::support::Block)),*]
    };
}
pub(crate) use blocks;

/// An environment of our own: a home, and a `PATH` in which `python` is there.
fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let system = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    let bin = home.join("bin");
    fs::create_dir(&bin).unwrap();
    let python = host::find_program("python3", system, Path::new("/")).expect("python3 is installed");
    symlink(python, bin.join("python")).unwrap();
    fs::write(home.join(".gitconfig"), "[init]\n\tdefaultBranch = main\n").unwrap();
    let path = format!("{}:{system}", bin.display());
    [("HOME", home.as_os_str().to_owned()), ("PATH", path.into()), ("LANG", "C.UTF-8".into())]
        .map(|(key, value)| (key.into(), value))
        .to_vec()
}
