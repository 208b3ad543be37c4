//! A command at somebody's own terminal: it has this process's standard input, output and error.
//!
//! It is for a program that does nothing else, since this process becomes the parent of whatever the command leaves, and
//! ends it.

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd as _, BorrowedFd},
    path::Path,
    time::{Duration, Instant},
};

use gloveport_sys::{SpawnError, process, pty, spawn::spawn};
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, pidfd_open,
        set_child_subreaper, wait, waitid,
    },
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{command::GRACE, launch::spec};

/// How often it is looked whether the rest is gone.
const LOOK: Duration = Duration::from_millis(2);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttendedEnd {
    /// With this status: its own, or 128 and the signal that ended it.
    Exited(i32),
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
    #[error("{0}")]
    Spawn(#[from] SpawnError),
    /// Its end can not be waited for.
    #[error("the end of the command cannot be waited for: {0}")]
    Watch(#[source] io::Error),
    /// Signals can not be received.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
}

/// Runs one command to its end, with all that it started. It must be called within a tokio runtime, on a thread that
/// lives as long as the command: it dies with that thread.
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
    let pid = spawn(&spec, &descriptors)?;
    let group = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| AttendedError::Start("no pid".into()))?;
    let watched = pidfd_open(group, PidfdFlags::empty()).map_err(io::Error::from).and_then(pty::watch);
    let watched = watched.map_err(AttendedError::Watch)?;
    let deadline = limit.map(|limit| tokio::time::Instant::now() + limit);
    let mut interrupted = false;
    let end = loop {
        tokio::select! {
            biased;
            ended = watched.readable() => {
                let _stays_ready = ended.map_err(AttendedError::Watch)?;
                break AttendedEnd::Exited(status(watched.get_ref().as_fd())?);
            }
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    break AttendedEnd::Ended(Signal::INT.as_raw());
                }
                let _gone_already = kill_process_group(group, Signal::INT);
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

/// The status of a child that ended.
fn status(child: BorrowedFd<'_>) -> Result<i32, AttendedError> {
    let ended =
        waitid(WaitId::PidFd(child), WaitIdOptions::EXITED).map_err(|error| AttendedError::Watch(error.into()))?;
    let status = ended.and_then(|ended| ended.exit_status().or(ended.terminating_signal().map(|signal| 128 + signal)));
    Ok(status.unwrap_or(-1))
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
