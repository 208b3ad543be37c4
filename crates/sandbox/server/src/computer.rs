//! The sandbox itself as the computer of its MCP server.

use std::{
    collections::VecDeque,
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gloveport_executor::{
    Executor,
    browser::{Browser, BrowserError},
    cell,
    files::{self, FileError, watch::Watch},
    kernels::Cell,
    plugins::Notebook,
};
use gloveport_mcp_server::{BrowserAnswer, BrowserRequest, Changes, Computer, Failure, FileBytes, Follow};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, BoxFuture, Observation,
    exec::{ExecEvent, ExecInput, ExecRequest, ExecState, ExecStatus},
    files::{FileEntry, FileEvent, FileList, GlobRequest, GrepMatches, GrepRequest},
    kernels::{CellRequest, CellResult, DEFAULT_KERNEL},
};
use gloveport_sys::replace::{self, NewFile, Replacement};

use crate::v1::follower::{Follower, Found};

/// Bytes of output that are read at once.
const PIECE: usize = 32 * 1024;

type Answer<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// A sandbox, used from within.
pub(crate) struct Inside {
    executor: Arc<Executor>,
    directory: String,
}

impl Inside {
    pub(crate) fn new(executor: &Arc<Executor>) -> Self {
        let directory = executor.working_directory().to_string_lossy().into_owned();
        Self { executor: Arc::clone(executor), directory }
    }

    fn notebook(&self) -> Result<&Arc<Notebook>, Failure> {
        let missing = || Failure::new("the sandbox has no IPython: it was started without the plugin jupyter");
        self.executor.plugins().notebook().ok_or_else(missing)
    }

    fn browser(&self) -> Result<&Browser, Failure> {
        let missing = || Failure::new("the sandbox was started without a browser");
        self.executor.plugins().web().and_then(|web| web.browser()).ok_or_else(missing)
    }
}

/// Asks the browser.
async fn browse(browser: Browser, request: BrowserRequest) -> Result<BrowserAnswer, BrowserError> {
    let page = |view| BrowserAnswer::Page(Box::new(view));
    match request {
        BrowserRequest::Navigate(request) => browser.navigate(request).await.map(page),
        BrowserRequest::Act(act) => browser.act(act).await.map(page),
        BrowserRequest::Page => browser.view().await.map(page),
        BrowserRequest::Pages => Ok(BrowserAnswer::Pages(browser.pages().await)),
        BrowserRequest::Markdown => browser.markdown().await.map(BrowserAnswer::Text),
        BrowserRequest::Screenshot(request) => browser.screenshot(request).await.map(BrowserAnswer::Picture),
    }
}

fn told(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

fn file_failure(error: &FileError) -> Failure {
    let is_missing = matches!(error, FileError::Os { source, .. } if source.kind() == io::ErrorKind::NotFound);
    Failure { is_missing, ..Failure::new(error.to_string()) }
}

/// Runs file work on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await.map_err(told)?;
    done.map_err(|error| file_failure(&error))
}

