//! One program started with a controlling terminal (or plain descriptors), an identity, limits and a directory.

#![expect(unsafe_code, reason = "the steps between fork and exec are bare system calls")]

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::{
        fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
    ptr,
};

use crate::confined::{BesideTerminals, Layer};
use serde::{Deserialize, Serialize};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnSpec {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments, the program's own name first.
    pub arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Directory to start in. Where it can not be entered the program starts in the server's own directory.
    pub directory: Option<PathBuf>,
    /// Identity to take on; `None` keeps the server's.
    pub identity: Option<Identity>,
    /// Most private memory of one process in bytes (`RLIMIT_DATA`), inherited by all that it starts.
    pub memory_limit: Option<u64>,
    /// How the descriptors that come with the request are used.
    pub descriptors: Descriptors,
}

/// Most descriptors that come with a [`SpawnSpec`].
pub(crate) const MOST_DESCRIPTORS: usize = 5;

/// Bytes of the stack of a process that has not run its program yet.
const STACK: usize = 64 * 1024;

/// `CLONE_INTO_CGROUP`, which the library has in a type that it does not fit into.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Use of the descriptors that come with a [`SpawnSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Descriptors {
    /// The first becomes the controlling terminal and descriptors 0, 1 and 2; a second one becomes descriptor 3.
    Terminal,
    /// They become descriptors 0, 1, 2 and so on; there are at least three.
    Plain,
}

/// A user as the kernel sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplementary group ids.
    pub groups: Vec<u32>,
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SpawnError {
    /// A string has a NUL byte, or a descriptor is missing.
    #[error("cannot start {program}: {reason}")]
    Invalid {
        /// The program.
        program: String,
        /// What is wrong with the request.
        reason: String,
    },
    /// A system call failed, in this process or in the new one before the program ran.
    #[error("cannot start {program}: {step} failed: {}", io::Error::from_raw_os_error(*.errno))]
    System {
        /// The program.
        program: String,
        /// What was being done.
        step: String,
        /// The system's error number.
        errno: i32,
    },
    /// The guard is gone, so nothing can be started any more.
    #[error("cannot start {program}: the process guard does not answer ({reason}); start the server again")]
    Guard {
        /// The program.
        program: String,
        /// The error of the connection.
        reason: String,
    },
}

/// Steps of the new process; the number travels over the error pipe.
const STEPS: [&str; 11] = [
    "fork",
    "setsid",
    "making the terminal the controlling one",
    "dup2",
    "setrlimit",
    "setgroups",
    "setgid",
    "setuid",
    "prctl",
    "execve",
    "confining it to its terminal",
];

/// A request with everything allocated, so that the new process only makes system calls.
struct Prepared {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: Option<CString>,
}

impl Prepared {
    fn new(spec: &SpawnSpec) -> Result<Self, SpawnError> {
        let text = |value: &OsStr| {
            CString::new(value.as_bytes()).map_err(|_| SpawnError::Invalid {
                program: spec.program.display().to_string(),
                reason: format!("{} contains a NUL byte", value.display()),
            })
        };
        let mut environment = Vec::with_capacity(spec.environment.len());
        for (key, value) in &spec.environment {
            let mut entry = key.clone();
            entry.push("=");
            entry.push(value);
            environment.push(text(&entry)?);
        }
        Ok(Self {
            program: text(spec.program.as_os_str())?,
            arguments: spec.arguments.iter().map(|argument| text(argument)).collect::<Result<_, _>>()?,
            environment,
            directory: spec.directory.as_ref().map(|path| text(path.as_os_str())).transpose()?,
        })
    }
}

