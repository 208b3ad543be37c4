//! A container made of this process's own machine: the isolation level `container`.
//!
//! The process that asks for one becomes its keeper and stays where it is. A copy of it goes on inside, as the first process
//! of namespaces of its own, in a root directory that has what was given and nothing else. Nobody has to be root for it, and
//! no daemon takes part.
//!
//! ```text
//! keeper                        here as before: waits for its copy, does errands for it, passes signals on
//!    └─ copy, process 1         own users, mounts, processes, IPC, names, control groups; own network, if it has none
//!         └─ everything else    all of it ends with process 1, which ends with the keeper
//! ```
//!
//! | what is in it | from where |
//! |---|---|
//! | `/usr`, `/etc`, … | the machine's, to be read ([`system_places`](crate::confined::system_places)); or those of another root directory, below a layer that takes what is changed |
//! | places that were given | the machine's, under the names that were asked for |
//! | `/proc`, `/dev`, `/dev/pts`, `/dev/shm` | its own |
//! | users | root has numbers that are nobody's on the machine, and its files are stored under the numbers that it sees |
//!
//! Root of the machine is mapped away, so that what only root may read stays closed. Everybody else is who they are, or root
//! with their own rights where the root directory is another one, as its programs expect it. Where the system gives them
//! numbers of others ([`owners`](crate::owners)), root there changes owners and becomes other users.

#![expect(unsafe_code, reason = "clones a process, which no safe library offers")]

mod bounded;
mod layered;
mod mounts;
mod plan;
mod tree;
mod users;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    amounts::Amounts,
    cgroup::Cgroup,
    confined::rights,
    errand::{self, Errands},
    mark::Mark,
    signal::signal,
    spawn, wire,
};
pub use plan::{Container, ContainerError, Gate, Network, Place, Root};
use users::Users;

/// What the keeper tells its copy.
#[derive(Debug, Serialize, Deserialize)]
enum Given {
    /// The place with this number, which is open beside it.
    Place(usize),
    /// Its users are there, and all places were given that it cannot open itself.
    Users,
}

/// What the copy tells when it is inside, or why it is not.
#[derive(Debug, Serialize, Deserialize)]
enum Entered {
    Inside,
    Refused(String),
    Failed(String),
}

impl Entered {
    fn of<T>(result: &Result<T, ContainerError>) -> Self {
        match result {
            Ok(_) => Self::Inside,
            Err(error) => error.refusal().map_or_else(|| Self::Failed(error.to_string()), Self::Refused),
        }
    }
}

/// Puts a copy of this process into a container and returns in it. This process itself never returns: it does `work` for each
/// errand of the copy and ends as the copy does. `for_gate` is for the gate alone. Call it while this is the only thread.
///
/// # Errors
///
/// In this process, before anything has changed: the machine cannot do it, a place cannot be given, a step failed.
pub fn enter<E: DeserializeOwned>(
    container: &Container,
    for_gate: Option<OwnedFd>,
    work: impl Fn(E) -> io::Result<Vec<OwnedFd>>,
) -> Result<Errands, ContainerError> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        let reason = format!("{threads} threads run, and a copy would have their locks");
        return Err(ContainerError::step("making a process", &reason));
    }
    let users = Users::of_this_process(container.root.as_ref())?;
    // Both count them, so they are looked for once.
    let places = tree::places(container);
    let (keeper, copy) = UnixStream::pair().map_err(|error| ContainerError::step("making a socket", &error))?;
    let group = group(&container.amounts)?;
    let made = clone(container.has_own_network(), group.as_ref().and_then(Mark::cgroup));
    if let (Err(_), Some(group)) = (&made, &group) {
        group.forget();
    }
    match made? {
        0 => {
            // The note of the group is the keeper's.
            drop((keeper, for_gate, group));
            let entered = go_in(container, &places, &users, &copy);
            let told = Entered::of(&entered);
            let listener: Vec<BorrowedFd<'_>> = entered.iter().flatten().map(AsFd::as_fd).collect();
            let is_told = wire::send(&copy, &told, &listener).is_ok();
            if entered.is_ok() && is_told {
                return Errands::over(copy).map_err(|error| ContainerError::step("making a socket", &error));
            }
            // SAFETY: ends the copy without running the exit handlers of the original.
            unsafe { libc::_exit(1) }
        }
        pid => {
            drop(copy);
            match watch(pid, container, &places, &users, (&keeper, for_gate)) {
                Ok(gate) => keep(pid, &keeper, (gate, group), work),
                Err(error) => {
                    drop(keeper);
                    signal(pid, Signal::KILL);
                    wait_for(pid);
                    if let Some(group) = group {
                        group.forget();
                    }
                    Err(error)
                }
            }
        }
    }
}

