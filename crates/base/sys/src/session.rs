//! A started program as the server sees it: its pid, its exit, and the end of all that it started.

use std::{
    io,
    os::fd::BorrowedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::sync::watch;

pub use crate::exit::Exit;
use crate::{
    guard::{Guard, Session, Told},
    process,
    signal::signal,
    spawn::{self, SpawnError, SpawnSpec},
    wire::Report,
};

/// Time for a guard to answer, and once more after it was woken. One that only waits for a processor gets that time again
/// and again, at most [`ANSWER_TRIES`] times: on a machine that starts hundreds at once it is the machine that is slow.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_TRIES: u32 = 12;
/// Time for killed processes without an owner to be gone.
const KILLED_WITHIN: Duration = Duration::from_secs(1);
/// Time for an owner to end what it owns before it is woken.
const WAKE_AFTER: Duration = Duration::from_millis(300);

/// Who starts programs and owns them.
#[derive(Debug, Clone)]
pub enum Spawner {
    /// This process, for a library user without a guard: programs that detach themselves from their session are found
    /// only as long as their ancestors live, and outlive this process if it is killed.
    Direct,
    /// A guard: nothing escapes, also if this process is killed.
    Guarded(Arc<Guard>),
}

impl Spawner {
    /// Starts a program as the first one of a new session. Must be called within a tokio runtime.
    pub async fn spawn(&self, spec: &SpawnSpec, descriptors: &[BorrowedFd<'_>]) -> Result<SessionProcess, SpawnError> {
        gloveport_audit::record(|| {
            gloveport_audit::Event::program(&spec.program, &spec.arguments, spec.directory.as_deref())
        });
        match self {
            Self::Guarded(guard) => SessionProcess::guarded(guard, spec, descriptors).await,
            Self::Direct => SessionProcess::direct(spec, descriptors).await,
        }
    }
}

/// A program and all that it started. Dropping it ends them all.
#[derive(Debug)]
pub struct SessionProcess {
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// The session of an owner in the guard, which ends it when this is dropped.
    Guard {
        session: Session,
        gone: watch::Receiver<bool>,
        guard: u32,
    },
    Direct,
}

impl SessionProcess {
    async fn guarded(guard: &Guard, spec: &SpawnSpec, descriptors: &[BorrowedFd<'_>]) -> Result<Self, SpawnError> {
        let program = spec.program.display().to_string();
        let lost =
            |error: &dyn std::fmt::Display| SpawnError::Guard { program: program.clone(), reason: error.to_string() };
        let (exit_sender, exit) = watch::channel(None);
        let (gone_sender, gone) = watch::channel(false);
        let (started_sender, started) = tokio::sync::oneshot::channel();
        let told = Told { started: Some(started_sender), exit: exit_sender, gone: gone_sender };
        // Whoever gives up the start leaves nothing that runs: the session ends with this.
        let session = guard.start_session(spec, descriptors, told).map_err(|error| lost(&error))?;
        let mut started = started;
        let mut tries = 0;
        let answer = loop {
            if let Ok(answer) = tokio::time::timeout(ANSWER_LIMIT, &mut started).await {
                break answer;
            }
            tries += 1;
            if tries >= 2 && (tries >= ANSWER_TRIES || !process::wants_to_run(guard.pid())) {
                return Err(lost(&format!("it did not within {} s", (ANSWER_LIMIT * tries).as_secs())));
            }
            // Somebody may have stopped it: its programs have its user, as a rule.
            guard.wake();
        };
        match answer {
            Ok(Report::Started { pid }) => {
                Ok(Self { pid, exit, owner: Owner::Guard { session, gone, guard: guard.pid() } })
            }
            Ok(Report::Failed(error)) => Err(error),
            Ok(Report::Exited(_) | Report::Gone) | Err(_) => Err(lost(&"it ended before the program was started")),
        }
    }

    async fn direct(spec: &SpawnSpec, descriptors: &[BorrowedFd<'_>]) -> Result<Self, SpawnError> {
        let program = spec.program.display().to_string();
        let failed = |error: &io::Error| SpawnError::System {
            program: program.clone(),
            step: "starting a thread".into(),
            errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
        };
        let descriptors = descriptors
            .iter()
            .map(BorrowedFd::try_clone_to_owned)
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| failed(&error))?;
        let (exit_sender, exit) = watch::channel(None);
        let (started_sender, started) = tokio::sync::oneshot::channel();
        let spec = spec.clone();
        // The program dies with the thread that started it, so that thread lives as long as the program.
        std::thread::Builder::new()
            .name("session-owner".into())
            .stack_size(64 * 1024)
            .spawn(move || {
                let result = {
                    use std::os::fd::AsFd as _;
                    let borrowed: Vec<_> = descriptors.iter().map(std::os::fd::OwnedFd::as_fd).collect();
                    spawn::spawn(&spec, &borrowed)
                };
                drop(descriptors);
                let pid = result.as_ref().ok().copied();
                if let (Err(_caller_gone), Some(pid)) = (started_sender.send(result), pid) {
                    signal(pid, Signal::KILL);
                }
                if let Some(pid) = pid {
                    let (_, status) = crate::guard::wait_for(Some(pid)).unwrap_or((pid, Exit::UNKNOWN));
                    exit_sender.send_replace(Some(status));
                }
            })
            .map_err(|error| failed(&error))?;
        let pid = started.await.map_err(|_| failed(&io::Error::from_raw_os_error(libc::ECHILD)))??;
        Ok(Self { pid, exit, owner: Owner::Direct })
    }

    /// Process id of the program; also its session id and process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the program ended. May be called again and again.
    pub async fn exited(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await {
            Ok(status) => status.unwrap_or(Exit::UNKNOWN),
            Err(_) => Exit::UNKNOWN,
        }
    }

    /// Changes of how the program ended; also tells it after the end of this.
    pub fn watch_exit(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// How the program ended, if it did.
    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Nothing that the program started is left, itself included.
    pub fn is_gone(&self) -> bool {
        match &self.owner {
            Owner::Guard { gone, .. } => *gone.borrow(),
            Owner::Direct => self.exit().is_some() && members_of(self.pid).is_empty(),
        }
    }

    /// Sends a signal to the program itself.
    pub fn signal(&self, number: Signal) {
        if self.exit().is_none() {
            signal(self.pid, number);
        }
    }

    /// Sends a signal to the program and to all that it started, but for what made a process group of its own.
    pub fn signal_group(&self, number: Signal) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _gone_or_not_ours = kill_process_group(group, number);
        }
    }

    /// Nothing is left of the program's process group, itself included. Cheaper than [`is_gone`](Self::is_gone).
    pub fn group_is_gone(&self) -> bool {
        let group = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        group.is_none_or(|group| test_kill_process_group(group) == Err(rustix::io::Errno::SRCH))
    }

    /// Ends the program and everything that it started, and returns when nothing of it is left. They are asked to end
    /// first and killed after `grace`.
    pub async fn end(mut self, grace: Duration) {
        let limit = grace + Duration::from_secs(5);
        let owner = std::mem::replace(&mut self.owner, Owner::Direct);
        match owner {
            Owner::Guard { session, mut gone, guard } => {
                session.end(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
                let in_time = tokio::time::timeout(grace + WAKE_AFTER, gone.wait_for(|gone| *gone)).await.is_ok();
                if !in_time {
                    // Somebody may have stopped the owner.
                    crate::guard::wake(guard);
                }
                let ended = tokio::time::timeout(limit, gone.wait_for(|gone| *gone)).await;
                if ended.is_err() {
                    tracing::warn!(pid = self.pid, "processes of a session did not end within {limit:?}");
                }
                // Its processes are gone, or its owner goes on killing them: nothing is left to do on drop.
                self.pid = 0;
            }
            Owner::Direct => {
                let deadline = Instant::now() + grace;
                let mut members = end_politely(self.pid);
                while !members.is_empty() && Instant::now() < deadline {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    members = members_of(self.pid);
                }
                kill_all(self.pid);
                self.exited().await;
                // What was killed is gone a moment later; a session has its number as long as something of it lives.
                let deadline = Instant::now() + KILLED_WITHIN;
                while !process::in_session(self.pid).is_empty() && Instant::now() < deadline {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }
}

impl Drop for SessionProcess {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Direct if self.pid != 0 && self.exit.borrow().is_none() => kill_all(self.pid),
            // A session ends with its handle.
            Owner::Guard { .. } | Owner::Direct => {}
        }
    }
}

fn members_of(session: u32) -> Vec<u32> {
    let mut members = process::in_session(session);
    for descendant in process::descendants(session) {
        if !members.contains(&descendant) {
            members.push(descendant);
        }
    }
    members
}

fn end_politely(session: u32) -> Vec<u32> {
    let members = members_of(session);
    for pid in &members {
        for number in [Signal::HUP, Signal::TERM, Signal::CONT] {
            signal(*pid, number);
        }
    }
    members
}

fn kill_all(session: u32) {
    for _round in 0..100 {
        let members = members_of(session);
        if members.is_empty() {
            return;
        }
        for pid in members {
            signal(pid, Signal::KILL);
        }
        std::thread::yield_now();
    }
}
