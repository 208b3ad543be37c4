//! A small process that owns every started program, and ends them all when its server is gone.
//!
//! The server starts one guard at its beginning. For each session there is an *owner*, a copy of the guard that is the
//! sub-reaper of the session's processes: also a program that detaches itself stays its descendant. An owner ends all its
//! descendants when it is told to, and when its socket closes, which the kernel does for a server that is killed. One
//! whose session has ended with nothing left of it is used again, or ends after a moment. If an owner itself is killed
//! its processes fall to the guard, which kills them; if guard and owner are killed
//! together they fall to the server ([`Guard::lost`]). If all three are, the [`mark`](crate::mark) of the processes tells
//! the next one who looks, and so does their control group, where there is one.
//!
//! ```text
//! server ──socket──► guard            sub-reaper of the owners
//!    └─────socket──────► owner        sub-reaper of one session
//!                          └─ shell ─ everything else
//! ```

#![expect(unsafe_code, reason = "forks and waits, which no safe library offers")]

mod lost;
mod owner;
mod owners;

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    ptr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};

use crate::{
    child,
    confined::{
        self, BesideTerminals, ConfineError, Confinement, Entered, Modes, Prepared,
        connections::{self, Reach},
        modes,
    },
    exit::Exit,
    mark::{self, Mark},
    process,
    signal::signal,
    spawn::SpawnSpec,
    wire::{self, Wanted},
};
use owners::Owners;
pub(crate) use owners::{Session, Told};

/// Grace for the processes of a session whose server is gone.
const ORPHAN_GRACE: Duration = Duration::from_millis(20);
/// How long an owner tries to kill what does not die (a process in uninterruptible sleep, say).
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Connection to the guard process. When it is dropped the guard ends all sessions and itself.
#[derive(Debug)]
pub struct Guard {
    /// Frames of several threads must not mix.
    socket: Mutex<UnixStream>,
    owners: Arc<Owners>,
    pid: u32,
    mark: Arc<Mark>,
    /// It cannot remove what is kept of it.
    is_confined: bool,
}

/// What a guard and its programs are kept to.
#[derive(Debug)]
struct Around {
    mark: Mark,
    /// Put on by the guard.
    prepared: Option<Prepared>,
    /// Put on by each session.
    beside: Option<BesideTerminals>,
    /// For who is asked about calls of programs.
    asked: Asked,
}

/// Who is asked about calls of programs.
#[derive(Debug)]
enum Asked {
    Nobody,
    /// Who makes connections, to these.
    Connections(Reach),
    /// Who sets modes.
    Modes,
}

impl Around {
    const fn nothing(mark: Mark) -> Self {
        Self { mark, prepared: None, beside: None, asked: Asked::Nobody }
    }
}

