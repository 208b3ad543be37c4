//! A server process: its start, its memory, its end.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::Client;

/// Longest wait for a server to start.
const START_LIMIT: Duration = Duration::from_mins(2);

/// What is measured.
#[derive(Debug, Clone)]
pub(crate) enum Program {
    /// Our binary.
    Gloveport(PathBuf),
    /// The reference, by the Python of its environment.
    Reference(PathBuf),
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Home and working directory: nothing of the user is read or written, and a slow `~/.bashrc` does not count.
    home: TempDir,
}

impl Server {
    /// Starts a server and runs one command; answers with the time from the start to its result.
    pub(crate) fn start(program: &Program) -> anyhow::Result<(Self, Duration)> {
        Self::start_with(program, &[], &[], first_action)
    }

    /// The same with more arguments and variables, and with another first action: `None` while nothing listens.
    pub(crate) fn start_with(
        program: &Program,
        arguments: &[&str],
        environment: &[(&str, PathBuf)],
        first: fn(u16) -> Option<anyhow::Result<()>>,
    ) -> anyhow::Result<(Self, Duration)> {
        let home = tempfile::tempdir()?;
        let work = home.path().join("work");
        fs::create_dir(&work)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = command(program, port, &work);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        command.env("HOME", home.path()).env("SU_TO_USER", "false").env_remove("SESSION_API_KEY");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let began = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {program:?}"))?;
        let mut server = Self { child, port, home };
        loop {
            if let Some(result) = first(port) {
                result?;
                return Ok((server, began.elapsed()));
            }
            if let Some(status) = server.child.try_wait()? {
                anyhow::bail!("{program:?} ended with {status} while it started");
            }
            anyhow::ensure!(began.elapsed() < START_LIMIT, "{program:?} did not start within {START_LIMIT:?}");
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn working_directory(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Resident memory of the server process itself, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        process::resident(self.child.id()).map_or(0, |(resident, _)| resident)
    }

    /// Resident memory of the server and all that it started, what is shared divided, in bytes.
    pub(crate) fn whole_memory(&self) -> u64 {
        let own = self.child.id();
        process::descendants(own).into_iter().chain([own]).filter_map(process::proportional).sum()
    }

    /// Stops it as its callers do; answers with the time until it is gone, and how many of its processes are left.
    pub(crate) fn stop(mut self) -> anyhow::Result<(Duration, usize)> {
        let processes = process::descendants(self.child.id());
        let began = Instant::now();
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
        self.child.wait()?;
        let took = began.elapsed();
        let left: Vec<u32> =
            processes.into_iter().filter(|pid| process::stat(*pid).is_some_and(|stat| stat.state != 'Z')).collect();
        for pid in &left {
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                // What the measured program left behind is not left to the machine.
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
        Ok((took, left.len()))
    }
}

impl Drop for Server {
    /// Ends a server that was not stopped, because a measurement failed.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let below = process::descendants(self.child.id());
            // Whether they end by themselves does not matter any more.
            let _gone = self.child.kill();
            let _status = self.child.wait();
            for pid in below.into_iter().filter_map(|pid| i32::try_from(pid).ok().and_then(Pid::from_raw)) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// `None` while nothing listens.
fn first_action(port: u16) -> Option<anyhow::Result<()>> {
    let mut client = Client::connect(port).ok()?;
    Some(client.run("true").map(|_| ()))
}

fn command(program: &Program, port: u16, work: &Path) -> Command {
    let (binary, first): (&Path, &[&str]) = match program {
        Program::Gloveport(binary) => (binary, &["action-execution-server"]),
        Program::Reference(python) => (python, &["-u", "-m", "openhands.runtime.action_execution_server"]),
    };
    let mut command = Command::new(binary);
    command.args(first).arg(port.to_string()).arg("--working-dir").arg(work);
    command.args(["--username", "root", "--user-id", "0", "--no-enable-browser"]);
    command
}
