//! Connections of confined programs, which somebody outside makes for them.
//!
//! Landlock of most kernels does not keep programs from sockets that have a name in the file system, and behind such a name
//! may be an engine for containers, a session bus or a keeper of keys. A filter of system calls does not see names. So the
//! kernel stops each `connect` of a confined program and asks here:
//!
//! ```text
//! program ── connect(3, "s") ──► kernel ── notice ──► thread of the server
//!                                                       takes the socket and the address, looks where the name leads,
//!    ◄──────────── result ◄──────────── answer ◄─────── and connects the socket itself
//! ```
//!
//! It connects the very socket and address that it has looked at: what the program changes meanwhile does not count. Names
//! lead to sockets beneath the places in which programs write, and abstract names nowhere. Other families are connected as
//! asked; whether a program has such a socket at all is the filter's to say.

#![expect(unsafe_code, reason = "no safe library answers notices of a filter")]

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use libc::{c_int, c_ulong, seccomp_notif, seccomp_notif_resp, sockaddr_storage, sockaddr_un};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
    net::{AddressFamily, sockopt},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

const RECEIVE: c_ulong = 0xC050_2100;
const SEND: c_ulong = 0xC018_2101;
const STILL_THERE: c_ulong = 0x4008_2102;
/// Connections that are made at the same time; those above that wait.
const AT_ONCE: usize = 256;
/// Stack of a thread that makes one.
const STACK: usize = 64 * 1024;
/// Where the name begins in an address of a socket with a name.
const NAME: usize = size_of::<libc::sa_family_t>();

/// Places beneath which names of sockets may lead, wherever they are by then.
#[derive(Debug)]
pub(crate) struct Reach(Vec<OwnedFd>);

