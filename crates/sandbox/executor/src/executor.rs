//! The tools of one sandbox behind the `ActionExecutor` trait.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_editor::documents::Interrupt;
use gloveport_plugin::PluginHost;
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor, BoxFuture, ErrorObservation, ExecuteError, FileEditSource, Observation,
    RunAction, RunIpythonAction,
    exec::{ExecRequest, ExecStatus, Session},
};
use gloveport_sys::{Identity, Spawner, Surroundings};
use gloveport_terminal::{RunEnd, RunRequest, Shell, ShellOptions, TerminalError, WhenWaiting};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    account::{self, Account},
    cell,
    error::{ExecError, ExecutorError, PauseError},
    exec::{self, Execution, Executions},
    files::Files,
    git, memory,
    parts::{Part, PartState},
    pause::Pause,
    plugins::{PluginOptions, Plugins},
    processes::Processes,
    run,
    terminals::Terminals,
};

/// Hard time limit of a start-up command (`action-execution-api` 1.4).
const STARTUP_LIMIT: Duration = Duration::from_mins(5);

/// How an executor is started.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Who starts and owns processes.
    pub spawner: Spawner,
    /// Root of the process tree that the memory limit counts; `None` for this process.
    pub process_root: Option<u32>,
    /// The environment of every tool.
    pub environment: Vec<(OsString, OsString)>,
    /// What programs of the shell are told of its terminal (`TERM`); `None` is what shells have in OpenHands.
    pub terminal_type: Option<String>,
    /// Directory that tools start in.
    pub working_directory: PathBuf,
    /// User that tools work as; `None` for this process's, with nothing created or changed.
    pub account: Option<Account>,
    /// Soft time limit of a command.
    pub no_change: Duration,
    /// Whether a command is answered as soon as its program waits for input, and not after the soft time limit. A
    /// blocking command never is.
    pub when_waiting: WhenWaiting,
    /// Bound for the memory of all processes together, in bytes.
    pub memory_limit: Option<u64>,
    /// Bytes of output that each shell keeps readable.
    pub spool_size: u64,
    /// Whether there is a main shell. A server whose clients have shells or processes of their own starts sooner without.
    pub has_shell: bool,
    /// Commands that the main shell runs before it is ready; each must end with status 0.
    pub startup_commands: Vec<String>,
    /// What the sandbox has beside its shell and its files.
    pub plugins: PluginOptions,
}

impl ExecutorOptions {
    /// The tools as this process's user, with its environment, in `working_directory`.
    pub fn inherited(working_directory: PathBuf) -> Self {
        Self {
            spawner: Spawner::Direct,
            process_root: None,
            environment: std::env::vars_os().collect(),
            terminal_type: None,
            working_directory,
            account: None,
            no_change: Duration::from_secs(10),
            when_waiting: WhenWaiting::GoOn,
            memory_limit: None,
            spool_size: 256 * 1024 * 1024,
            has_shell: true,
            startup_commands: Vec::new(),
            plugins: PluginOptions::default(),
        }
    }
}

/// Interrupts what a caller waited for.
struct Leaving(Interrupt);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// The tools of one sandbox.
#[derive(Debug)]
pub struct Executor {
    shell: Shell,
    shell_options: ShellOptions,
    no_change: Duration,
    when_waiting: WhenWaiting,
    executions: Executions,
    terminals: Terminals,
    processes: Processes,
    part: Part,
    plugins: Plugins,
    stop: CancellationToken,
    working_directory: PathBuf,
    files: Files,
    pause: Pause,
}

