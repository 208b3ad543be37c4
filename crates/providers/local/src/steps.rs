//! The steps of a sandbox's life as this backend takes them.

use std::{fmt, sync::Arc};

/// A step that this backend has just taken. Between any two of them it may die, and nothing is lost or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// The directory of a new server was made.
    DirectoryMade,
    /// Its lock was made and taken.
    LockTaken,
    /// The server was started.
    ServerStarted,
    /// The server told where it listens.
    Listening,
    /// `sandbox.json` was written.
    RecordWritten,
    /// The sandbox got its name.
    Published,
    /// The server was told what it is for.
    StartSent,
    /// The tools of the server are ready.
    Ready,
    /// The server was told that the sandbox is made.
    Committed,
    /// This backend is written down as one that uses the sandbox.
    Held,
    /// It no longer is.
    Released,
    /// The server is about to be asked to pause.
    Pausing,
    /// It has paused.
    Paused,
    /// The server is about to be asked to resume.
    Resuming,
    /// It has resumed.
    Resumed,
    /// The server was told to end.
    EndAsked,
    /// Nothing of the sandbox runs any more.
    Ended,
    /// The sandbox lost its name.
    Unpublished,
    /// Its temporary workspace was removed.
    WorkspaceRemoved,
    /// Its directory was removed.
    DirectoryRemoved,
}

impl Step {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 20] = [
        Self::DirectoryMade,
        Self::LockTaken,
        Self::ServerStarted,
        Self::Listening,
        Self::RecordWritten,
        Self::Published,
        Self::StartSent,
        Self::Ready,
        Self::Committed,
        Self::Held,
        Self::Released,
        Self::Pausing,
        Self::Paused,
        Self::Resuming,
        Self::Resumed,
        Self::EndAsked,
        Self::Ended,
        Self::Unpublished,
        Self::WorkspaceRemoved,
        Self::DirectoryRemoved,
    ];
}

/// Is told each step, on the thread that takes it: for traces, and for tests of what happens between them.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(Step) + Send + Sync>>);

impl Observer {
    /// Tells this function.
    pub fn new(tell: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, step: Step) {
        tracing::trace!(?step, "local sandbox");
        if let Some(tell) = &self.0 {
            tell(step);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
