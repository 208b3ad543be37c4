//! Processes: programs with pipes, known by an id, that live on when nobody follows them.
//!
//! They work as the user of the tools, with the environment that the tools were started with.

mod feed;
mod run;

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_protocol::processes::{ProcessFrom, ProcessList, ProcessRequest, ProcessStatus};
use gloveport_sys::surroundings::{RunError, Surroundings, TalkingProgram};
use gloveport_terminal::ShellOptions;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::pipe::Sender,
    sync::{Mutex as AsyncMutex, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{error::ProcessesError, exec};
use feed::Feed;
pub use feed::Follower;

/// Processes that may run at the same time.
pub const RUNNING: usize = 256;
/// Ended ones that can still be asked for.
pub const KEPT: usize = 64;
/// Who may follow one process at the same time.
pub const FOLLOWERS: usize = 64;
/// Most bytes of words and variables of a request.
const WORDS: usize = 1024 * 1024;
/// Longest tag.
const TAG: usize = 256;
/// How long a process may take to take a piece of its input.
const INPUT: Duration = Duration::from_secs(30);
/// Time that programs have to end by themselves when their process is removed.
const REMOVE_GRACE: Duration = Duration::from_millis(500);
/// The same when the sandbox ends.
const CLOSE_GRACE: Duration = Duration::from_millis(20);

/// A process.
#[derive(Debug)]
pub struct Process {
    id: String,
    pid: u32,
    request: ProcessRequest,
    directory: PathBuf,
    feed: Arc<Feed>,
    input: AsyncMutex<Option<Sender>>,
    order: watch::Sender<Option<Duration>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Process {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How it stands.
    pub fn status(&self) -> ProcessStatus {
        ProcessStatus {
            id: self.id.clone(),
            pid: self.pid,
            argv: self.request.argv.clone(),
            cwd: self.directory.clone(),
            tag: self.request.tag.clone(),
            end: self.feed.ended(),
        }
    }

    /// Follows what it writes.
    pub fn follow(&self, from: ProcessFrom) -> Result<Follower, ProcessesError> {
        if self.feed.followers() >= FOLLOWERS {
            return Err(ProcessesError::TooManyFollow);
        }
        Ok(self.feed.follow(from))
    }

    /// Gives it input. A part may have been taken when it does not take all in time.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), ProcessesError> {
        let mut input = self.input.lock().await;
        let pipe = input.as_mut().ok_or_else(|| ProcessesError::NoInput(self.id.clone()))?;
        match timeout(INPUT, pipe.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => {
                *input = None;
                Err(ProcessesError::NoInput(self.id.clone()))
            }
            Err(_) => Err(ProcessesError::Stalled { id: self.id.clone(), limit: INPUT }),
        }
    }

    /// Ends its input. Twice is not an error.
    pub async fn close_input(&self) -> Result<(), ProcessesError> {
        if !self.request.stdin {
            return Err(ProcessesError::NoInput(self.id.clone()));
        }
        self.input.lock().await.take();
        Ok(())
    }

    /// Sends a signal to the program, or to all of its process group.
    pub fn signal(&self, name: &str, group: bool) -> Result<(), ProcessesError> {
        let known = crate::terminals::signal_named(name);
        let signal: Signal = known.ok_or_else(|| {
            let known = crate::terminals::signal_names().collect::<Vec<_>>().join(", ");
            ProcessesError::Invalid(format!("no signal `{name}` can be sent; there are {known}"))
        })?;
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).filter(|_| self.feed.ended().is_none());
        let pid = pid.ok_or_else(|| ProcessesError::NotRunning(self.id.clone()))?;
        let sent = if group { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
        sent.map_err(|_| ProcessesError::NotRunning(self.id.clone()))
    }

    async fn end(&self, grace: Duration) {
        self.order.send_replace(Some(grace));
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // A panic of the task ends its process, too.
            let _panicked = task.await;
        }
    }
}

/// All processes of a sandbox.
#[derive(Debug)]
pub struct Processes {
    options: ShellOptions,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// In the order of their start.
    all: VecDeque<Arc<Process>>,
    /// Those that are being started.
    starting: usize,
    /// The sandbox ends.
    closed: bool,
}

impl Processes {
    pub(crate) fn new(options: ShellOptions) -> Self {
        Self { options, table: Mutex::default() }
    }

    /// Starts a process.
    pub async fn start(&self, request: ProcessRequest) -> Result<Arc<Process>, ProcessesError> {
        self.start_with(request, None).await
    }

