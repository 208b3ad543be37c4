//! Starts the real binary, as a user would, in a home of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use gloveport_sys::process;
pub(crate) use gloveport_testing::is_alive as alive;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// The binary with a clean environment.
pub(crate) fn gloveport(home: &Path) -> Command {
    with_home(Command::new(env!("CARGO_BIN_EXE_gloveport")), home)
}

/// A program that starts the binary, with a clean environment: a cluster that somebody has set is none of a test's.
pub(crate) fn with_home(mut command: Command, home: &Path) -> Command {
    for (name, _) in std::env::vars() {
        if name.starts_with("GLOVEPORT")
            || ["SESSION_API_KEY", "USER", "SU_TO_USER", "NO_CHANGE_TIMEOUT_SECONDS", "KUBECONFIG"]
                .contains(&name.as_str())
        {
            command.env_remove(name);
        }
    }
    command.env("HOME", home).env("TMPDIR", home).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    gloveport(home.path()).args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running server; it and its processes are gone when this is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) home: TempDir,
}

impl Server {
    /// `gloveport serve` on a free port, without a key unless the environment has one.
    pub(crate) fn serve(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = gloveport(home.path());
        command.args(["serve", "--port", "0", "--workspace"]).arg(home.path()).args(arguments);
        if !environment.iter().any(|(name, _)| name.ends_with("_KEY")) {
            command.arg("--no-key");
        }
        command.envs(environment.iter().copied());
        Self::started(&mut command, home)
    }

    /// A server that prints its address.
    pub(crate) fn started(command: &mut Command, home: TempDir) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse().unwrap_or_else(|_| panic!("no address in {line:?}"));
        Self { child, port, home }
    }

    /// The compatibility entry point.
    pub(crate) fn compat(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = gloveport(home.path());
        command.arg("action-execution-server").arg(port.to_string()).arg("--working-dir").arg(home.path());
        command.args(["--username", "root", "--user-id", "0", "--no-enable-browser"]).args(arguments);
        command.envs(environment.iter().copied()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let server = Self { child, port, home };
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// One request on a connection of its own: status and body.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.send(method, path, headers, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
        (status, body)
    }

    /// Sends a request and leaves the answer to the caller.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Runs a command and answers with its observation.
    pub(crate) fn run(&self, command: &str, timeout: f64) -> Value {
        let (status, body) = self.request("POST", "/execute_action", "", &run_body(command, timeout));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// All processes below the server.
    pub(crate) fn descendants(&self) -> Vec<u32> {
        process::descendants(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let descendants = self.descendants();
        let _ended_before = self.child.kill();
        let _status = self.child.wait();
        until("the server's processes are gone", || !descendants.iter().any(|pid| alive(*pid)));
    }
}

pub(crate) fn run_body(command: &str, timeout: f64) -> String {
    json!({"action": {"action": "run", "timeout": timeout, "args": {"command": command}}}).to_string()
}

/// Waits for something that no event tells of.
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
