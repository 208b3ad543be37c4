//! A sandbox of its own for each test, and a client that does as it is told.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_plugin::PluginHost;
use gloveport_sys::{Surroundings, process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// A limit for whatever must come in the end.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A directory with a workspace and a home, and what the plugin is started with in it.
pub(crate) struct Sandbox {
    pub(crate) directory: TempDir,
    pub(crate) host: PluginHost,
}

impl Sandbox {
    /// One whose server is this one, with these variables.
    pub(crate) fn new(program: &str, variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (workspace, home) = (directory.path().join("workspace"), directory.path().join("home"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&home).unwrap();
        let mut surroundings = Surroundings::inherited(workspace.clone());
        for name in ["VSCODE_PORT", "RUNTIME_URL", "RUNTIME_ID", "RUNTIME_USERNAME", "WORKSPACE_BASE"] {
            surroundings.unset(name);
        }
        for name in ["OPENVSCODE_SERVER_BASE_PATH", "WORKSPACE_MOUNT_PATH_IN_SANDBOX", "OPENVSCODE_SERVER_ROOT"] {
            surroundings.unset(name);
        }
        "root".clone_into(&mut surroundings.user_name);
        surroundings.set("HOME", &home);
        surroundings.set("GLOVEPORT_VSCODE", server(program));
        for (name, value) in variables {
            surroundings.set(name, value);
        }
        Self { directory, host: PluginHost { surroundings, workspace } }
    }

    /// Processes of the sandbox: those whose home it has.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let home = format!("HOME={}\0", self.directory.path().join("home").display());
        let is_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(home.len()).any(|window| window == home.as_bytes())
        };
        process::all().into_iter().filter(is_ours).collect()
    }
}

/// A real server of VS Code.
pub(crate) fn server(name: &str) -> PathBuf {
    let directory = std::env::var_os("GLOVEPORT_TEST_VSCODE")
        .map_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cache/gloveport/vscode"), PathBuf::from);
    let path = directory.join("bin").join(name);
    assert!(path.exists(), "there is no {}: run scripts/setup", path.display());
    path
}

pub(crate) use gloveport_testing::{free_port, until};

/// An answer.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Page {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Asks for a page.
pub(crate) async fn get(port: u16, path: &str, headers: &str) -> Page {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    // In this version an answer ends with its connection, and has no frames within.
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the answer does not end").unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Page { status, head: head.to_owned(), body: body.to_owned() }
}