impl Executor {
    /// Makes the user and the directory where they are missing, starts the shell, and runs the start-up commands
    /// (`action-execution-api` 1.4, 1.5).
    pub async fn start(options: ExecutorOptions) -> Result<Arc<Self>, ExecutorError> {
        let part = Part::starting("shell");
        let mut environment = options.environment;
        let added = Plugins::environment(&options.plugins, &options.working_directory);
        environment.retain(|(name, _)| !added.iter().any(|(key, _)| name == key.as_str()));
        environment.extend(added.into_iter().map(|(name, value)| (name.into(), value.into())));
        let mut shell_options = ShellOptions {
            spawner: options.spawner,
            environment,
            terminal_type: options.terminal_type,
            spool_size: options.spool_size,
            memory_limit: options.memory_limit,
            ..ShellOptions::inherited(options.working_directory.clone())
        };
        let mut user = None;
        if let Some(account) = &options.account {
            user = Some(account::prepare(account, &options.working_directory, &mut shell_options)?);
        }
        let files = Files::new(&options.working_directory, user, shell_options.identity.clone());
        tokio::task::spawn_blocking(remove_leftovers);
        let (shell, part) = if options.has_shell {
            main_shell(&shell_options, &options.startup_commands, part).await?
        } else {
            (Shell::absent(&shell_options), Part { state: PartState::Off, ..part })
        };
        let host =
            PluginHost { surroundings: surroundings(&shell_options), workspace: options.working_directory.clone() };
        let plugins = match Box::pin(Plugins::start(options.plugins, host)).await {
            Ok(plugins) => plugins,
            Err(error) => {
                shell.close().await;
                return Err(error);
            }
        };
        let stop = CancellationToken::new();
        let pause = Pause::new(options.process_root);
        if let Some(limit) = options.memory_limit {
            let root = options.process_root.unwrap_or_else(std::process::id);
            tokio::spawn(memory::enforce(root, limit, stop.clone()));
        }
        let terminals = Terminals::new(shell.clone(), shell_options.clone());
        let processes = Processes::new(shell_options.clone());
        Ok(Arc::new(Self {
            shell,
            shell_options,
            terminals,
            processes,
            no_change: options.no_change,
            when_waiting: options.when_waiting,
            executions: Executions::default(),
            part,
            plugins,
            stop,
            working_directory: options.working_directory,
            files,
            pause,
        }))
    }

    /// The persistent shell.
    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// As whom the tools work, if that is another user than this process's.
    pub fn identity(&self) -> Option<&Identity> {
        self.shell_options.identity.as_ref()
    }

    /// Directory that tools start in.
    pub fn working_directory(&self) -> &PathBuf {
        &self.working_directory
    }

