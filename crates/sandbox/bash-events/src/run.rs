//! The task that owns a command: it starts the process, keeps what it writes, and sees its end.

use std::{ffi::OsString, fs, io, path::Path, sync::Arc, time::Duration};

use gloveport_sys::{
    Surroundings,
    session::{Exit, SessionProcess},
    surroundings::{RunError, TalkingProgram},
};
use rustix::process::Signal;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::Receiver,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    bash::Request,
    event::{self, Event, Output},
    log::Log,
    text::Pending,
};

/// Most bytes that are read at once.
const PIECE: usize = 32 * 1024;
/// Time that a command has to end by itself when it is stopped or its time is over.
const GRACE: Duration = Duration::from_secs(1);
/// Time for what was written before the end and not read yet.
const REST: Duration = Duration::from_millis(150);
/// Pause between two looks at what a command left behind.
const LOOK: Duration = Duration::from_millis(500);
/// Time for what a command left behind when the sandbox ends.
const CLOSE_GRACE: Duration = Duration::from_millis(20);

/// A command that is to run.
pub(crate) struct Task {
    pub(crate) id: Uuid,
    pub(crate) request: Request,
    pub(crate) surroundings: Surroundings,
    pub(crate) shell: Vec<OsString>,
    pub(crate) log: Arc<Log>,
    pub(crate) stop: CancellationToken,
}

/// What a command left behind.
pub(crate) struct Left(SessionProcess);

impl Left {
    /// Returns when nothing is left, which is so at the latest when the sandbox ends.
    pub(crate) async fn watch(self, close: &CancellationToken) {
        let gone = async {
            while !self.0.is_gone() {
                sleep(LOOK).await;
            }
        };
        if close.run_until_cancelled(gone).await.is_none() {
            self.0.end(CLOSE_GRACE).await;
        }
    }
}

/// Why a command ends before it does so by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Stopped,
    TimeOver,
}

impl Task {
    /// Runs it to its end, with all of its events.
    pub(crate) async fn run(mut self) -> Option<Left> {
        let began = Instant::now();
        let cwd = self.request.cwd.clone().unwrap_or_default();
        if !cwd.is_empty() {
            self.surroundings.directory.push(&cwd);
        }
        if let Err(error) = enterable(&self.surroundings.directory) {
            let shown = if cwd.is_empty() { self.surroundings.directory.display().to_string() } else { cwd };
            self.failed(&format!("{}: '{shown}'", os_text(&error))).await;
            return None;
        }
        let argv: Vec<OsString> = self.shell.iter().cloned().chain([self.request.command.clone().into()]).collect();
        match self.surroundings.start_to_talk(&argv).await {
            Ok(started) => self.own(started, began).await,
            Err(error) => {
                self.failed(&start_text(&error)).await;
                None
            }
        }
    }

    async fn own(&self, started: TalkingProgram, began: Instant) -> Option<Left> {
        let TalkingProgram { mut process, input, output, errors } = started;
        // It reads nothing but the end.
        drop(input);
        let (mut told, mut pipes) = (Told::new(self.id, &self.log), [pipe(output), pipe(errors)]);
        let limit = Duration::from_secs(u64::try_from(self.request.timeout).unwrap_or_default().max(1));
        let over = began.checked_add(limit);
        let (mut out, mut err) = (vec![0; PIECE], vec![0; PIECE]);
        let (mut cause, mut kill_at) = (None, None);
        loop {
            let exit = process.exit();
            let [stdout, stderr] = &mut pipes;
            if exit.is_some() && stdout.is_none() && stderr.is_none() {
                break;
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if cause.is_none() => {
                    cause = Some(Cause::Stopped);
                    process.signal_group(Signal::TERM);
                    kill_at = Some(Instant::now() + GRACE);
                }
                () = until(over), if cause.is_none() => {
                    cause = Some(Cause::TimeOver);
                    process.signal_group(Signal::TERM);
                    kill_at = Some(Instant::now() + GRACE);
                }
                () = until(kill_at), if kill_at.is_some() => break,
                count = read(stdout, &mut out) => match count {
                    0 => *stdout = None,
                    count => told.stdout(out.get(..count).unwrap_or_default()).await,
                },
                count = read(stderr, &mut err) => match count {
                    0 => *stderr = None,
                    count => told.stderr(err.get(..count).unwrap_or_default()).await,
                },
                _exit = process.exited(), if exit.is_none() => {}
            }
        }
        let ended = process.watch_exit();
        let left = if cause.is_some() {
            process.signal_group(Signal::KILL);
            let _told = timeout(REST, process.exited()).await;
            process.end(Duration::ZERO).await;
            let _complete = timeout(REST, told.rest_of(&mut pipes, &mut out)).await;
            None
        } else {
            Some(Left(process))
        };
        let code = ended.borrow().map_or(-1, code);
        let (code, note) = match cause {
            Some(Cause::TimeOver) => (-1, format!("Command timed out after {} seconds", limit.as_secs())),
            _ => (code, String::new()),
        };
        told.end(code, &note).await;
        left
    }