    /// The same with another environment than programs of the sandbox have, beside what the request adds.
    pub async fn start_with(
        &self,
        request: ProcessRequest,
        environment: Option<Vec<(OsString, OsString)>>,
    ) -> Result<Arc<Process>, ProcessesError> {
        let limit = check(&request)?;
        let directory = request.cwd.clone().unwrap_or_else(|| self.options.directory.clone());
        let id = exec::random_id().map_err(|error| ProcessesError::Invalid(error.to_string()))?;
        let _place = self.place()?;
        let (order, ordered) = watch::channel(None);
        let words: Vec<OsString> = request.argv.iter().map(OsString::from).collect();
        let environment = environment.unwrap_or_else(|| self.options.environment.clone());
        let started = self.surroundings(&request, directory.clone(), environment).start_to_talk(&words).await;
        let TalkingProgram { process, input, output, errors } = started.map_err(|error| match error {
            RunError::Missing(program) => ProcessesError::NoProgram(program),
            error => ProcessesError::Start(error),
        })?;
        // Without a writer the input is at its end.
        let input = request.stdin.then(|| Sender::from_owned_fd(input)).transpose();
        let input = input.map_err(|source| {
            ProcessesError::Start(RunError::Output {
                program: request.argv.first().cloned().unwrap_or_default(),
                source,
            })
        })?;
        let (feed, pid) = (Arc::new(Feed::new()), process.pid());
        let running = run::Running { process, output, errors, limit };
        let task = tokio::spawn(run::own(running, Arc::clone(&feed), ordered));
        let started = Arc::new(Process {
            id,
            pid,
            request,
            directory,
            feed,
            input: AsyncMutex::new(input),
            order,
            task: Mutex::new(Some(task)),
        });
        let closed = {
            let mut table = self.table();
            table.all.push_back(Arc::clone(&started));
            table.closed
        };
        if closed {
            started.end(CLOSE_GRACE).await;
            return Err(ProcessesError::Closed);
        }
        Ok(started)
    }

    /// The process of this id.
    pub fn find(&self, id: &str) -> Result<Arc<Process>, ProcessesError> {
        let found = self.table().all.iter().find(|process| process.id == id).cloned();
        found.ok_or_else(|| ProcessesError::Unknown(id.to_owned()))
    }

    /// All that are known.
    pub fn list(&self) -> ProcessList {
        ProcessList {
            user: self.options.user_name.clone(),
            directory: self.options.directory.display().to_string(),
            processes: self.table().all.iter().map(|process| process.status()).collect(),
        }
    }

    /// Ends a process with everything that it started, and forgets it. Answers with how it ended.
    pub async fn remove(&self, id: &str) -> Result<ProcessStatus, ProcessesError> {
        let process = self.find(id)?;
        process.end(REMOVE_GRACE).await;
        self.table().all.retain(|known| known.id != id);
        Ok(process.status())
    }

    /// Ends all of them, and returns when nothing that they started is left. No new one can be started.
    pub(crate) async fn close(&self) {
        let all: Vec<Arc<Process>> = {
            let mut table = self.table();
            table.closed = true;
            table.all.iter().cloned().collect()
        };
        let mut closing = JoinSet::new();
        for process in all {
            closing.spawn(async move { process.end(CLOSE_GRACE).await });
        }
        closing.join_all().await;
    }

    /// Takes a place among those that run, and lets go the oldest ended one beyond the bound.
    fn place(&self) -> Result<Place<'_>, ProcessesError> {
        let mut table = self.table();
        if table.closed {
            return Err(ProcessesError::Closed);
        }
        let ended = table.all.iter().filter(|process| process.feed.ended().is_some()).count();
        if table.all.len() - ended + table.starting >= RUNNING {
            return Err(ProcessesError::TooMany);
        }
        if ended >= KEPT {
            // What it left behind goes with it.
            let oldest = table.all.iter().position(|process| process.feed.ended().is_some());
            let _let_go = oldest.and_then(|at| table.all.remove(at));
        }
        table.starting += 1;
        Ok(Place(self))
    }

    fn surroundings(
        &self,
        request: &ProcessRequest,
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
    ) -> Surroundings {
        let options = &self.options;
        let mut surroundings = Surroundings {
            spawner: options.spawner.clone(),
            identity: options.identity.clone(),
            user_name: options.user_name.clone(),
            environment,
            directory,
            memory_limit: options.memory_limit,
        };
        for (name, value) in &request.env {
            surroundings.set(name, value);
        }
        surroundings
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that is being started.
struct Place<'a>(&'a Processes);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.table().starting -= 1;
    }
}

/// Checks what can be wrong with a request before anything is started.
fn check(request: &ProcessRequest) -> Result<Option<Duration>, ProcessesError> {
    let invalid = |text: String| Err(ProcessesError::Invalid(text));
    let limit = match request.timeout {
        Some(seconds) if seconds <= 0.0 || seconds.is_nan() => {
            return invalid(format!("timeout must be a positive number, and is {seconds}"));
        }
        // What is beyond the end of time is no limit.
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => None,
    };
    if request.argv.first().is_none_or(String::is_empty) {
        return invalid("argv is empty; name a program".to_owned());
    }
    if request.argv.iter().any(|word| word.contains('\0')) {
        return invalid("argv contains a NUL byte".to_owned());
    }
    let is_wrong =
        |(name, value): &(&String, &String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    if let Some((name, _)) = request.env.iter().find(is_wrong) {
        return invalid(format!("env has an entry {name:?} that no environment can hold"));
    }
    let size =
        request.argv.iter().chain(request.env.keys()).chain(request.env.values()).map(String::len).sum::<usize>();
    if size > WORDS {
        return invalid(format!("argv and env have {size} bytes, and {WORDS} are possible; put large data into files"));
    }
    if request.tag.as_ref().is_some_and(|tag| tag.len() > TAG) {
        return invalid(format!("the tag is longer than {TAG} bytes"));
    }
    match &request.cwd {
        Some(cwd) if cwd.is_relative() => invalid(format!("cwd must be an absolute path, and is `{}`", cwd.display())),
        Some(cwd) if !cwd.is_dir() => Err(ProcessesError::Directory(cwd.clone())),
        _ => Ok(limit),
    }
}