impl Reach {
    /// Opens them.
    pub(crate) fn new(places: &[PathBuf]) -> io::Result<Self> {
        let open = |place: &PathBuf| openat(CWD, place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        Ok(Self(places.iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Whether a file is beneath one of them. It is open, so it stays the same; and programs cannot bring in what is outside.
    fn holds(&self, file: &OwnedFd) -> bool {
        let Ok(path) = named(file) else { return false };
        self.0.iter().any(|place| named(place).is_ok_and(|place| path.starts_with(place)))
    }
}

fn named(file: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(own(file))
}

pub(super) fn own(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Starts the thread that makes connections, until the last program that is asked for has ended.
pub(crate) fn start(notices: OwnedFd, reach: Reach) -> io::Result<()> {
    let shared = Arc::new(Shared { notices, reach, at_work: AtomicUsize::new(0) });
    thread::Builder::new().name("connections".to_owned()).stack_size(STACK).spawn(move || serve(&shared))?;
    Ok(())
}

#[derive(Debug)]
struct Shared {
    notices: OwnedFd,
    reach: Reach,
    at_work: AtomicUsize,
}

fn serve(shared: &Arc<Shared>) {
    loop {
        let mut polled = [PollFd::new(&shared.notices, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if polled[0].revents().contains(PollFlags::HUP) {
            return;
        }
        // What has been taken back meanwhile is nobody's any more.
        let Ok(notice) = receive(&shared.notices) else { continue };
        shared.at_work.fetch_add(1, Ordering::AcqRel);
        if shared.at_work.load(Ordering::Acquire) > AT_ONCE {
            work(shared, &notice);
            continue;
        }
        let other = Arc::clone(shared);
        let started = thread::Builder::new().name("connection".to_owned()).stack_size(STACK);
        if started.spawn(move || work(&other, &notice)).is_err() {
            work(shared, &notice);
        }
    }
}

fn work(shared: &Shared, notice: &seccomp_notif) {
    answer(&shared.notices, notice.id, &connect(shared, notice));
    shared.at_work.fetch_sub(1, Ordering::AcqRel);
}

/// What the call of a program comes to.
pub(super) fn answer(notices: &OwnedFd, id: u64, result: &io::Result<()>) {
    let mut answer = seccomp_notif_resp { id, val: 0, error: 0, flags: 0 };
    if let Err(error) = result {
        answer.error = -error.raw_os_error().unwrap_or(libc::EACCES);
    }
    // SAFETY: the answer is as long as the kernel's, and lives on this stack. A program that is gone hears nothing.
    let _gone = unsafe { libc::ioctl(notices.as_raw_fd(), SEND, &raw mut answer) };
}

/// Whether who has asked is still there: then what was taken of it until now is its own.
pub(super) fn still_there(notices: &OwnedFd, mut id: u64) -> io::Result<()> {
    // SAFETY: the number is what the kernel reads.
    if unsafe { libc::ioctl(notices.as_raw_fd(), STILL_THERE, &raw mut id) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

pub(super) fn receive(notices: &OwnedFd) -> io::Result<seccomp_notif> {
    // SAFETY: a zeroed notice is valid, as the kernel wants it, and is as long as the kernel's.
    unsafe {
        let mut notice: seccomp_notif = std::mem::zeroed();
        let result = libc::ioctl(notices.as_raw_fd(), RECEIVE, &raw mut notice);
        if result == 0 { Ok(notice) } else { Err(io::Error::last_os_error()) }
    }
}

/// Connects the socket of a program to what it has asked for.
fn connect(shared: &Shared, notice: &seccomp_notif) -> io::Result<()> {
    let [descriptor, address, length, ..] = notice.data.args;
    let thread = i32::try_from(notice.pid).map_err(io::Error::other)?;
    let address = Address::read(thread, address, length)?;
    let socket = taken(thread, descriptor)?;
    let directory = match (sockopt::socket_domain(&socket)?, address.name()) {
        (AddressFamily::UNIX, Some(Name::Path(path))) if path.is_relative() => {
            Some(openat(CWD, format!("/proc/{thread}/cwd"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
        }
        _ => None,
    };
    still_there(&shared.notices, notice.id)?;
    if sockopt::socket_domain(&socket)? != AddressFamily::UNIX {
        return address.connect(&socket);
    }
    match address.name() {
        None => address.connect(&socket),
        Some(Name::Abstract) => Err(Errno::PERM.into()),
        Some(Name::Path(path)) => {
            let from = directory.as_ref().map_or(CWD, |directory| directory.as_fd());
            let found = openat(from, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            if !shared.reach.holds(&found) {
                return Err(Errno::ACCESS.into());
            }
            if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Socket {
                return Err(Errno::CONNREFUSED.into());
            }
            Address::of_path(&own(&found))?.connect(&socket)
        }
    }
}

/// What a program has open, for this process, too.
pub(super) fn taken(thread: i32, descriptor: u64) -> io::Result<OwnedFd> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"))?;
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = group.and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let handle = pidfd_open(process, PidfdFlags::empty())?;
    // The kernel takes the low half for the number.
    let number = c_int::try_from(descriptor & u64::from(u32::MAX)).map_err(|_| Errno::BADF)?;
    Ok(pidfd_getfd(handle, number, PidfdGetfdFlags::empty())?)
}

/// What a socket is connected to.
struct Address {
    bytes: sockaddr_storage,
    length: usize,
}

enum Name<'a> {
    Path(&'a Path),
    Abstract,
}

impl Address {
    /// That of a program.
    fn read(thread: i32, place: u64, length: u64) -> io::Result<Self> {
        // The kernel takes the low half for the length.
        let length = usize::try_from(length & u64::from(u32::MAX)).map_err(|_| Errno::INVAL)?;
        if length > size_of::<sockaddr_storage>() {
            return Err(Errno::INVAL.into());
        }
        let place = usize::try_from(place).map_err(|_| Errno::FAULT)?;
        // SAFETY: a zeroed address is a valid one. The kernel writes as much as was asked for at most, into what lives on
        // this stack, and reads nothing of this process by the other pointer.
        unsafe {
            let mut bytes: sockaddr_storage = std::mem::zeroed();
            let local = libc::iovec { iov_base: (&raw mut bytes).cast(), iov_len: length };
            let remote = libc::iovec { iov_base: place as *mut libc::c_void, iov_len: length };
            let count = libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0);
            match usize::try_from(count) {
                Ok(count) if count == length => Ok(Self { bytes, length }),
                Ok(_) => Err(Errno::FAULT.into()),
                Err(_) => Err(io::Error::last_os_error()),
            }
        }
    }

    /// That of a socket with a name.
    fn of_path(path: &str) -> io::Result<Self> {
        // SAFETY: a zeroed address is a valid one.
        let mut bytes: sockaddr_storage = unsafe { std::mem::zeroed() };
        bytes.ss_family = libc::sa_family_t::try_from(libc::AF_UNIX).map_err(io::Error::other)?;
        let mut address = Self { bytes, length: NAME + path.len() + 1 };
        if address.length > size_of::<sockaddr_un>() {
            return Err(Errno::NAMETOOLONG.into());
        }
        address.all_mut()[NAME..NAME + path.len()].copy_from_slice(path.as_bytes());
        Ok(address)
    }

    fn all(&self) -> &[u8] {
        // SAFETY: an address is bytes in all of its length.
        unsafe { std::slice::from_raw_parts((&raw const self.bytes).cast(), size_of::<sockaddr_storage>()) }
    }

    fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are an address.
        unsafe { std::slice::from_raw_parts_mut((&raw mut self.bytes).cast(), size_of::<sockaddr_storage>()) }
    }

    /// The name of a socket, if it is one's that can have one.
    fn name(&self) -> Option<Name<'_>> {
        if c_int::from(self.bytes.ss_family) != libc::AF_UNIX {
            return None;
        }
        let name = self.all().get(NAME..self.length).filter(|name| !name.is_empty())?;
        match name.split(|byte| *byte == 0).next() {
            Some(path) if !path.is_empty() => Some(Name::Path(Path::new(OsStr::from_bytes(path)))),
            _ => Some(Name::Abstract),
        }
    }

    fn connect(&self, socket: &OwnedFd) -> io::Result<()> {
        let length = libc::socklen_t::try_from(self.length).map_err(io::Error::other)?;
        // SAFETY: the address lives as long as the call, and is as long as is said.
        let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const self.bytes).cast(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