/// Why the guard could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Other threads run already; a copy of this process would have their locks without their threads.
    #[error("the process guard must be started before any other thread, and {0} threads run")]
    Threads(usize),
    /// A system call failed.
    #[error("cannot start the process guard: {0}")]
    System(#[from] io::Error),
    /// It cannot keep its programs to a part of the machine.
    #[error(transparent)]
    Confine(#[from] ConfineError),
}

impl Guard {
    /// Starts the guard. Call it first in `main`, before any thread is made.
    pub fn start() -> Result<Self, GuardError> {
        Self::start_with(|| Ok(Around::nothing(Mark::make()?)))
    }

    /// The same for the first process of a container ([`container`](crate::container)), with the network of the machine or
    /// without. Where its files have several owners, modes that give rights are set without the bits that do, and are refused elsewhere.
    pub fn start_inside(network: bool, has_owners: bool) -> Result<Self, GuardError> {
        Self::start_with(|| {
            let (modes, asked) =
                if has_owners { (Modes::Asked, Asked::Modes) } else { (Modes::Refused, Asked::Nobody) };
            let prepared = Some(confined::prepare_inside(network, modes)?);
            Ok(Around { prepared, asked, ..Around::nothing(Mark::make_name()?) })
        })
    }

    /// The same on a kernel that is the sandbox's own: nothing is to be kept from it but this process, which has what the sandbox
    /// must not have.
    pub fn start_on_own_kernel() -> Result<Self, GuardError> {
        Self::start_with(|| {
            confined::close_this_process()?;
            Ok(Around::nothing(Mark::make_name()?))
        })
    }

    /// The same, where it and all that it starts are kept to a part of the machine, and this process to the same places. The
    /// network, and who is reached by signals, stays as it is for it.
    pub fn start_confined(confinement: &Confinement) -> Result<Self, GuardError> {
        Self::start_with(|| {
            let (prepared, beside) = (Some(confinement.prepare()?), Some(confinement.beside_terminals()?));
            let own = confinement.prepare_places()?;
            let asked = Asked::Connections(Reach::new(&confinement.write)?);
            let mark = Mark::make_without_group()?;
            own.enter()?;
            Ok(Around { mark, prepared, beside, asked })
        })
    }

    fn start_with(prepare: impl FnOnce() -> Result<Around, GuardError>) -> Result<Self, GuardError> {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads > 1 {
            return Err(GuardError::Threads(threads));
        }
        let Around { mark, prepared, beside, asked } = prepare()?;
        let is_confined = prepared.is_some();
        let (server, guard) = UnixStream::pair()?;
        // What loses both its owner and the guard falls to this process.
        // SAFETY: a system call with constants.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        // SAFETY: this process has one thread, so the copy is a whole process that may do anything.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error().into()),
            0 => {
                drop(server);
                let entered = prepared.map(|prepared| {
                    let (entered, notices) = prepared.enter();
                    let beside: Vec<BorrowedFd<'_>> = notices.iter().map(AsFd::as_fd).collect();
                    wire::send(&guard, &entered, &beside)
                });
                if entered.is_none_or(|told| told.is_ok()) {
                    run_guard(&guard, &mark, beside.as_ref());
                }
                mark.forget();
                // SAFETY: ends the copy without running the exit handlers of the original.
                unsafe { libc::_exit(0) }
            }
            pid => {
                drop(guard);
                let started = Self {
                    socket: Mutex::new(server),
                    owners: Arc::default(),
                    pid: u32::try_from(pid).unwrap_or(0),
                    mark: Arc::new(mark),
                    is_confined,
                };
                if is_confined {
                    started.check_confined(asked)?;
                }
                Ok(started)
            }
        }
    }

    /// Waits until the guard says that it is confined, and does for what it starts what it is asked for. One that is not
    /// ends with this value.
    fn check_confined(&self, asked: Asked) -> Result<(), ConfineError> {
        let failed = |step: String, reason: String| ConfineError::Step { step, reason };
        let told = {
            let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
            wire::receive::<Entered>(&socket)
        };
        match told {
            Ok(Some((Entered(Ok(())), descriptors))) => {
                if matches!(asked, Asked::Nobody) {
                    return Ok(());
                }
                let notices = descriptors.into_iter().next();
                let notices = notices.ok_or_else(|| failed("seccomp".to_owned(), "there are no notices".to_owned()))?;
                let started = match asked {
                    Asked::Nobody => Ok(()),
                    Asked::Connections(reach) => connections::start(notices, reach),
                    Asked::Modes => modes::start(notices),
                };
                started.map_err(|error| failed("starting a thread for calls of programs".to_owned(), error.to_string()))
            }
            Ok(Some((Entered(Err((step, reason))), _))) => Err(failed(step, reason)),
            Ok(None) => Err(failed("the process guard".to_owned(), "it has ended".to_owned())),
            Err(error) => Err(failed("the process guard".to_owned(), error.to_string())),
        }
    }

    /// Process id of the guard: the root of all that it owns.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Starts a session; what becomes of it is told.
    pub(crate) fn start_session(
        &self,
        spec: &SpawnSpec,
        descriptors: &[BorrowedFd<'_>],
        told: Told,
    ) -> io::Result<Session> {
        let mut spec = spec.clone();
        spec.environment.retain(|(name, _)| name != mark::VARIABLE);
        spec.environment.push(self.mark.entry());
        self.owners.start(spec, descriptors, told, |end| {
            let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
            wire::send(&socket, &Wanted, &[end])
        })
    }

    /// Lets guard and owners go on that somebody has stopped: they have the user of their programs, as a rule.
    pub(crate) fn wake(&self) {
        wake(self.pid);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.owners.close();
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _closed_already = socket.shutdown(std::net::Shutdown::Both);
        wake(self.pid);
        // It ends as soon as its sessions have.
        if !child::ends_within(self.pid, ORPHAN_GRACE + KILL_LIMIT + KILL_LIMIT) {
            signal(self.pid, Signal::KILL);
        }
        // Reaping it here leaves no zombie to a process that goes on.
        let ended = wait_for(Some(self.pid));
        if ended.is_none_or(|(_, exit)| exit.code != Some(0)) {
            lost::end_orphans(&self.mark, self.pid);
            self.mark.forget();
        } else if self.is_confined {
            self.mark.forget();
        }
    }
}

/// Lets a guard and its owners go on.
pub(crate) fn wake(guard: u32) {
    for pid in std::iter::once(guard).chain(process::children(guard)) {
        signal(pid, Signal::CONT);
    }
}

/// The guard's life: an owner for each request until the server is gone.
fn run_guard(socket: &UnixStream, mark: &Mark, beside: Option<&BesideTerminals>) {
    detach("gloveport-guard");
    let Ok(children) = child_signals() else { return };
    let mut owners = Vec::new();
    loop {
        match wait_either(&children, socket, None) {
            Event::Children => {
                while let Some((pid, exit)) = reap() {
                    owners.retain(|owner| *owner != pid);
                    if exit.code.is_none() {
                        kill_strays(&owners);
                    }
                }
            }
            Event::Socket => match wire::receive::<Wanted>(socket) {
                Ok(Some((Wanted, descriptors))) => {
                    // SAFETY: the guard has one thread.
                    match unsafe { libc::fork() } {
                        0 => {
                            owner::run(descriptors, mark, beside);
                            // SAFETY: ends this copy at once.
                            unsafe { libc::_exit(0) }
                        }
                        pid => owners.extend(u32::try_from(pid)),
                    }
                }
                Ok(None) | Err(_) => break,
            },
            Event::Time => {}
        }
    }
    // The owners see the end of their own sockets, unless somebody has stopped them.
    wake(std::process::id());
    let deadline = Instant::now() + ORPHAN_GRACE + KILL_LIMIT;
    while !owners.is_empty() && Instant::now() < deadline {
        if matches!(wait_children(&children, Duration::from_millis(100)), Event::Children) {
            while let Some((pid, _)) = reap() {
                owners.retain(|owner| *owner != pid);
            }
        }
    }
    kill_strays(&[]);
}

/// Kills descendants of the guard that have no living owner.
fn kill_strays(owners: &[u32]) {
    for _round in 0..100 {
        let owned: Vec<u32> = owners.iter().flat_map(|owner| process::descendants(*owner)).collect();
        let strays: Vec<u32> = process::descendants(std::process::id())
            .into_iter()
            .filter(|pid| !owners.contains(pid) && !owned.contains(pid))
            .collect();
        if strays.is_empty() {
            return;
        }
        for pid in strays {
            signal(pid, Signal::KILL);
        }
        while reap().is_some() {}
    }
}

/// Asks all descendants to end, waits for `grace`, then kills until none is left.
fn end_descendants(children: &OwnedFd, grace: Duration, mut reaped: impl FnMut(u32, Exit)) {
    let own = std::process::id();
    for pid in process::descendants(own) {
        for number in [Signal::HUP, Signal::TERM, Signal::CONT] {
            signal(pid, number);
        }
    }
    let polite_until = Instant::now() + grace;
    let deadline = polite_until + KILL_LIMIT;
    loop {
        while let Some((pid, exit)) = reap() {
            reaped(pid, exit);
        }
        if !has_children() || Instant::now() >= deadline {
            return;
        }
        let now = Instant::now();
        if now < polite_until {
            wait_children(children, polite_until - now);
        } else {
            for pid in process::descendants(own) {
                signal(pid, Signal::KILL);
            }
            wait_children(children, Duration::from_millis(5));
        }
    }
}

/// Makes this copy a process of its own: new session (no signals from the server's terminal), sub-reaper, no
/// descriptors of the server's.
pub(crate) fn detach(name: &str) {
    let name = std::ffi::CString::new(name).unwrap_or_default();
    // SAFETY: system calls with constants and a NUL-terminated string.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        // One that somebody has stopped goes on when there is something to end.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT);
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
    }
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        for target in 0..3 {
            // SAFETY: replaces a standard descriptor by an open one.
            unsafe { libc::dup2(null.as_raw_fd(), target) };
        }
    }
}