/// The control group that keeps the copy and all below it to these amounts; `None` where there are none to keep, or nobody
/// keeps them but each process itself.
fn group(amounts: &Amounts) -> Result<Option<Mark>, ContainerError> {
    if *amounts == Amounts::default() {
        return Ok(None);
    }
    let step = |error: &dyn std::fmt::Display| ContainerError::step("making its control group", error);
    let group = Mark::make_bounded(amounts).map_err(|error| step(&error))?;
    let keeps_processors = group.as_ref().and_then(Mark::cgroup).is_some_and(Cgroup::bounds_processors);
    if amounts.cpu_thousandths.is_some() && !keeps_processors {
        if let Some(group) = group {
            group.forget();
        }
        return Err(step(&"time of processors cannot be bounded here"));
    }
    Ok(group)
}

/// Makes the copy, in a control group or in that of this process; 0 in it, its id in this process.
fn clone(has_own_network: bool, group: Option<&Cgroup>) -> Result<u32, ContainerError> {
    let mut flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    if has_own_network {
        flags |= libc::CLONE_NEWNET;
    }
    if let Some(group) = group {
        // SAFETY: this process has one thread, so the copy may do anything.
        return match unsafe { spawn::fork_into(group.directory().as_raw_fd(), flags) } {
            Ok(pid) => Ok(pid),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(users::refusal(&error).into()),
            Err(error) => Err(ContainerError::step("making a process in its control group", &error)),
        };
    }
    // SAFETY: without memory that is shared this is a fork; this process has one thread, so the copy may do anything.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags | libc::SIGCHLD), 0, 0, 0, 0) };
    if pid < 0 {
        return Err(users::refusal(&io::Error::last_os_error()).into());
    }
    u32::try_from(pid).map_err(|error| ContainerError::step("making a process", &error))
}

/// The copy's way in. It gives what the gate listens on, if there is one.
fn go_in(
    container: &Container,
    places: &[Place],
    users: &Users,
    keeper: &UnixStream,
) -> Result<Option<TcpListener>, ContainerError> {
    let mut given = Vec::new();
    loop {
        match wire::receive::<Given>(keeper) {
            Ok(Some((Given::Place(number), descriptors))) => {
                given.extend(descriptors.into_iter().next().map(|descriptor| (number, descriptor)));
            }
            Ok(Some((Given::Users, _))) => break,
            Ok(None) => return Err(ContainerError::step("waiting for the keeper", &"it has ended")),
            Err(error) => return Err(ContainerError::step("waiting for the keeper", &error)),
        }
    }
    tree::enter(places, given, users, container)?;
    let at = |step: &'static str| move |error: rustix::io::Errno| ContainerError::step(step, &error);
    if container.has_own_network() {
        mounts::loopback_up().map_err(|error| ContainerError::step("turning on the loopback interface", &error))?;
    }
    let listener = match &container.network {
        Network::Gate(gate) => Some(TcpListener::bind((Ipv4Addr::LOCALHOST, gate.port))),
        Network::Machine | Network::None => None,
    };
    let listener = listener.transpose().map_err(|error| ContainerError::step("taking the port of the gate", &error))?;
    let refused = |(step, error): rights::Failed| ContainerError::step(step, &error);
    rights::bound_processes(container.processes).map_err(refused)?;
    if let Users::Owners(owners) = users {
        if container.has_own_network() {
            bounded::open_all_ports().map_err(|error| ContainerError::step("opening the ports below 1024", &error))?;
        }
        bounded::enter(owners).map_err(|error| ContainerError::step("bounding the processes of all users", &error))?;
    }
    rights::give_up_inside(container.nests, users.are_many()).map_err(refused)?;
    // Whoever changes its user loses this, so it comes last.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("PR_SET_PDEATHSIG"))?;
    Ok(listener)
}

