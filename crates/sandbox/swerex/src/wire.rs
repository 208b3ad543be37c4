//! All calls, and the sessions by name.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use gloveport_archive::ArchiveLimits;
use gloveport_executor::Executor;
use tokio::task::{JoinSet, spawn_blocking};

use crate::{
    command,
    exception::Exception,
    files::{self, Upload},
    session::Session,
    types::{
        CloseSession, Closed, Command, CommandResponse, CreateSession, Created, FileContent, Observation, ReadFile,
        SessionAction, WriteFile,
    },
};

/// Most sessions at the same time.
pub const MOST_SESSIONS: usize = 128;

/// What the server of SWE-ReX does, on the tools of a sandbox.
#[derive(Debug)]
pub struct SweRex {
    executor: Arc<Executor>,
    sessions: Mutex<HashMap<String, Place>>,
}

#[derive(Debug)]
enum Place {
    Starting,
    There(Arc<Session>),
}

impl SweRex {
    /// Without a session.
    pub fn new(executor: Arc<Executor>) -> Self {
        Self { executor, sessions: Mutex::default() }
    }

    /// Starts a session.
    ///
    /// # Errors
    ///
    /// There is one of this name, there are too many, or it is not ready in time; none is left then.
    pub async fn create_session(&self, request: CreateSession) -> Result<Created, Exception> {
        let place = self.reserve(&request.session)?;
        let (options, surroundings) = (self.executor.shell_options().clone(), self.executor.surroundings());
        let (session, output) =
            Session::start(options, surroundings, &request.startup_source, request.startup_timeout).await?;
        if let Some(session) = place.take(session) {
            session.close().await;
            return Err(Exception::failed("all sessions were closed while this one was started"));
        }
        Ok(Created { output, session_type: request.session_type })
    }

    fn reserve(&self, name: &str) -> Result<Reserved<'_>, Exception> {
        let mut sessions = self.sessions();
        if sessions.contains_key(name) {
            return Err(Exception::session_exists(name));
        }
        if sessions.len() >= MOST_SESSIONS {
            return Err(Exception::failed(format!("there are {MOST_SESSIONS} sessions already; close one first")));
        }
        sessions.insert(name.to_owned(), Place::Starting);
        Ok(Reserved { wire: self, name: name.to_owned() })
    }

    /// Does something in a session.
    ///
    /// # Errors
    ///
    /// What the client raises.
    pub async fn run_in_session(&self, action: &SessionAction) -> Result<Observation, Exception> {
        match action {
            SessionAction::Bash(action) => Box::pin(self.session(&action.session)?.run(action)).await,
            SessionAction::Interrupt(action) => Box::pin(self.session(&action.session)?.interrupt(action)).await,
        }
    }

    fn session(&self, name: &str) -> Result<Arc<Session>, Exception> {
        match self.sessions().get(name) {
            Some(Place::There(session)) => Ok(Arc::clone(session)),
            Some(Place::Starting) | None => Err(Exception::no_session(name)),
        }
    }

    /// Ends a session and all that it started.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    pub async fn close_session(&self, request: &CloseSession) -> Result<Closed, Exception> {
        let session = self.session(&request.session)?;
        self.sessions().remove(&request.session);
        session.close().await;
        Ok(Closed { session_type: request.session_type })
    }

    /// Runs a program without a session.
    ///
    /// # Errors
    ///
    /// What the client raises.
    pub async fn execute(&self, command: &Command) -> Result<CommandResponse, Exception> {
        command::execute(&self.executor, command).await
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It is no file with a text of this encoding.
    pub async fn read_file(&self, request: ReadFile) -> Result<FileContent, Exception> {
        let path = self.path(&request.path);
        apart(move || files::read(&request, &path)).await
    }

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub async fn write_file(&self, request: WriteFile) -> Result<(), Exception> {
        let path = self.path(&request.path);
        apart(move || files::write(&request.path, &path, &request.content)).await
    }

    /// Puts an upload where it goes: a file, or with `unzip` the tree of an archive. It waits for the disk.
    ///
    /// # Errors
    ///
    /// It cannot be stored, or is no archive.
    pub fn store(
        &self,
        file: &mut File,
        name: &str,
        target: &str,
        unzip: bool,
        limits: &ArchiveLimits,
        stop: &AtomicBool,
    ) -> Result<(), Exception> {
        Upload { file, name, target: &self.path(target), unzip }.store(limits, stop)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.executor.working_directory().join(Path::new(path))
    }

    /// Ends all sessions.
    pub async fn close(&self) {
        let all: Vec<Place> = self.sessions().drain().map(|(_, place)| place).collect();
        let mut closing = JoinSet::new();
        for place in all {
            if let Place::There(session) = place {
                closing.spawn(async move { session.close().await });
            }
        }
        closing.join_all().await;
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a session that is started. It is free again if that comes to nothing.
struct Reserved<'a> {
    wire: &'a SweRex,
    name: String,
}

impl Reserved<'_> {
    /// Puts the session there; the session, if the place is gone.
    fn take(self, session: Session) -> Option<Session> {
        match self.wire.sessions().get_mut(&self.name) {
            Some(place @ Place::Starting) => {
                *place = Place::There(Arc::new(session));
                None
            }
            _ => Some(session),
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut sessions = self.wire.sessions();
        if matches!(sessions.get(&self.name), Some(Place::Starting)) {
            sessions.remove(&self.name);
        }
    }
}

/// Work that waits for the disk.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Exception> + Send + 'static,
) -> Result<T, Exception> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(Exception::failed(format!("the work did not end: {error}"))))
}
