//! Where a service listens next: a port that is free, or a socket in a directory of its own.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    net::{Ipv4Addr, TcpListener},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, chown},
    },
    path::Path,
};

use gloveport_sys::Identity;
use tempfile::TempDir;

use super::{Endpoint, Listens};

/// Longest path of a socket, with the NUL byte at its end.
const SOCKET_PATH: usize = 108;
/// Name of the socket in its directory.
const SOCKET: &str = "socket";

/// Why a service has no place to listen at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// Somebody else listens there.
    #[error("port {0} is taken by another program")]
    Taken(u16),
    /// There is no free port.
    #[error("there is no free port: {0}")]
    NoPort(io::Error),
    /// The directory of the socket cannot be made.
    #[error("cannot make a directory for the socket: {0}")]
    Directory(io::Error),
}

/// The places of one service.
#[derive(Debug)]
pub(crate) struct Places {
    listens: Listens,
    owner: Option<Identity>,
    /// Made with the first socket, removed with the service.
    directory: Option<TempDir>,
    /// The port at which the service was healthy before.
    proven: Option<u16>,
}

impl Places {
    /// The places of a service whose program has this identity.
    pub(crate) fn new(listens: Listens, owner: Option<Identity>) -> Self {
        Self { listens, owner, directory: None, proven: None }
    }

    /// Where the next start listens.
    pub(crate) fn next(&mut self) -> Result<Option<Endpoint>, PlaceError> {
        Ok(match self.listens {
            Listens::Port(port) if is_taken(port) => return Err(PlaceError::Taken(port)),
            Listens::Port(port) => Some(Endpoint::Port(port)),
            Listens::AnyPort => Some(Endpoint::Port(self.free_port().map_err(PlaceError::NoPort)?)),
            Listens::Socket => Some(Endpoint::Socket(self.socket().map_err(PlaceError::Directory)?)),
            Listens::Nowhere => None,
        })
    }

    /// The service is healthy here: it comes back to this place when it is started again.
    pub(crate) fn proven(&mut self, endpoint: Option<&Endpoint>) {
        if let Some(Endpoint::Port(port)) = endpoint {
            self.proven = Some(*port);
        }
    }

    /// The port of before if it is free, else any. A port is tried again only after the service was healthy there.
    fn free_port(&mut self) -> io::Result<u16> {
        if let Some(port) = self.proven.take()
            && !is_taken(port)
        {
            return Ok(port);
        }
        Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
    }

    fn socket(&mut self) -> io::Result<std::path::PathBuf> {
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => self.make_directory()?,
        };
        let path = self.directory.insert(directory).path().join(SOCKET);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(path),
        }
    }

    /// A directory that only the user of the program can enter.
    fn make_directory(&self) -> io::Result<TempDir> {
        let mut directory = tempfile::Builder::new().prefix("gloveport-plugin-").tempdir()?;
        if directory.path().as_os_str().len() + SOCKET.len() + 2 > SOCKET_PATH {
            directory = tempfile::Builder::new().prefix("gloveport-plugin-").tempdir_in(Path::new("/tmp"))?;
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700))?;
        if let Some(owner) = &self.owner {
            chown(directory.path(), Some(owner.uid), Some(owner.gid))?;
        }
        Ok(directory)
    }
}

/// Somebody listens on this port of the loopback address, or of all.
pub(crate) fn is_taken(port: u16) -> bool {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

impl Endpoint {
    /// The name and the value of what a command gets to know of it.
    pub(crate) fn value(&self) -> (&'static str, OsString) {
        match self {
            Self::Port(port) => ("port", OsString::from(port.to_string())),
            Self::Socket(path) => ("socket", OsStr::from_bytes(path.as_os_str().as_bytes()).to_owned()),
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port {port}"),
            Self::Socket(path) => write!(f, "the socket {}", path.display()),
        }
    }
}