fn read(path: &Path, offset: u64, most: u64) -> io::Result<FileBytes> {
    let mut file = replace::open_to_read(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(FileBytes { is_end: (bytes.len() as u64) < most, bytes })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut replacement = Replacement::begin(path, NewFile { mode: None, owner: None })?;
    replacement.file().write_all(bytes)?;
    drop(replacement.commit()?);
    Ok(())
}

impl Computer for Inside {
    fn directory(&self) -> &str {
        &self.directory
    }

    fn has_browser(&self) -> bool {
        self.executor.plugins().web().is_some()
    }

    fn browse(&self, request: BrowserRequest) -> Answer<'_, BrowserAnswer> {
        let browser = self.browser().cloned();
        Box::pin(async move { browse(browser?, request).await.map_err(told) })
    }

    fn run(&self, request: ExecRequest) -> Answer<'_, Box<dyn Follow>> {
        Box::pin(async move {
            let (execution, _) = self.executor.exec(request).await.map_err(told)?;
            let follower = Follower::new(execution, None).map_err(told)?;
            Ok(Box::new(Followed::new(follower)) as Box<dyn Follow>)
        })
    }

    fn follow<'a>(&'a self, id: &'a str, offset: u64) -> Answer<'a, Box<dyn Follow>> {
        Box::pin(async move {
            let execution = self.executor.execution(id).map_err(told)?;
            let follower = Follower::new(execution, Some(offset)).map_err(told)?;
            Ok(Box::new(Followed::new(follower)) as Box<dyn Follow>)
        })
    }

    fn commands(&self) -> Answer<'_, Vec<ExecStatus>> {
        Box::pin(async move { Ok(self.executor.executions()) })
    }

    fn type_in<'a>(&'a self, id: &'a str, text: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let execution = self.executor.execution(id).map_err(told)?;
            execution.type_in(ExecInput { text: text.to_owned() }).await.map_err(told)
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            self.executor.execution(id).map_err(told)?.cancel();
            Ok(())
        })
    }

    fn act(&self, action: Action) -> Answer<'_, Observation> {
        Box::pin(async move { self.executor.execute(&ActionEvent::from(action)).await.map_err(told) })
    }

    fn cell(&self, request: CellRequest) -> Answer<'_, CellResult> {
        Box::pin(async move {
            let kernel = self.notebook()?.kernel(DEFAULT_KERNEL).await.map_err(told)?;
            let limit = request.timeout.map(Duration::from_secs_f64);
            let directory = Some(self.executor.shell().facts().directory.into());
            let report = kernel
                .execute(Cell { code: request.code, limit, directory, progress: None, detailed: false })
                .await
                .map_err(told)?;
            Ok(CellResult {
                text: report.text,
                images: report.images,
                end: cell::outcome(report.end),
                kernel_lost_before: report.lost_before.is_some(),
                interpreter: report.interpreter,
            })
        })
    }

    fn interrupt_cell(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            match self.notebook()?.kernels().find(DEFAULT_KERNEL) {
                Some(kernel) => kernel.interrupt().await.map_err(told),
                None => Ok(()),
            }
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Answer<'a, FileEntry> {
        let path = PathBuf::from(path);
        Box::pin(blocking(move || files::entry(&path, true)))
    }

    fn list<'a>(&'a self, path: &'a str, most: usize) -> Answer<'a, FileList> {
        let path = PathBuf::from(path);
        Box::pin(blocking(move || files::list(&path, 1, true, Some(most))))
    }

    fn read<'a>(&'a self, path: &'a str, offset: u64, most: u64) -> Answer<'a, FileBytes> {
        let path = PathBuf::from(path);
        Box::pin(blocking(move || read(&path, offset, most).map_err(|source| FileError::Os { path, source })))
    }

    fn write<'a>(&'a self, path: &'a str, bytes: Vec<u8>) -> Answer<'a, ()> {
        let path = PathBuf::from(path);
        Box::pin(blocking(move || write(&path, &bytes).map_err(|source| FileError::Os { path, source })))
    }

    fn glob(&self, request: GlobRequest) -> Answer<'_, FileList> {
        let root = PathBuf::from(request.path.as_deref().unwrap_or(&self.directory));
        Box::pin(blocking(move || files::glob(&root, &request)))
    }

    fn grep(&self, request: GrepRequest) -> Answer<'_, GrepMatches> {
        let root = PathBuf::from(request.path.as_deref().unwrap_or(&self.directory));
        Box::pin(blocking(move || files::grep(&root, &request)))
    }

    fn watch<'a>(&'a self, path: &'a str, recursive: bool) -> Answer<'a, Box<dyn Changes>> {
        let path = PathBuf::from(path);
        let runtime = tokio::runtime::Handle::current();
        Box::pin(async move {
            let watch = blocking(move || {
                let _context = runtime.enter();
                Watch::start(&path, recursive)
            });
            Ok(Box::new(Watched(watch.await?)) as Box<dyn Changes>)
        })
    }
}

struct Watched(Watch);

impl Changes for Watched {
    fn next(&mut self) -> Answer<'_, Option<FileEvent>> {
        Box::pin(async move { self.0.next().await.map_err(told) })
    }
}

/// A command as events. Output comes in pieces when it is asked for.
struct Followed {
    follower: Follower,
    /// What was told last of its waiting: for input, and hiding it.
    waiting: (bool, bool),
    is_over: bool,
    found: VecDeque<ExecEvent>,
}

impl Followed {
    const fn new(follower: Follower) -> Self {
        Self { follower, waiting: (false, false), is_over: false, found: VecDeque::new() }
    }

    fn step(&mut self) -> Result<(), Failure> {
        let state = self.follower.state();
        let found = self.follower.look(&state, PIECE).map_err(told)?;
        let Some(offset) = self.follower.cursor() else { return Ok(()) };
        match found {
            Found::Nothing => {}
            Found::Gap(to) => {
                self.follower.advance(to);
                self.found.push_back(ExecEvent::Gap { from: offset, to });
            }
            Found::End => {
                if let ExecState::Ended(end) = state.counted_from_its_start() {
                    self.is_over = true;
                    self.found.push_back(ExecEvent::Ended(end));
                }
            }
            Found::Bytes(bytes) if !bytes.is_empty() => {
                self.follower.advance(offset + bytes.len() as u64);
                self.found.push_back(ExecEvent::Output { offset, bytes });
            }
            // Only what was written before the question counts as shown when a program waits for the answer.
            Found::Bytes(_) => {
                if let ExecState::Running { waiting_for_input, hides_input, .. } = state
                    && (waiting_for_input, hides_input) != self.waiting
                {
                    self.waiting = (waiting_for_input, hides_input);
                    let is_secret = waiting_for_input && hides_input;
                    self.found.push_back(if is_secret {
                        ExecEvent::WaitingForSecret
                    } else {
                        ExecEvent::Waiting(waiting_for_input)
                    });
                }
            }
        }
        Ok(())
    }
}

impl Follow for Followed {
    fn next(&mut self) -> Answer<'_, Option<ExecEvent>> {
        Box::pin(async move {
            loop {
                if let Some(event) = self.found.pop_front() {
                    return Ok(Some(event));
                }
                if self.is_over {
                    return Ok(None);
                }
                self.step()?;
                if self.found.is_empty() {
                    self.follower.changed(0).await;
                }
            }
        })
    }
}