    /// How each part stands.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = vec![self.part.clone()];
        parts.extend(self.plugins.parts());
        parts
    }

    /// Stops every process of the tools where it is, also those that are started meanwhile. Of paused ones it is no
    /// error. What the user had stopped before stays stopped at [`resume`](Self::resume). Whoever serves the executor
    /// gives it nothing to do until then.
    pub async fn pause(&self) -> Result<(), PauseError> {
        self.pause.pause().await
    }

    /// Lets the processes of the tools go on. Of those that are not paused it is no error.
    pub async fn resume(&self) {
        self.pause.resume().await;
    }

    /// Whether the processes are paused, or about to be.
    pub fn is_paused(&self) -> bool {
        self.pause.is_paused()
    }

    /// Since when they are paused, or not paused.
    pub fn paused_or_running_since(&self) -> Instant {
        self.pause.since()
    }

    /// Starts a native command, or follows the one that the same request started before. The second value says
    /// whether it was started by this call.
    pub async fn exec(&self, request: ExecRequest) -> Result<(Arc<Execution>, bool), ExecError> {
        let limit = exec::check(&request)?;
        if let Some(known) = self.executions.repeated(&request)? {
            return Ok((known, false));
        }
        let shell = match request.session {
            Session::Main => self.shell.clone(),
            Session::New => Shell::start(exec::own_shell(&self.shell_options, &request)).await?,
        };
        let (execution, added) = match self.executions.add(request, shell.clone()) {
            Ok((execution, true)) => (execution, true),
            other => {
                if !shell.is_same_session(&self.shell) {
                    shell.close().await;
                }
                return other;
            }
        };
        // It goes on when its caller is gone; its end is in the table.
        tokio::spawn(exec::drive(Arc::clone(&execution), limit));
        Ok((execution, added))
    }

    /// The native command of this id.
    pub fn execution(&self, id: &str) -> Result<Arc<Execution>, ExecError> {
        self.executions.find(id)
    }

    /// All native commands that are known, in the order of their start.
    pub fn executions(&self) -> Vec<ExecStatus> {
        self.executions.list()
    }

    /// What the sandbox has beside its shell and its files.
    pub fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// Terminals for people.
    pub fn terminals(&self) -> &Terminals {
        &self.terminals
    }

    /// Programs with pipes.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Ends every tool, and returns when nothing that they started is left.
    pub async fn close(&self) {
        self.stop.cancel();
        self.plugins.stop().await;
        self.terminals.close().await;
        self.processes.close().await;
        let own_shells = self.executions.shells();
        for shell in own_shells {
            shell.close().await;
        }
        self.shell.close().await;
    }

    async fn dispatch(&self, event: &ActionEvent) -> Result<Observation, ExecuteError> {
        match &event.action {
            Action::Run(action) => Ok(self.run(action, event.timeout).await),
            Action::RunIpython(action) => self.run_cell(event, action).await,
            // Such an edit is made by the caller's model; the reference refuses it without a reason.
            Action::Edit(edit) if edit.impl_source == FileEditSource::LlmBasedEdit => {
                Err(ExecuteError::Failed(String::new()))
            }
            Action::Read(_) | Action::Write(_) | Action::Edit(_) => self.file_action(event.action.clone()).await,
            Action::Browse(_) | Action::BrowseInteractive(_) => match self.plugins.execute(event).await {
                Some(result) => result,
                None => Ok(unsupported(event.action.kind())),
            },
            Action::CallToolMcp(_) => self.plugins.execute(event).await.unwrap_or_else(|| not_runnable(event)),
            Action::Message(_)
            | Action::System(_)
            | Action::Null
            | Action::Think(_)
            | Action::Finish(_)
            | Action::Reject(_)
            | Action::Delegate(_)
            | Action::Recall(_)
            | Action::ChangeAgentState(_)
            | Action::Condensation(_)
            | Action::CondensationRequest
            | Action::TaskTracking(_)
            | Action::LoopRecovery(_) => not_runnable(event),
        }
    }

    /// Runs a cell in the kernel, or where another plugin runs it.
    async fn run_cell(&self, event: &ActionEvent, action: &RunIpythonAction) -> Result<Observation, ExecuteError> {
        if let Some(notebook) = self.plugins.notebook() {
            return cell::run(notebook, action, event.timeout, self.shell_directory()).await;
        }
        self.plugins.execute(event).await.unwrap_or_else(|| {
            Err(ExecuteError::PluginMissing("JupyterRequirement not found. Unable to run IPython action.".into()))
        })
    }

    /// Executes an action on files where it holds up nothing else. A panic in it is an error of this action alone.
    async fn file_action(&self, action: Action) -> Result<Observation, ExecuteError> {
        let (files, directory, kind) = (self.files.clone(), self.shell_directory(), action.kind());
        let (sender, receiver) = oneshot::channel();
        let interrupt = Interrupt::default();
        // A caller that leaves drops this.
        let _left = Leaving(interrupt.clone());
        tokio::task::spawn_blocking(move || {
            files.execute_and_tell(&action, &directory, &interrupt, |result| {
                // Its caller may have left.
                let _left = sender.send(result);
            });
        });
        receiver.await.unwrap_or_else(|_| {
            tracing::error!(kind, "a file action failed by a defect of the server");
            Err(ExecuteError::Failed("the file action failed by a defect of the server".to_owned()))
        })
    }

    /// Where the persistent shell is, or was before the command that it runs now.
    fn shell_directory(&self) -> PathBuf {
        self.shell.facts().directory.into()
    }

    async fn run(&self, action: &RunAction, timeout: Option<f64>) -> Observation {
        let waits = match run::waits(action, timeout, self.no_change, self.when_waiting) {
            Ok(waits) => waits,
            Err(observation) => return *observation,
        };
        if !action.is_static {
            return run::observe(action, &waits, self.shell.run(waits.request(action)).await);
        }
        if let Some(question) = git::question(action) {
            return git::answer(&question, action, waits.limit(), &self.shell_options, &self.shell.facts()).await;
        }
        let mut options = self.shell_options.clone();
        if let Some(directory) = &action.cwd {
            options.directory = directory.into();
        }
        let result = match Shell::start(options).await {
            Ok(shell) => {
                let result = shell.run(waits.request(action)).await;
                // Its caller need not wait until its processes are gone.
                tokio::spawn(async move { shell.close().await });
                result
            }
            Err(error) => Err(error),
        };
        run::observe(action, &waits, result)
    }

    /// How its shells are started.
    pub fn shell_options(&self) -> &ShellOptions {
        &self.shell_options
    }

    /// As whom, where and with what environment programs of the sandbox run: as the shell does.
    pub fn surroundings(&self) -> Surroundings {
        surroundings(&self.shell_options)
    }
}

