//! A command at somebody's own terminal: it has this process's standard input, output and error.
//!
//! It is for a program that does nothing else, since this process becomes the parent of whatever the command leaves, and
//! ends it.

use std::{
    ffi::OsString,
    io,
    os::fd::AsFd as _,
    path::Path,
    time::{Duration, Instant},
};

use gloveport_sys::{Exit, SpawnError, Spawner, process};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, wait},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::command::{GRACE, spec};

/// How often it is looked whether the rest is gone.
const LOOK: Duration = Duration::from_millis(2);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttendedEnd {
    /// By itself, or by a signal.
    Exited(Exit),
    /// Its time was over.
    TimedOut,
    /// This process was told to end by this signal (by the second interrupt; the first goes to the command).
    Ended(i32),
}

/// Why no command could be run.
#[derive(Debug, thiserror::Error)]
pub enum AttendedError {
    /// It can not be started.
    #[error("the command cannot be started: {0}")]
    Start(String),
    /// The system refused it.
    #[error("the command cannot be started: {0}")]
    Spawn(#[from] SpawnError),
    /// Signals can not be received.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
}

/// Runs one command to its end, with all that it started. It must be called within a tokio runtime.
///
/// # Errors
///
/// The command can not be started.
pub async fn run(
    text: &str,
    directory: &Path,
    environment: Vec<(OsString, OsString)>,
    limit: Option<Duration>,
) -> Result<AttendedEnd, AttendedError> {
    let spec = spec(text, directory, environment).map_err(AttendedError::Start)?;
    // What loses its parent becomes a child of ours. Without that (an old kernel) detached programs stay.
    let _not_possible = set_child_subreaper(Some(rustix::process::getpid()));
    let listen = |kind| signal(kind).map_err(AttendedError::Signals);
    let (mut interrupts, mut terminations, mut hang_ups) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
    let mut process = Spawner::Direct.spawn(&spec, &descriptors).await?;
    let deadline = limit.map(|limit| tokio::time::Instant::now() + limit);
    let mut interrupted = false;
    let end = loop {
        tokio::select! {
            biased;
            exit = process.exited() => break AttendedEnd::Exited(exit),
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    break AttendedEnd::Ended(Signal::INT.as_raw());
                }
                process.signal_group(Signal::INT);
            }
            _ = terminations.recv() => break AttendedEnd::Ended(Signal::TERM.as_raw()),
            _ = hang_ups.recv() => break AttendedEnd::Ended(Signal::HUP.as_raw()),
            () = async { match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            } } => break AttendedEnd::TimedOut,
        }
    };
    end_rest().await;
    Ok(end)
}

/// Ends all descendants of this process: they are asked to, and killed after a time.
async fn end_rest() {
    if !has_children() {
        return;
    }
    let own = std::process::id();
    let killed_at = Instant::now() + GRACE;
    let mut told = Vec::new();
    // What can not be killed is not waited for.
    while Instant::now() < killed_at + GRACE && has_children() {
        let descendants = process::descendants(own);
        if Instant::now() >= killed_at {
            send(&descendants, Signal::KILL);
        } else {
            let new: Vec<u32> = descendants.iter().copied().filter(|pid| !told.contains(pid)).collect();
            send(&new, Signal::TERM);
            send(&new, Signal::CONT);
            told = descendants;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether there are children that live; takes the status of those that do not.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn send(pids: &[u32], signal: Signal) {
    for pid in pids {
        if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
            let _gone_already = kill_process(pid, signal);
        }
    }
}
