//! AgentSkills: the Python package of the kernels, and the socket at which its editor answers.

use std::{
    io,
    path::{Path, PathBuf},
};

use gloveport_sys::Surroundings;

/// The package, unpacked, and the editor for it. Ends with its last use: the socket is removed.
#[derive(Debug)]
pub struct Skills {
    packages: PathBuf,
    socket: PathBuf,
}

impl Skills {
    /// Unpacks the package where the user of the kernels can read it, and serves the editor at a socket that only that
    /// user can connect to. Must be called within a tokio runtime.
    pub async fn start(surroundings: &Surroundings, workspace: &Path) -> io::Result<Self> {
        let _ = (surroundings, workspace);
        todo!()
    }

    /// The directory to put on the path of the kernels.
    pub fn packages(&self) -> &Path {
        &self.packages
    }

    /// The socket of the editor, which kernels find in the variable `GLOVEPORT_EDITOR_SOCKET`.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The cell that makes the functions known in a kernel (ipython-and-plugins 1).
    pub fn import_cell() -> &'static str {
        "from openhands.runtime.plugins.agent_skills.agentskills import *\n"
    }

    /// Stops to serve, and removes the socket.
    pub async fn close(&self) {
        todo!()
    }
}
