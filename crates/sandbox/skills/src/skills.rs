//! The package and the socket from their start to their end.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::{Path, PathBuf},
    thread,
};

use gloveport_editor::lint::PythonLinter;
use gloveport_sys::{Identity, Surroundings, file_identity, replace};
use tokio::task::spawn_blocking;

use crate::{
    connection::Service,
    package::{self, Package},
    place::{self, Place},
    server::Server,
};

/// The package, unpacked, and the editor for it. Ends with its last use: the socket is removed.
#[derive(Debug)]
pub struct Skills {
    package: Package,
    socket: PathBuf,
    server: Server,
    place: Place,
}

impl Skills {
    /// Unpacks the package where the user of the kernels can read it, and serves the editor at a socket that only that
    /// user can connect to. Must be called within a tokio runtime.
    ///
    /// Edits are done with the rights of that user to files, and judged by that user's Python.
    ///
    /// # Errors
    ///
    /// There is no directory that the user can read and that nobody else can change, or this process may not work as
    /// that user.
    pub async fn start(surroundings: &Surroundings) -> io::Result<Self> {
        Self::start_below(surroundings, Place::candidates()).await
    }

    /// The same, with all files below the first of these directories that can be used. It is made if only its parent
    /// is there.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start), for the last directory.
    pub async fn start_below(surroundings: &Surroundings, directories: Vec<PathBuf>) -> io::Result<Self> {
        let identity = surroundings.identity.clone();
        let python = surroundings.find("python3").unwrap_or_else(|| "python3".into());
        let linter = PythonLinter {
            interpreter: python.to_string_lossy().into_owned(),
            identity: identity.clone(),
            environment: Some(surroundings.environment.clone()),
            ..PythonLinter::default()
        };
        let user = identity.clone();
        let prepared = spawn_blocking(move || Prepared::new(user.as_ref(), directories));
        let Prepared { place, package, socket, listener } = prepared.await.map_err(io::Error::other)??;
        listener.set_nonblocking(true)?;
        let server = Server::start(tokio::net::UnixListener::from_std(listener)?, Service::new(identity, linter));
        Ok(Self { package, socket, server, place })
    }

    /// The directory to put on the path of the kernels, behind all others.
    pub fn packages(&self) -> &Path {
        &self.package.directory
    }

    /// The socket of the editor, which kernels find in the variable `GLOVEPORT_EDITOR_SOCKET`.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The cell that makes the functions known in a kernel (ipython-and-plugins 1).
    ///
    /// It does not use the name that OpenHands gives the module: an installed OpenHands has it, too, and comes first.
    pub fn import_cell() -> &'static str {
        "from gloveport.skills import *\n"
    }

    /// Stops to serve, and removes the socket.
    pub async fn close(&self) {
        self.server.close().await;
        self.place.remove();
    }
}

/// What is there before kernels are served.
struct Prepared {
    place: Place,
    package: Package,
    socket: PathBuf,
    listener: UnixListener,
}

impl Prepared {
    /// In the first directory that can be used; the error of the last one, if none can.
    fn new(user: Option<&Identity>, candidates: Vec<PathBuf>) -> io::Result<Self> {
        // The threads of the editor can not do it.
        replace::open_journal();
        let mut failure = io::Error::other("there is no directory for AgentSkills");
        for root in candidates {
            match Self::below(user, &root) {
                Ok(prepared) => return Ok(prepared),
                Err(error) => {
                    tracing::debug!(%error, root = %root.display(), "AgentSkills cannot be there");
                    failure = error;
                }
            }
        }
        Err(failure)
    }

    fn below(user: Option<&Identity>, root: &Path) -> io::Result<Self> {
        let place = Place::at(root)?;
        let package = Package::at(&place)?;
        let directory = place.editor()?;
        let socket = directory.join("socket");
        let listener = UnixListener::bind(&socket)
            .map_err(|error| place::said(&format!("cannot listen at {}", socket.display()), &error))?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        place::give(&socket, user)?;
        place::give(&directory, user)?;
        check_reach(user, &package.directory, &socket)?;
        Ok(Self { place, package, socket, listener })
    }
}

/// Whether the user can read the package and reach the socket, as the threads of the editor see it.
fn check_reach(user: Option<&Identity>, packages: &Path, socket: &Path) -> io::Result<()> {
    let (file, socket, user) = (packages.join(package::PROBE), socket.to_owned(), user.cloned());
    let look = move || -> io::Result<()> {
        if let Some(user) = &user {
            file_identity::take_on(user)
                .map_err(|error| place::said(&format!("cannot work on files as the user {}", user.uid), &error))?;
        }
        for (path, access) in [(file, rustix::fs::Access::READ_OK), (socket, rustix::fs::Access::WRITE_OK)] {
            rustix::fs::accessat(rustix::fs::CWD, &path, access, rustix::fs::AtFlags::EACCESS).map_err(|error| {
                place::said(&format!("the user of the kernels cannot use {}", path.display()), &error.into())
            })?;
        }
        Ok(())
    };
    thread::Builder::new().name("editor".into()).spawn(look)?.join().map_err(|_| io::Error::other("a check failed"))?
}
