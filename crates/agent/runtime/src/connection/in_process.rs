//! A sandbox that is this process: its tools work on this machine, as this user.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gloveport_archive::{ArchiveLimits, zip};
use gloveport_executor::{Execution, Executor, ExecutorOptions, files};
use gloveport_protocol::{
    ActionEvent, ActionExecutor, BoxFuture, ExecuteError, Observation,
    exec::{ExecEnd, ExecRequest, ExecState},
};
use gloveport_sys::replace::{NewFile, Replacement};
use gloveport_terminal::LogError;
use tempfile::TempPath;
use tokio::sync::OnceCell;

use super::{ConnectRequest, Connector, SandboxConnection};
use crate::{Cause, RuntimeError, RuntimeStatus, StatusLevel, blocking};

/// How long the processes of the tools have to end.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of output that are told at once.
const PIECE: usize = 64 * 1024;

/// Runs the tools in this process.
///
/// Settings of the user are left alone: a session neither writes to `~/.bashrc` nor to the global git configuration.
#[derive(Debug)]
pub struct InProcess {
    options: ExecutorOptions,
    running: OnceCell<Arc<Executor>>,
}

impl InProcess {
    /// Tools with these options.
    pub fn new(options: ExecutorOptions) -> Self {
        Self { options, running: OnceCell::new() }
    }

    /// Tools of this process's user, with its environment, in this directory.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self::new(ExecutorOptions::inherited(directory.into()))
    }
}

impl Connector for InProcess {
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>> {
        Box::pin(async move {
            request.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
            let start = async || Executor::start(self.options.clone()).await;
            let executor = Arc::clone(self.running.get_or_try_init(start).await?);
            request.status.set(StatusLevel::Info, RuntimeStatus::RuntimeStarted, "");
            Ok(Arc::new(Here { executor }) as Arc<dyn SandboxConnection>)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(executor) = self.running.get() else { return };
            if tokio::time::timeout(CLOSE_LIMIT, executor.close()).await.is_err() {
                tracing::warn!(limit = ?CLOSE_LIMIT, "the processes of the session did not end in time");
            }
        })
    }
}

/// The tools of this process.
#[derive(Debug)]
struct Here {
    executor: Arc<Executor>,
}

impl Here {
    /// A path of the sandbox: relative ones begin where the tools started.
    fn at(&self, path: &str) -> PathBuf {
        self.executor.working_directory().join(path)
    }
}

impl ActionExecutor for Here {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        self.executor.execute(event)
    }
}

impl SandboxConnection for Here {
    fn list_files<'a>(&'a self, path: Option<&'a str>) -> BoxFuture<'a, Result<Vec<String>, RuntimeError>> {
        let directory = self.at(path.unwrap_or_default());
        Box::pin(blocking(move || Ok(files::names(&directory).unwrap_or_default())))
    }

    fn copy_to<'a>(
        &'a self,
        source: &'a Path,
        destination: &'a str,
        recursive: bool,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (source, destination) = (source.to_owned(), self.at(destination));
        Box::pin(blocking(
            move || {
                if recursive { copy_tree(&source, &destination) } else { copy_file(&source, &destination) }
            },
        ))
    }

    fn copy_from<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<TempPath, RuntimeError>> {
        let root = self.at(path);
        Box::pin(blocking(move || {
            let plan = if root.is_dir() { zip::Plan::of_contents(&root)? } else { zip::Plan::empty() };
            packed(&plan)
        }))
    }

    fn exec<'a>(
        &'a self,
        request: ExecRequest,
        output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Option<ExecEnd>, RuntimeError>> {
        Box::pin(async move {
            let (execution, _) = self.executor.exec(request).await?;
            Ok(Some(follow(&execution, output).await?))
        })
    }

    fn is_own_home(&self) -> bool {
        true
    }
}

/// Tells the output of a command to its end.
async fn follow(execution: &Execution, output: &mut (dyn FnMut(&[u8]) + Send)) -> Result<ExecEnd, RuntimeError> {
    let mut state = execution.watch();
    let mut read = None;
    loop {
        let now = state.borrow_and_update().clone();
        let (start, end) = match now {
            ExecState::Queued => (None, None),
            ExecState::Running { start, .. } => (Some(start), None),
            ExecState::Ended(end) => (Some(end.start), Some(end)),
        };
        let mut offset = read.or(start).unwrap_or_default();
        while start.is_some() {
            match execution.read(offset, PIECE) {
                Ok(piece) if piece.bytes.is_empty() => break,
                Ok(piece) => {
                    output(&piece.bytes);
                    offset += piece.bytes.len() as u64;
                }
                Err(LogError::Gone { oldest, .. }) => {
                    tracing::warn!(lost = oldest - offset, "output came faster than it could be read; a part is lost");
                    offset = oldest;
                }
                Err(error) => return Err(unread(Box::new(error))),
            }
        }
        read = start.map(|_| offset);
        if let Some(end) = end {
            return Ok(end);
        }
        tokio::select! {
            changed = state.changed() => changed.map_err(|error| unread(Box::new(error)))?,
            () = execution.grown_beyond(offset), if start.is_some() => {}
        }
    }
}

fn unread(source: Cause) -> RuntimeError {
    RuntimeError::Disconnected { what: "the output of the command cannot be read".to_owned(), source: Some(source) }
}

/// The files of a plan as a temporary zip file.
fn packed(plan: &zip::Plan) -> Result<TempPath, RuntimeError> {
    let (mut file, path) = temporary()?;
    plan.write_to(&mut file)?;
    Ok(path)
}

fn temporary() -> Result<(File, TempPath), RuntimeError> {
    let made = tempfile::Builder::new().prefix("gloveport-").suffix(".zip").tempfile();
    let made = made.map_err(|source| RuntimeError::File { action: "make", path: std::env::temp_dir(), source })?;
    Ok(made.into_parts())
}

/// As over HTTP: a directory arrives under its name, unless its path ends with a slash, and only its regular files do.
fn copy_tree(source: &Path, destination: &Path) -> Result<(), RuntimeError> {
    if !source.exists() {
        return Err(RuntimeError::SourceMissing(source.to_owned()));
    }
    let contents_only = source.as_os_str().as_encoded_bytes().ends_with(b"/");
    let plan = if contents_only { zip::Plan::of_contents(source)? } else { zip::Plan::of_directory(source)? };
    let zip_file = packed(&plan)?;
    unpack(&zip_file, destination)
}

fn unpack(zip_file: &Path, destination: &Path) -> Result<(), RuntimeError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| RuntimeError::File { action, path, source }
    };
    std::fs::create_dir_all(destination).map_err(failed("make", destination))?;
    let file = File::open(zip_file).map_err(failed("open", zip_file))?;
    zip::unpack(&file, destination, &ArchiveLimits::default())?;
    Ok(())
}

/// A file arrives in the directory under its name. A zip file is unpacked instead, as servers do.
fn copy_file(source: &Path, destination: &Path) -> Result<(), RuntimeError> {
    let Some(name) = source.file_name().filter(|_| source.exists()) else {
        return Err(RuntimeError::SourceMissing(source.to_owned()));
    };
    if name.as_encoded_bytes().ends_with(b".zip") {
        return unpack(source, destination);
    }
    let target = destination.join(name);
    let copy = || {
        std::fs::create_dir_all(destination)?;
        let mut content = File::open(source)?;
        let mut replacement = Replacement::begin(&target, NewFile::default())?;
        std::io::copy(&mut content, &mut replacement)?;
        replacement.commit().map(drop)
    };
    copy().map_err(|source| RuntimeError::File { action: "copy to", path: target.clone(), source })
}