/// Starts a program and returns its process id once it runs. The program gets a session of its own and dies with the
/// thread that called this. The caller has to wait for its end.
pub fn spawn(spec: &SpawnSpec, descriptors: &[BorrowedFd<'_>]) -> Result<u32, SpawnError> {
    spawn_in(spec, descriptors, None, None)
}

/// The same in a control group, if the kernel lets it be born there. Only a process with one thread may ask for that: what
/// the C library knows about threads is not brought up to date in the new process.
pub(crate) fn spawn_in(
    spec: &SpawnSpec,
    descriptors: &[BorrowedFd<'_>],
    cgroup: Option<&OwnedFd>,
    beside: Option<&BesideTerminals>,
) -> Result<u32, SpawnError> {
    let program = spec.program.display().to_string();
    let prepared = Prepared::new(spec)?;
    let targets: Vec<(RawFd, RawFd)> = match (spec.descriptors, descriptors) {
        (Descriptors::Terminal, [terminal, rest @ ..]) => {
            let tty = terminal.as_raw_fd();
            let extra = rest.first().map(|fd| (fd.as_raw_fd(), 3));
            [(tty, 0), (tty, 1), (tty, 2)].into_iter().chain(extra).collect()
        }
        (Descriptors::Plain, [_, _, _, ..]) if descriptors.len() <= MOST_DESCRIPTORS => {
            (0..).zip(descriptors).map(|(target, fd)| (fd.as_raw_fd(), target)).collect()
        }
        _ => {
            return Err(SpawnError::Invalid {
                program,
                reason: "a descriptor is missing, or there are too many".into(),
            });
        }
    };
    let system = |step: usize, errno: i32| SpawnError::System {
        program: program.clone(),
        step: STEPS.get(step).copied().unwrap_or("starting").into(),
        errno,
    };

    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|entry| entry.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&prepared.arguments), pointers(&prepared.environment));
    let terminal = (spec.descriptors == Descriptors::Terminal).then(|| descriptors.first().copied()).flatten();
    let layer = beside.map(|beside| beside.and(terminal)).transpose();
    let layer = layer.map_err(|error| SpawnError::Invalid { program: program.clone(), reason: error.to_string() })?;
    let (reader, writer) = pipe().map_err(|error| system(0, errno_of(&error)))?;
    let child = Child {
        program: prepared.program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        directory: prepared.directory.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
        targets: &targets,
        terminal: spec.descriptors == Descriptors::Terminal,
        identity: spec.identity.as_ref(),
        memory_limit: spec.memory_limit,
        layer: layer.as_ref().map(Layer::descriptor),
        report: writer.as_raw_fd(),
    };
    // SAFETY: the new process runs `Child::run` only, which makes system calls on data that was prepared before and
    // never returns; it allocates nothing and takes no lock, so the state of other threads does not matter.
    let pid = unsafe {
        match cgroup.and_then(|cgroup| fork_into(cgroup.as_raw_fd(), 0).ok()) {
            Some(0) => child.run(),
            Some(pid) => pid.cast_signed(),
            None => start_sharing(&child),
        }
    };
    drop(writer);
    if pid < 0 {
        return Err(system(0, errno_of(&io::Error::last_os_error())));
    }
    let mut report = [0_u8; 8];
    match read_full(&reader, &mut report) {
        8 => {
            let word = |at: usize| {
                let bytes = [report[at], report[at + 1], report[at + 2], report[at + 3]];
                i32::from_ne_bytes(bytes)
            };
            let (step, errno) = (word(0), word(4));
            // SAFETY: waits for the child that was just made; a null status pointer is allowed.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
            Err(system(usize::try_from(step).unwrap_or(0), errno))
        }
        _ => u32::try_from(pid).map_err(|_| system(0, libc::ERANGE)),
    }
}

/// Forks into a control group, and into new namespaces if flags ask for them; 0 in the new process. One that is made in a
/// namespace of groups has that group as its root.
///
/// # Safety
///
/// The new process must make system calls only, or this one must have one thread.
pub(crate) unsafe fn fork_into(cgroup: RawFd, namespaces: libc::c_int) -> io::Result<u32> {
    let number = |value: libc::c_int| u64::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    // SAFETY: a zeroed structure is a valid one, in which each part is off.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP | number(namespaces)?;
    arguments.exit_signal = number(libc::SIGCHLD)?;
    arguments.cgroup = number(cgroup)?;
    // SAFETY: without a stack and without shared memory it is a fork; the structure lives on this stack.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    u32::try_from(pid).map_err(|_| io::Error::last_os_error())
}

