//! A program that was started, with a reader for what it prints.

use std::{ffi::OsString, sync::Arc, time::Duration};

use gloveport_sys::{
    Exit, SessionProcess, Surroundings,
    surroundings::{RunError, StartedProgram},
};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::log::ProgramLog;

/// Time for a program to end by itself when it is asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// Time for the last of its output, once nothing of it should be left.
const REST: Duration = Duration::from_millis(200);

/// A program that was started. Dropping it ends it and all that it started.
#[derive(Debug)]
pub(crate) struct Program {
    process: SessionProcess,
    reader: AbortOnDropHandle<()>,
}

impl Program {
    /// Starts a program whose output goes to the log.
    pub(crate) async fn start(
        surroundings: &Surroundings,
        argv: &[OsString],
        log: Arc<ProgramLog>,
    ) -> Result<Self, RunError> {
        let StartedProgram { process, output } = surroundings.start(argv).await?;
        Ok(Self { process, reader: AbortOnDropHandle::new(tokio::spawn(log.read(output))) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the program itself ended.
    pub(crate) async fn exited(&mut self) -> Exit {
        self.process.exited().await
    }

    /// Ends it and all that it started, politely for as long as `grace`; then all that it printed is in the log.
    pub(crate) async fn end(self, grace: Duration) {
        self.process.end(grace).await;
        // A process that escaped may hold the pipe; nobody waits for it.
        let _rest = timeout(REST, self.reader).await;
    }
}

/// How a program ended, for people.
pub fn ended(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("it ended with status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