impl ActionExecutor for Executor {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(self.dispatch(event))
    }
}

/// As whom, where and with what environment plugins run their programs: as the shell does.
fn surroundings(shells: &ShellOptions) -> Surroundings {
    Surroundings {
        spawner: shells.spawner.clone(),
        identity: shells.identity.clone(),
        user_name: shells.user_name.clone(),
        environment: shells.environment.clone(),
        directory: shells.directory.clone(),
        memory_limit: shells.memory_limit,
    }
}

/// Removes what killed processes left: of files that they were writing, and of sandboxes that they owned.
fn remove_leftovers() {
    match gloveport_sys::replace::remove_leftovers() {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "removed temporary files that a killed process left"),
        Err(error) => tracing::warn!(%error, "cannot look for temporary files that a killed process left"),
    }
    match gloveport_sys::mark::sweep() {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "ended processes of sandboxes whose owners were killed"),
        Err(error) => tracing::warn!(%error, "cannot look for processes of sandboxes whose owners were killed"),
    }
}

fn not_runnable(event: &ActionEvent) -> Result<Observation, ExecuteError> {
    Err(ExecuteError::NotRunnable { kind: event.action.kind() })
}

fn unsupported(kind: &str) -> Observation {
    let content = format!("Action {kind} is not supported in the current runtime.");
    Observation::Error(ErrorObservation { error_id: "AGENT_ERROR$BAD_ACTION".into(), ..ErrorObservation::new(content) })
}

/// Starts the main shell, and has it run the commands that make it ready.
async fn main_shell(options: &ShellOptions, commands: &[String], part: Part) -> Result<(Shell, Part), ExecutorError> {
    match Shell::start(options.clone()).await {
        // Files and plugins work without one.
        Err(error @ TerminalError::NoShell) => {
            tracing::warn!("{error}");
            let part = part.failed("there is no shell", "install bash in the image");
            Ok((Shell::absent(options), part))
        }
        started => {
            let shell = started?;
            for command in commands {
                run_startup(&shell, command).await?;
            }
            Ok((shell, part.ready()))
        }
    }
}

async fn run_startup(shell: &Shell, command: &str) -> Result<(), ExecutorError> {
    let report = shell.run(RunRequest::command(command).at_most(STARTUP_LIMIT)).await?;
    let failed = |status, output| Err(ExecutorError::Startup { command: command.to_owned(), status, output });
    match report.end {
        RunEnd::Completed { status: 0 } => Ok(()),
        RunEnd::Completed { status } => failed(status, report.output),
        _ => failed(-1, format!("{} [it did not end within {} s]", report.output, STARTUP_LIMIT.as_secs())),
    }
}
