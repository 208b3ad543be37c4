//! A running socket, and kernels that connect to it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs::{self, Permissions},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::{PermissionsExt as _, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_skills::Skills;
use gloveport_sys::{Identity, Surroundings};
use serde_json::{Value, json};

/// A user that may do nothing special.
pub(crate) const NOBODY: u32 = 65_534;
/// A group that no user of the system has.
pub(crate) const GROUP: u32 = 4_242;

/// The socket for one user, with a directory for files.
pub(crate) struct Served {
    pub(crate) skills: Skills,
    pub(crate) files: PathBuf,
    _directory: tempfile::TempDir,
}

impl Served {
    /// For the user of this process.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// For nobody, if this process may do that.
    pub(crate) async fn for_nobody() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let user = Identity { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY, GROUP] };
        Some(Self::with(|surroundings| surroundings.identity = Some(user)).await)
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Surroundings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        open_to_all(directory.path());
        let files = directory.path().join("files");
        fs::create_dir(&files).unwrap();
        let mut surroundings = Surroundings::inherited(files.clone());
        change(&mut surroundings);
        if let Some(user) = &surroundings.identity {
            chown(&files, Some(user.uid), Some(user.gid)).unwrap();
        }
        let skills = Skills::start_below(&surroundings, vec![directory.path().join("state")]).await.unwrap();
        Self { skills, files, _directory: directory }
    }

    pub(crate) fn kernel(&self) -> Kernel {
        Kernel::at(self.skills.socket())
    }

    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> String {
        self.files.join(name).display().to_string()
    }
}

pub(crate) fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// A connection, as a kernel has one.
pub(crate) struct Kernel {
    pub(crate) stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Kernel {
    pub(crate) fn at(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Self { reader: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// What comes next; null at the end.
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) | Err(_) => Value::Null,
            Ok(_) => serde_json::from_str(&line).unwrap(),
        }
    }

    /// Asks for something, and returns the answer.
    pub(crate) fn ask(&mut self, command: &str, path: &str, parameters: &Value) -> Value {
        let mut request = json!({ "id": 7, "command": command, "path": path, "enable_linting": false });
        request.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
        writeln!(self.stream, "{request}").unwrap();
        self.next()
    }

    /// The error of a request that is refused.
    pub(crate) fn refused(&mut self, command: &str, path: &str, parameters: &Value) -> String {
        let answer = self.ask(command, path, parameters);
        assert!(answer["error"].is_string(), "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }
}