/// Gives the copy its users and what it cannot open, waits until it is inside, and starts the gate.
fn watch(
    pid: u32,
    container: &Container,
    places: &[Place],
    users: &Users,
    (copy, for_gate): (&UnixStream, Option<OwnedFd>),
) -> Result<Option<Child>, ContainerError> {
    let lost = |error: io::Error| ContainerError::step("talking to the container", &error);
    users.give(pid)?;
    if users.are_mapped() {
        let namespace =
            mounts::open_users_of(pid).map_err(|error| ContainerError::step("opening its users", &error))?;
        for (number, place) in places.iter().enumerate() {
            let opened = tree::open(place, Some(&namespace))?;
            wire::send(copy, &Given::Place(number), &[opened.as_fd()]).map_err(lost)?;
        }
    }
    wire::send(copy, &Given::Users, &[]).map_err(lost)?;
    match wire::receive::<Entered>(copy).map_err(lost)? {
        Some((Entered::Inside, descriptors)) => match &container.network {
            Network::Gate(gate) => {
                let started = start(gate, descriptors, for_gate);
                started.map(Some).map_err(|error| ContainerError::step("starting the gate", &error))
            }
            Network::Machine | Network::None => Ok(None),
        },
        Some((Entered::Refused(why), _)) => Err(ContainerError::Refused(why)),
        Some((Entered::Failed(reason), _)) => {
            let reason = reason.trim_start_matches("cannot make the container: ");
            Err(ContainerError::Step { step: "entering it".to_owned(), reason: reason.to_owned() })
        }
        None => Err(ContainerError::step("entering it", &"its first process has ended")),
    }
}

fn start(gate: &Gate, descriptors: Vec<OwnedFd>, for_gate: Option<OwnedFd>) -> io::Result<Child> {
    let missing = || io::Error::from(io::ErrorKind::InvalidInput);
    let (program, arguments) = gate.command.split_first().ok_or_else(missing)?;
    let listener = descriptors.into_iter().next().ok_or_else(missing)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(listener).stdout(for_gate.map_or_else(Stdio::null, Stdio::from));
    let end = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between the fork and the program's start it makes one system call.
    unsafe { command.pre_exec(end) };
    command.spawn()
}

/// The first process of the container that this process keeps.
static FIRST: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(number: libc::c_int) {
    // SAFETY: a system call that may be made in a handler; the process is not waited for before this one ends.
    unsafe { libc::kill(FIRST.load(Ordering::Relaxed), number) };
}

/// The life of the keeper.
fn keep<E: DeserializeOwned>(
    pid: u32,
    copy: &UnixStream,
    (gate, group): (Option<Child>, Option<Mark>),
    work: impl Fn(E) -> io::Result<Vec<OwnedFd>>,
) -> ! {
    FIRST.store(pid.cast_signed(), Ordering::Relaxed);
    // SAFETY: a system call with a text that ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"gloveport-keep".as_ptr()) };
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let handler: extern "C" fn(libc::c_int) = pass_on;
        // SAFETY: the handler makes one system call.
        unsafe { libc::signal(number, handler as libc::sighandler_t) };
    }
    if let Ok(null) = std::fs::File::open("/dev/null") {
        // What came with it is its copy's.
        // SAFETY: replaces a standard descriptor by an open one.
        unsafe { libc::dup2(null.as_raw_fd(), libc::STDIN_FILENO) };
    }
    errand::serve(copy, work);
    let code = wait_for(pid);
    if let Some(mut gate) = gate {
        let _ended_already = gate.kill();
        let _is_gone = gate.wait();
    }
    if let Some(group) = group {
        group.forget();
    }
    // SAFETY: ends this process without running exit handlers, which are the copy's.
    unsafe { libc::_exit(code) }
}

/// Waits for the end of the copy; its exit code as shells tell it.
fn wait_for(pid: u32) -> i32 {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return 1 };
    loop {
        match rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let by_signal = || status.terminating_signal().map_or(1, |signal| 128 + signal);
                return status.exit_status().unwrap_or_else(by_signal);
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}
