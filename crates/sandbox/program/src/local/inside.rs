//! A sandbox's own view of its directory, for the server that is started.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, OpenOptionsExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gloveport_audit::{Event, Log};
use gloveport_contract::{
    gate::SOCKET,
    local::directory::{EARLIER_LOG, ENDED, LOCK, LOG, OLD, PAUSED, RecordedWorkspace, remove_tree, unpublish},
};
use gloveport_sys::{
    container::{self, Container, ContainerError, Network},
    errand::Errands,
    frames,
    owners::{self, Owners, work::Work},
};
use rustix::{
    io::fcntl_dupfd_cloexec,
    net::{self, AddressFamily, SocketFlags, SocketType},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};
use serde::{Deserialize, Serialize};

use crate::{audit::Channel, gate::More};

/// Size at which a log gets its other name. Both together are twice as long at most.
const LONGEST_LOG: u64 = 8 * 1024 * 1024;
/// Characters of a reason that is kept for others. Who asks may have been taken over.
const LONGEST_REASON: usize = 4096;
/// Descriptors below this are the standard ones.
const FIRST_FREE: i32 = 3;

/// The lock that a server, its guard and its owners hold for their lives. Programs of the user do not inherit it.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    lock: Arc<OwnedFd>,
    /// Who changes the directory where the server itself is kept from it.
    errands: Option<Arc<Errands>>,
    /// Whether its network is not that of the machine.
    has_own_network: bool,
    /// Where it is recorded what happens; opened by who does errands alone.
    audit: Option<Arc<Audit>>,
    /// Whom files of it belong to beside the user; known to who removes them alone.
    owners: Option<Arc<Owners>>,
}

/// A log that is out of reach of the sandbox.
#[derive(Debug)]
struct Audit {
    path: PathBuf,
    session: String,
    log: OnceLock<Log>,
}

impl Audit {
    fn add(&self, event: &Event) -> io::Result<()> {
        let log = if let Some(log) = self.log.get() {
            log
        } else {
            let opened = Log::open(&self.path).map_err(io::Error::other)?;
            self.log.get_or_init(|| opened)
        };
        log.add(&self.session, event).map_err(io::Error::other)
    }
}

/// What is done for a sandbox where the server cannot do it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Errand {
    TellPaused(bool),
    TellEnded(String),
    Remove,
    /// Listens on any port of this address of the machine, and gives the socket.
    Listen(IpAddr),
    /// Takes a port of the machine on which nobody listens, and gives the socket.
    Reserve,
    /// Adds to the audit log.
    Record(Event),
}

impl Channel for Inside {
    fn tell(&self, event: Event) -> io::Result<()> {
        let errands = self.errands.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        errands.run(&Errand::Record(event)).map(drop)
    }
}

impl Inside {
    /// Takes over what the backend gave as standard output. Call it before the guard is started, which inherits it.
    pub(crate) fn enter() -> io::Result<Self> {
        let lock = fcntl_dupfd_cloexec(io::stdout().as_fd(), FIRST_FREE)?;
        dup2_stdout(null()?)?;
        let inside = Self { lock: Arc::new(lock), errands: None, has_own_network: false, audit: None, owners: None };
        // A new session: the keys of the backend's terminal do not reach it.
        let _is_leader_already = rustix::process::setsid();
        inside.directory().map(|_| inside)
    }

    /// The same, with what happens recorded in this file.
    pub(crate) fn audited(self, path: PathBuf, session: String) -> Self {
        Self { audit: Some(Arc::new(Audit { path, session, log: OnceLock::new() })), ..self }
    }

    /// The same, for a server that is kept from its directory afterwards. Call it before the guard is started.
    pub(crate) fn with_errands(self) -> io::Result<Self> {
        let own = self.clone();
        let errands = Errands::start("gloveport-place", move |errand| own.do_errand(errand))?;
        Ok(Self { errands: Some(Arc::new(errands)), ..self })
    }

    /// The same, where the server goes on in a container. Only the copy in it returns.
    pub(crate) fn in_container(self, container: &Container, for_gate: Option<OwnedFd>) -> Result<Self, ContainerError> {
        let owners = container.root.as_ref().and_then(|root| root.owners.clone());
        let own = Self { owners: owners.map(Arc::new), ..self.clone() };
        let errands = container::enter(container, for_gate, move |errand| own.do_errand(errand))?;
        Ok(Self { errands: Some(Arc::new(errands)), has_own_network: container.network != Network::Machine, ..self })
    }

    /// On a kernel of its own, where a front does errands over what it has given as standard output.
    pub(crate) fn on_own_kernel() -> io::Result<Self> {
        let errands = UnixStream::from(fcntl_dupfd_cloexec(io::stdout().as_fd(), FIRST_FREE)?);
        errands.peer_addr()?;
        dup2_stdout(null()?)?;
        let errands = Some(Arc::new(Errands::over(errands)?));
        Ok(Self { lock: Arc::new(null()?.into()), errands, has_own_network: false, audit: None, owners: None })
    }