/// Starts a process that has the memory of this one until it runs its program, for which this thread waits: nothing has to
/// be copied. It has a stack of its own, and no signal interrupts it before it has its own handlers.
///
/// # Safety
///
/// The child must make system calls only, on what nobody else changes meanwhile.
unsafe fn start_sharing(child: &Child<'_>) -> libc::pid_t {
    extern "C" fn run(child: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it is the child of the caller, who waits.
        unsafe { (*child.cast::<Child<'_>>()).run() }
    }
    let mut stack = vec![Chunk([0; 16]); STACK / 16];
    // SAFETY: the sets live on this stack; the new stack is as long as the call, which returns when it is used no more, and
    // grows down from its end, which is aligned as every machine wants it.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let top = stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(run, top.cast(), flags, ptr::from_ref(child).cast_mut().cast());
        let errno = *libc::__errno_location();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        *libc::__errno_location() = errno;
        pid
    }
}

/// A part of a stack, aligned as stacks are.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Chunk(#[expect(dead_code, reason = "it is the program's to write")] [u8; 16]);

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: `ends` is a valid array of two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened both and nobody else knows them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

fn read_full(source: &OwnedFd, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::read(source, buffer.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    filled
}

/// What the new process needs, as plain pointers.
struct Child<'a> {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    directory: *const libc::c_char,
    targets: &'a [(RawFd, RawFd)],
    terminal: bool,
    identity: Option<&'a Identity>,
    memory_limit: Option<u64>,
    layer: Option<RawFd>,
    report: RawFd,
}

impl Child<'_> {
    /// Runs in the new process, between `fork` and `execve`: system calls only.
    fn run(&self) -> ! {
        let step = self.prepare().err().unwrap_or(9);
        // SAFETY: plain system calls; `report` is open and the buffer lives on this stack.
        unsafe {
            let errno = *libc::__errno_location();
            let mut message = [0_u8; 8];
            message[..4].copy_from_slice(&step.to_ne_bytes());
            message[4..].copy_from_slice(&errno.to_ne_bytes());
            libc::write(self.report, message.as_ptr().cast(), message.len());
            libc::_exit(127)
        }
    }

    /// Returns the step that failed; only a failed `execve` returns `Ok`.
    fn prepare(&self) -> Result<(), i32> {
        let check = |result: libc::c_int, step: i32| if result < 0 { Err(step) } else { Ok(()) };
        // SAFETY: system calls on descriptors that are open, on pointers to NUL-terminated strings and arrays that the
        // parent made and that live in this copy of its memory, and on values of this stack.
        unsafe {
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());

            check(libc::setsid(), 1)?;
            // Sources may lie among the targets: lift all of them out of the way first.
            let mut lifted = [(0, 0); MOST_DESCRIPTORS];
            for (slot, (source, target)) in lifted.iter_mut().zip(self.targets) {
                let high = libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, 64);
                check(high, 3)?;
                *slot = (high, *target);
            }
            if self.terminal {
                check(libc::ioctl(lifted[0].0, libc::TIOCSCTTY, 0), 2)?;
            }
            // The error pipe may be one of the targets, too.
            let report = libc::fcntl(self.report, libc::F_DUPFD_CLOEXEC, 64);
            check(report, 3)?;
            let report_at_target = lifted.iter().take(self.targets.len()).any(|(_, target)| *target == self.report);
            for (source, target) in lifted.iter().take(self.targets.len()) {
                check(libc::dup2(*source, *target), 3)?;
            }
            if report_at_target {
                // Its number is taken now; errors after this point go to the copy.
                return Child { report, ..*self }.finish(self.targets.len());
            }
            self.finish(self.targets.len())
        }
    }

    fn finish(&self, first_free: usize) -> Result<(), i32> {
        let check = |result: libc::c_int, step: i32| if result < 0 { Err(step) } else { Ok(()) };
        // SAFETY: as in `prepare`.
        unsafe {
            // Best effort: everything of ours is opened close-on-exec anyway.
            let first = libc::c_uint::try_from(first_free).unwrap_or(3);
            libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if let Some(limit) = self.memory_limit {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                check(libc::setrlimit(libc::RLIMIT_DATA, &raw const limit), 4)?;
            }
            if let Some(identity) = self.identity {
                // Without the C library, which would have all threads follow: those that it knows here are the parent's.
                let checked = |result: libc::c_long, step: i32| if result < 0 { Err(step) } else { Ok(()) };
                let groups = (identity.groups.len(), identity.groups.as_ptr());
                checked(libc::syscall(libc::SYS_setgroups, groups.0, groups.1), 5)?;
                checked(libc::syscall(libc::SYS_setgid, identity.gid), 6)?;
                checked(libc::syscall(libc::SYS_setuid, identity.uid), 7)?;
            }
            // After the change of identity, which clears it.
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), 8)?;
            if !self.directory.is_null() {
                libc::chdir(self.directory);
            }
            if let Some(layer) = self.layer
                && libc::syscall(libc::SYS_landlock_restrict_self, layer, 0) < 0
            {
                return Err(10);
            }
            libc::execve(self.program, self.arguments, self.environment);
        }
        Ok(())
    }
}