/// A descriptor that becomes readable when a child changes state.
fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set lives on this stack and is initialised before use; the new descriptor is owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

enum Event {
    Children,
    Socket,
    Time,
}

fn wait_either(children: &OwnedFd, socket: &UnixStream, limit: Option<Duration>) -> Event {
    let mut polled = [PollFd::new(children, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
    let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
    if poll(&mut polled, timeout.as_ref()).is_err() {
        return Event::Time;
    }
    if !polled[0].revents().is_empty() {
        clear(children);
        return Event::Children;
    }
    if polled[1].revents().is_empty() { Event::Time } else { Event::Socket }
}

fn wait_children(children: &OwnedFd, limit: Duration) -> Event {
    let mut polled = [PollFd::new(children, PollFlags::IN)];
    let timeout = Timespec::try_from(limit).ok();
    if poll(&mut polled, timeout.as_ref()).is_err() || polled[0].revents().is_empty() {
        return Event::Time;
    }
    clear(children);
    Event::Children
}

/// Takes the pending notices; the children themselves are counted by `reap`.
fn clear(children: &OwnedFd) {
    let mut buffer = [0_u8; 1024];
    while rustix::io::read(children, &mut buffer).is_ok_and(|count| count > 0) {}
}

fn has_children() -> bool {
    // SAFETY: a zeroed siginfo is valid; WNOWAIT leaves the child as it is.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Takes one child that has ended, if there is one.
fn reap() -> Option<(u32, Exit)> {
    wait4(-1, libc::WNOHANG)
}

/// Waits for one child (or any) of this process.
pub(crate) fn wait_for(pid: Option<u32>) -> Option<(u32, Exit)> {
    wait4(pid.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(-1), 0)
}

fn wait4(pid: i32, options: i32) -> Option<(u32, Exit)> {
    let mut status = 0;
    // SAFETY: both pointers are to initialised values of this stack.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut result = -1;
        while result < 0 {
            result = libc::wait4(pid, &raw mut status, options, &raw mut usage);
            if result < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return None;
            }
        }
        (u32::try_from(result).ok().filter(|pid| *pid > 0)?, usage)
    };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    let exit = Exit {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    };
    Some((pid, exit))
}