    /// Passes on the errand of a server on a kernel of its own. It cannot have sockets of the machine.
    pub(super) fn pass_on(&self, errand: &Errand) -> io::Result<Vec<OwnedFd>> {
        let errands = self.errands.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        match errand {
            Errand::Listen(_) | Errand::Reserve => Err(io::ErrorKind::Unsupported.into()),
            Errand::TellPaused(_) | Errand::TellEnded(_) | Errand::Remove | Errand::Record(_) => errands.run(errand),
        }
    }

    fn do_errand(&self, errand: Errand) -> io::Result<Vec<OwnedFd>> {
        match errand {
            Errand::TellPaused(paused) => self.tell_paused(paused).map(|()| Vec::new()),
            Errand::TellEnded(reason) => {
                let reason: String = reason.chars().take(LONGEST_REASON).collect();
                self.tell_ended(&reason).map(|()| Vec::new())
            }
            Errand::Remove => self.remove().map(|()| Vec::new()),
            Errand::Listen(address) => Ok(vec![std::net::TcpListener::bind((address, 0))?.into()]),
            Errand::Reserve => Ok(vec![reserve()?]),
            Errand::Record(event) => match &self.audit {
                Some(audit) => audit.add(&event).map(|()| Vec::new()),
                None => Err(io::Error::other("nothing is recorded")),
            },
        }
    }

    /// Whether ports of the machine have to be led into its network.
    pub(crate) const fn has_own_network(&self) -> bool {
        self.has_own_network
    }

    /// Listens on any port of an address of the machine, where its network is another one.
    pub(crate) fn listen_outside(&self, address: IpAddr) -> io::Result<std::net::TcpListener> {
        self.opened(&Errand::Listen(address)).map(std::net::TcpListener::from)
    }

    /// Keeps a port of the machine from everybody.
    pub(crate) fn reserve(&self) -> io::Result<(OwnedFd, u16)> {
        let socket = if self.has_own_network { self.opened(&Errand::Reserve)? } else { reserve()? };
        let address = SocketAddr::try_from(net::getsockname(&socket)?)?;
        Ok((socket, address.port()))
    }

    fn opened(&self, errand: &Errand) -> io::Result<OwnedFd> {
        let errands = self.errands.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let opened = errands.run(errand)?.into_iter().next();
        opened.ok_or_else(|| io::Error::other("who does errands has opened nothing"))
    }

    /// What is for the gate alone: the socket at which it is told of other rules, the audit log, and, if there are secrets, the
    /// file of them that the backend sends first over the socket that it gave as standard input. It is not read here.
    pub(crate) fn for_gate(&self, has_secrets: bool) -> io::Result<OwnedFd> {
        // Addresses are short, names of directories are not.
        let directory = File::open(self.directory()?)?;
        let control = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))?;
        let edge = has_secrets.then(Self::take_secrets).transpose()?;
        let audit = match &self.audit {
            Some(audit) => Some((audit.session.clone(), Log::file(&audit.path)?.into())),
            None => None,
        };
        More { control, edge, audit }.hand_over()
    }

    fn take_secrets() -> io::Result<OwnedFd> {
        let socket = UnixStream::from(fcntl_dupfd_cloexec(io::stdin().as_fd(), FIRST_FREE)?);
        let received = frames::receive::<()>(&socket)?;
        let file = received.and_then(|((), files)| files.into_iter().next());
        file.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the backend has sent no file"))
    }

    /// Takes over the socket that the backend gave as standard input. Call it after the guard was started.
    pub(crate) fn socket() -> io::Result<UnixStream> {
        let socket = fcntl_dupfd_cloexec(io::stdin().as_fd(), FIRST_FREE)?;
        dup2_stdin(null()?)?;
        let socket = UnixStream::from(socket);
        socket.peer_addr().map(|_| socket)
    }

    /// The directory of the sandbox, wherever it is now.
    pub(crate) fn directory(&self) -> io::Result<PathBuf> {
        let path = fs::read_link(format!("/proc/self/fd/{}", self.lock.as_raw_fd()))?;
        match (path.file_name(), path.parent()) {
            (Some(name), Some(directory)) if name == LOCK => Ok(directory.to_owned()),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "standard output is not the lock of a sandbox, or the sandbox was removed",
            )),
        }
    }

    /// Makes the workspace where it is missing; a temporary one for this user alone.
    pub(crate) fn make_workspace(&self, workspace: &Path) -> io::Result<()> {
        if self.errands.is_some() {
            // It was made before the sandbox was kept to it.
            return fs::metadata(workspace).map(|_| ());
        }
        let recorded = RecordedWorkspace::read(&self.directory()?)?;
        if recorded.is_some_and(|recorded| recorded.temporary) {
            DirBuilder::new().mode(0o700).create(workspace)
        } else {
            fs::create_dir_all(workspace)
        }
    }

    /// Tells others whether the sandbox is paused.
    pub(crate) fn tell_paused(&self, paused: bool) -> io::Result<()> {
        if let Some(errands) = &self.errands {
            return errands.run(&Errand::TellPaused(paused)).map(drop);
        }
        let path = self.directory()?.join(PAUSED);
        if paused {
            return fs::write(path, "");
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Tells others why the server has ended, while the rest of the sandbox stays.
    pub(crate) fn tell_ended(&self, reason: &str) -> io::Result<()> {
        if let Some(errands) = &self.errands {
            return errands.run(&Errand::TellEnded(reason.to_owned())).map(drop);
        }
        fs::write(self.directory()?.join(ENDED), reason)
    }

    /// Removes the directory and the temporary workspace. Nothing of the sandbox but its server runs any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        if let Some(errands) = &self.errands {
            return errands.run(&Errand::Remove).map(drop);
        }
        loop {
            let Ok(directory) = self.directory() else { return Ok(()) };
            let Some(root) = directory.parent().and_then(Path::parent) else { return Ok(()) };
            let old = root.join(OLD);
            if directory.parent() == Some(&old) {
                // Somebody else removes it.
                return Ok(());
            }
            if let Some(old) = unpublish(&directory, &old)? {
                // A record that cannot be understood names no workspace.
                let recorded = RecordedWorkspace::read(&old).unwrap_or_default();
                if let Some(recorded) = recorded.filter(|recorded| recorded.temporary) {
                    self.remove_tree(&recorded.workspace)?;
                }
                self.remove_tree(&old)?;
            }
            // It may have got its name at this very moment, and been missed under the one before.
            if self.directory().is_ok_and(|now| now == directory) {
                return Ok(());
            }
        }
    }

    /// Removes a tree in which files may belong to others.
    fn remove_tree(&self, tree: &Path) -> io::Result<()> {
        match (remove_tree(tree), &self.owners) {
            (Err(error), Some(owners)) if error.kind() == io::ErrorKind::PermissionDenied => {
                let program = Path::new("/proc/self/exe");
                owners::work::have_done(program, owners, Work::Remove { tree: tree.to_owned() })
            }
            (removed, _) => removed,
        }
    }

    /// Where the server writes its log, which is kept short: the file that the backend gave as standard error output, and
    /// its successors. A panic is told there, too.
    pub(crate) fn log(&self) -> io::Result<LogWriter> {
        let file = File::from(fcntl_dupfd_cloexec(io::stderr().as_fd(), FIRST_FREE)?);
        LogWriter::new(self.clone(), file, LONGEST_LOG, |file| Ok(dup2_stderr(file)?))
    }
}

