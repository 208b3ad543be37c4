//! The task that owns the program of a raw terminal.

use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_sys::{Exit, SessionProcess, SpawnError, SpawnSpec, spawn::Descriptors};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::{Line, TerminalOptions, TerminalState};
use crate::log::OutputLog;

/// Most bytes taken from the terminal before other events get their turn.
const READ_SIZE: usize = 64 * 1024;
/// Time that what the program left behind has to end by itself.
const LEFTOVER_GRACE: Duration = Duration::from_millis(20);
/// Something may still hold the terminal after the program's end; this long without output means that it is complete.
const DRAIN_QUIET: Duration = Duration::from_millis(3);
/// Programs that write for ever do not hold back the end longer than this.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

pub(super) struct Task {
    pub(super) options: TerminalOptions,
    pub(super) line: Arc<Line>,
    pub(super) held: Arc<Mutex<Option<Arc<Line>>>>,
    pub(super) log: OutputLog,
    pub(super) state: watch::Sender<TerminalState>,
    pub(super) order: watch::Receiver<Option<Duration>>,
}

impl Task {
    pub(super) async fn run(self, slave: OwnedFd) {
        let process = match self.spawn(&slave).await {
            Ok(process) => process,
            Err(error) => {
                self.hang_up();
                self.state.send_replace(TerminalState::Failed { reason: error.to_string() });
                return;
            }
        };
        self.state.send_replace(TerminalState::Running { pid: process.pid() });
        let exit = self.serve(process, slave).await;
        // Closed last: its end is a signal that takes parents away before their children are found.
        self.hang_up();
        self.state.send_replace(TerminalState::Ended { exit, end: self.log.end() });
    }

    async fn spawn(&self, slave: &OwnedFd) -> Result<SessionProcess, SpawnError> {
        let options = &self.options;
        let spec = SpawnSpec {
            program: options.program.clone(),
            arguments: options.arguments.clone(),
            environment: options.environment.clone(),
            directory: Some(options.directory.clone()),
            identity: options.identity.clone(),
            memory_limit: options.memory_limit,
            descriptors: Descriptors::Terminal,
        };
        options.spawner.spawn(&spec, &[slave.as_fd()]).await
    }

    /// Moves output until the program ended or its end is asked for, and then ends what is left.
    async fn serve(&self, mut process: SessionProcess, slave: OwnedFd) -> Exit {
        let mut buffer = vec![0; READ_SIZE];
        let mut order = self.order.clone();
        // As long as we hold the other end, too, the terminal is not hung up under a program that closed it.
        let grace = loop {
            tokio::select! {
                readable = self.line.readable() => {
                    let _over = readable.is_err() || self.take(&mut buffer);
                }
                _exit = process.exited() => {
                    drop(slave);
                    self.drain(&mut buffer).await;
                    break LEFTOVER_GRACE;
                }
                grace = ordered(&mut order) => break grace,
            }
        };
        let told = process.watch_exit();
        let end = process.end(grace);
        tokio::pin!(end);
        // Programs may have something to say when they are asked to end.
        let mut hung_up = false;
        loop {
            tokio::select! {
                () = &mut end => break,
                readable = self.line.readable(), if !hung_up => hung_up = readable.is_err() || self.take(&mut buffer),
            }
        }
        self.take(&mut buffer);
        let exit = *told.borrow();
        exit.unwrap_or(Exit { code: None, signal: None, cpu_micros: 0, peak_memory: 0 })
    }

    /// Moves what there is to the log. Answers whether nothing more can come.
    fn take(&self, buffer: &mut [u8]) -> bool {
        let (count, over) = self.line.read(buffer);
        self.log.append(buffer.get(..count).unwrap_or_default());
        over
    }

    /// Moves the last output, which may be on its way for a moment.
    async fn drain(&self, buffer: &mut [u8]) {
        let limit = Instant::now() + DRAIN_LIMIT;
        while !self.take(buffer) {
            let quiet = timeout(DRAIN_QUIET, self.line.readable());
            let Ok(Ok(Ok(()))) = timeout_at(limit, quiet).await else { return };
        }
    }

    fn hang_up(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Returns when the end is asked for, with the time that is left to the programs; none if all handles are gone.
async fn ordered(order: &mut watch::Receiver<Option<Duration>>) -> Duration {
    order.wait_for(Option::is_some).await.ok().and_then(|grace| *grace).unwrap_or_default()
}
