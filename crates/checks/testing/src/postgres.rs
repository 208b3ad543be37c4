//! A PostgreSQL of a test's own.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::{LIMIT, free_port};

/// The user and group that it runs as where the test is root, which PostgreSQL refuses to be.
const NOBODY: u32 = 65534;
/// The password of its user.
const PASSWORD: &str = "hunter2-of-postgres";

/// A PostgreSQL on a port of this machine; it is gone when this is dropped.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
    child: Option<Child>,
}

/// The directory with the programs of the server, as Debian and others install it.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    found.sort();
    found.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    found.into_iter().find(|directory| directory.join("initdb").is_file() && directory.join("postgres").is_file())
}

impl Postgres {
    /// Starts one; none, which is told, where it is not installed.
    ///
    /// # Panics
    ///
    /// It does not start.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            #[expect(clippy::print_stderr, reason = "a test that cannot do its work says so")]
            {
                eprintln!("skipped: there is no PostgreSQL: install Debian's package `postgresql`");
            }
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let password = directory.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        if geteuid().is_root() {
            for path in [directory.path(), &password] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let mut started = Self { directory, programs, port: free_port(), child: None };
        let data = started.data();
        let made = started
            .program("initdb")
            .args([
                "--no-sync",
                "--locale=C",
                "--encoding=UTF8",
                "--username=gateway",
                "--auth=scram-sha-256",
                "--pwfile",
            ])
            .arg(&password)
            .arg("--pgdata")
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        started.go_on();
        Some(started)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(Path::new("/")).stdin(Stdio::null()).env("PGPASSWORD", PASSWORD);
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts it after [`stop`](Self::stop), on the same port with the same data.
    ///
    /// # Panics
    ///
    /// It does not start.
    pub fn go_on(&mut self) {
        let log = fs::File::create(self.directory.path().join("log")).unwrap();
        let data = self.data();
        let child = self
            .program("postgres")
            .arg("-D")
            .arg(data)
            .args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="])
            .args(["-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=100"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let began = Instant::now();
        let is_ready = || {
            let asked =
                self.program("pg_isready").args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]).status();
            asked.is_ok_and(|status| status.success())
        };
        while !is_ready() {
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < LIMIT, "PostgreSQL does not start: {}", log());
        }
    }

    /// Ends it at once; its data stay.
    ///
    /// # Panics
    ///
    /// It does not end.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill_process(Pid::from_child(&child), Signal::QUIT).unwrap();
            child.wait().unwrap();
        }
    }

    /// The URL of a new database in it, with user and password.
    ///
    /// # Panics
    ///
    /// It cannot be made.
    pub fn database(&self, name: &str) -> String {
        let port = self.port.to_string();
        let made =
            self.program("createdb").args(["-h", "127.0.0.1", "-p", &port, "-U", "gateway", name]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        format!("postgres://gateway:{PASSWORD}@127.0.0.1:{port}/{name}")
    }

    /// The password in these URLs.
    pub const fn password() -> &'static str {
        PASSWORD
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _asked = kill_process(Pid::from_child(&child), Signal::QUIT);
            let _reaped = child.wait();
        }
    }
}