/// Keeps a port from everybody, until it is opened or led into the sandbox.
fn reserve() -> io::Result<OwnedFd> {
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    Ok(socket)
}

fn null() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// Writes a log whose file gets another name when it is long, and a successor.
#[derive(Debug)]
pub(crate) struct LogWriter {
    inside: Inside,
    file: File,
    length: u64,
    longest: u64,
    /// Makes a new file the standard error output.
    redirect: fn(&File) -> io::Result<()>,
}

impl LogWriter {
    fn new(inside: Inside, file: File, longest: u64, redirect: fn(&File) -> io::Result<()>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { inside, file, length, longest, redirect })
    }

    /// The file gets its other name, and a new one takes its place.
    fn turn(&mut self) -> io::Result<()> {
        let directory = self.inside.directory()?;
        fs::rename(directory.join(LOG), directory.join(EARLIER_LOG))?;
        let new = OpenOptions::new().append(true).create(true).mode(0o600).open(directory.join(LOG))?;
        (self.redirect)(&new)?;
        self.file = new;
        self.length = 0;
        Ok(())
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length >= self.longest && self.turn().is_err() {
            // Without a new file, as on a full disk, what was kept makes room.
            self.file.set_len(0)?;
            self.length = 0;
        }
        let count = self.file.write(bytes)?;
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The same for those who write at the same time.
#[derive(Clone, Debug)]
pub(crate) struct SharedLog(Arc<Mutex<LogWriter>>);

impl SharedLog {
    pub(crate) fn new(log: LogWriter) -> Self {
        Self(Arc::new(Mutex::new(log)))
    }
}

impl Write for SharedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_end_and_never_more_than_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let lock = File::create(directory.path().join(LOCK)).unwrap();
        let log = File::options().append(true).create(true).open(directory.path().join(LOG)).unwrap();
        let inside =
            Inside { lock: Arc::new(lock.into()), errands: None, has_own_network: false, audit: None, owners: None };
        let mut writer = LogWriter::new(inside, log, 100, |_| Ok(())).unwrap();
        for number in 0..100 {
            writeln!(writer, "line {number:04}").unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let both = read(EARLIER_LOG) + &read(LOG);
        assert!(both.len() <= 220 && both.starts_with("line 00") && both.ends_with("line 0099\n"), "{both}");
        let lines: Vec<_> = both.lines().collect();
        let last: Vec<_> = (100 - lines.len()..100).map(|number| format!("line {number:04}")).collect();
        assert_eq!(lines, last);
    }
}