    /// The only event of a command that cannot be started.
    async fn failed(&self, why: &str) {
        let mut told = Told::new(self.id, &self.log);
        told.end(-1, &format!("Error executing command: {why}")).await;
    }
}

/// The events of a command.
struct Told<'a> {
    id: Uuid,
    log: &'a Arc<Log>,
    order: u64,
    stdout: Pending,
    stderr: Pending,
}

impl<'a> Told<'a> {
    fn new(id: Uuid, log: &'a Arc<Log>) -> Self {
        Self { id, log, order: 0, stdout: Pending::new(), stderr: Pending::new() }
    }

    async fn stdout(&mut self, bytes: &[u8]) {
        self.stdout.push(bytes);
        while let Some(chunk) = self.stdout.chunk() {
            self.tell(chunk, String::new(), None).await;
        }
    }

    async fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
        while let Some(chunk) = self.stderr.chunk() {
            self.tell(String::new(), chunk, None).await;
        }
    }

    /// Takes what is left in both pipes of a command that was ended.
    async fn rest_of(&mut self, pipes: &mut [Option<Receiver>; 2], buffer: &mut [u8]) {
        let [stdout, stderr] = pipes;
        // One that has ended has nothing more, and nothing comes from it.
        while stdout.is_some()
            && let count @ 1.. = read(stdout, buffer).await
        {
            self.stdout(buffer.get(..count).unwrap_or_default()).await;
        }
        while stderr.is_some()
            && let count @ 1.. = read(stderr, buffer).await
        {
            self.stderr(buffer.get(..count).unwrap_or_default()).await;
        }
    }

    /// The last one, with a note on a line of its own.
    async fn end(&mut self, code: i32, note: &str) {
        let (stdout, mut stderr) = (self.stdout.rest(), self.stderr.rest());
        if !note.is_empty() && !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(note);
        self.tell(stdout, stderr, Some(code)).await;
    }

    async fn tell(&mut self, stdout: String, stderr: String, exit_code: Option<i32>) {
        let output = Output { command: self.id, order: self.order, exit_code, stdout, stderr };
        self.order += 1;
        let log = Arc::clone(self.log);
        let added = spawn_blocking(move || log.add(event::new_id()?, &Event::Output(output))).await;
        if let Err(error) = added.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::error!(%error, "an event of a command is lost");
        }
    }
}

fn pipe(end: std::os::fd::OwnedFd) -> Option<Receiver> {
    Receiver::from_owned_fd(end)
        .inspect_err(|error| tracing::warn!(%error, "the output of a command cannot be read"))
        .ok()
}

/// Bytes that came; none at the end. It waits for ever if there is no pipe.
async fn read(pipe: &mut Option<Receiver>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn code(exit: Exit) -> i32 {
    match (exit.code, exit.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => -signal,
        (None, None) => -1,
    }
}

fn enterable(directory: &Path) -> io::Result<()> {
    let metadata = fs::metadata(directory)?;
    if metadata.is_dir() { Ok(()) } else { Err(io::Error::from_raw_os_error(20)) }
}

/// An error of the system as Python tells it.
fn os_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("[Errno {}] {text}", error.raw_os_error().unwrap_or_default())
}

fn start_text(error: &RunError) -> String {
    match error {
        RunError::Missing(program) => format!("[Errno 2] No such file or directory: '{program}'"),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_one_stream_has_at_the_end_is_taken_though_the_other_one_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let log = Arc::new(Log::open(directory.path().join("events")));
        for closed in [0, 1] {
            let (reader, mut writer) = io::pipe().unwrap();
            io::Write::write_all(&mut writer, b"the last").unwrap();
            drop(writer);
            let mut pipes = [None, None];
            pipes[1 - closed] = Some(Receiver::from_owned_fd(reader.into()).unwrap());
            let mut told = Told::new(Uuid::from_u128(1), &log);
            timeout(REST * 10, told.rest_of(&mut pipes, &mut [0; 16])).await.unwrap();
            let texts = [told.stdout.rest(), told.stderr.rest()];
            assert_eq!((texts[1 - closed].as_str(), texts[closed].as_str()), ("the last", ""));
        }
    }
}
