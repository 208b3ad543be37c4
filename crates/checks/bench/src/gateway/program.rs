//! A gateway that runs: its sandboxes, its memory, its end.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gloveport_protocol::Secret;
use gloveport_provider::{Provider as _, SandboxId};
use gloveport_provider_local::{Local, LocalOptions};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{client::Client, sandboxes};

/// Longest wait for a gateway, a sandbox, or the end of one of them.
const LIMIT: Duration = Duration::from_mins(2);
/// Time for what ends by itself when the gateway has ended.
const GRACE: Duration = Duration::from_secs(2);
/// Pause between two looks at something that is waited for.
const LOOK: Duration = Duration::from_micros(500);
/// Clients that ask at the same time, where many sandboxes are concerned.
pub(super) const AT_ONCE: usize = 8;

/// What makes the sandboxes.
#[derive(Debug, Clone)]
pub(super) enum Engine {
    /// This machine.
    Local,
    /// An engine of containers, at this address.
    Docker(String),
}

/// A sandbox as clients of the gateway know it.
pub(super) struct Runtime {
    pub(super) id: String,
    key: String,
}

/// Where a sandbox of this machine is reached without the gateway.
pub(super) struct Inside {
    /// Of its server.
    port: u16,
    /// Of its first port for programs.
    pub(super) work: u16,
}

impl Inside {
    /// A connection to the server of the sandbox.
    pub(super) fn client(&self, sandbox: &Runtime) -> anyhow::Result<Client> {
        Ok(Client::connect(self.port)?.below("", ("x-session-api-key", &sandbox.key)))
    }
}

/// A gateway that runs. It and its sandboxes are gone when this is dropped.
pub(super) struct Gateway {
    child: Child,
    binary: PathBuf,
    pub(super) port: u16,
    key: String,
    /// Home, state and temporary files of the gateway and its sandboxes.
    home: TempDir,
    has_ended: bool,
}

impl Gateway {
    /// Starts one with these flags beside those that every one has.
    pub(super) fn start(binary: &Path, engine: &Engine, flags: &[&str]) -> anyhow::Result<Self> {
        let (home, binary) = (tempfile::tempdir()?, binary.canonicalize()?);
        let place = home.path().canonicalize()?;
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let key = random.map(|byte| format!("{byte:02x}")).concat();
        fs::write(place.join("key"), &key)?;
        fs::create_dir(place.join("tmp"))?;
        let mut command = Command::new(&binary);
        command.args(["gateway", "--port", "0", "--key-file"]).arg(place.join("key")).args(flags);
        // If this program is interrupted, so is the gateway, which is of its process group; the sandboxes then end by themselves.
        command.args(["--ttl", "1h"]);
        // Nothing of the user is read or written, and a slow `~/.bashrc` does not count.
        command.env_clear().env("PATH", std::env::var("PATH")?).env("HOME", &place).env("XDG_STATE_HOME", &place);
        command.env("TMPDIR", place.join("tmp")).env("LOG_LEVEL", "warning");
        if let Engine::Docker(address) = engine {
            command.args(["--runtime", "docker"]).env("DOCKER_HOST", address);
            command.env("SANDBOX_RUNTIME_CONTAINER_IMAGE", crate::containers::IMAGE);
        }
        command.current_dir(&place).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(place.join("log"))?);
        let child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let mut gateway = Self { child, binary, port: 0, key, home, has_ended: false };
        gateway.port = gateway.address()?;
        Ok(gateway)
    }

    /// Whether this program knows a flag of gateways.
    pub(super) fn has_flag(binary: &Path, flag: &str) -> anyhow::Result<bool> {
        let output = Command::new(binary).args(["gateway", "--help"]).stdin(Stdio::null()).output()?;
        anyhow::ensure!(output.status.success(), "`{} gateway --help`: {}", binary.display(), output.status);
        let help = String::from_utf8_lossy(&output.stdout);
        Ok(help.split_whitespace().any(|word| word == flag))
    }

    /// The port that its first line names.
    fn address(&mut self) -> anyhow::Result<u16> {
        let output = self.child.stdout.take().context("the gateway has no standard output")?;
        let (sender, told) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(output).read_line(&mut line);
            // Nobody listens any more if it came too late.
            let _sent = sender.send(read.map(|_| line));
        });
        let line = told.recv_timeout(LIMIT).context("the gateway did not say where it listens")??;
        let port = line.trim().strip_prefix("listening on http://127.0.0.1:").and_then(|port| port.parse().ok());
        port.with_context(|| format!("the gateway did not start: {line}{}", self.log()))
    }

    /// What it has written for people.
    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// A connection for requests of the interface.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(self.port)?.below("", ("x-api-key", &self.key)))
    }

    /// A connection to the server of a sandbox, through the gateway.
    pub(super) fn client_of(&self, sandbox: &Runtime) -> anyhow::Result<Client> {
        let prefix = format!("/{}", sandbox.id);
        Ok(Client::connect(self.port)?.below(&prefix, ("x-session-api-key", &sandbox.key)))
    }

    /// A sandbox whose server answers.
    pub(super) fn sandbox(&self, session: &str) -> anyhow::Result<Runtime> {
        start(&mut self.client()?, session)
    }

    /// Where a sandbox of this machine is, as its engine knows it.
    pub(super) fn inside(&self, sandbox: &Runtime) -> anyhow::Result<Inside> {
        let options = sandboxes::options(self.home.path(), &self.binary)?;
        let local = Local::new(LocalOptions { state: self.state(), ..options })?;
        let id = SandboxId::new(&sandbox.id)?;
        let found = tokio::runtime::Runtime::new()?.block_on(local.find(&id))?;
        let found = found.with_context(|| format!("the engine does not know the sandbox {id}"))?;
        anyhow::ensure!(
            found.session_key.as_ref().map(Secret::expose) == Some(&sandbox.key),
            "the sandbox {id} has another key than the gateway told"
        );
        let port = found.url.as_deref().and_then(|url| url.rsplit_once(':')?.1.parse().ok());
        let work = found.ports.get("work-1").copied();
        let (port, work) = port.zip(work).with_context(|| format!("the sandbox {id} has no ports"))?;
        Ok(Inside { port, work })
    }

    fn state(&self) -> PathBuf {
        self.home.path().join("gloveport/local")
    }

    /// Resident memory in bytes.
    pub(super) fn resident(&self) -> anyhow::Result<u64> {
        let (resident, _) = process::resident(self.child.id()).context("the gateway has ended")?;
        Ok(resident)
    }

    /// Lets its largest resident memory be that of now.
    pub(super) fn forget_peak(&self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        fs::write(&path, "5").with_context(|| format!("cannot reset the largest memory of the gateway in {path}"))
    }

    /// Its largest resident memory since then, in bytes.
    pub(super) fn peak(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a process without VmHWM")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }

    /// Ends all sandboxes and the gateway; gives what is left of them.
    pub(super) fn end(mut self) -> anyhow::Result<usize> {
        self.finish()
    }

    fn finish(&mut self) -> anyhow::Result<usize> {
        self.has_ended = true;
        let ids = self.sandboxes()?;
        in_parallel(self, ids.len(), |client, number| stop(client, &ids[number]))?;
        let runtimes = self.sandboxes()?.len();
        let status = self.terminate()?;
        anyhow::ensure!(status.success(), "the gateway ended with {status}: {}", self.log());
        let ended = Instant::now();
        while !self.servers().is_empty() && ended.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(5));
        }
        let places = ["sandboxes", "new", "old"].map(|name| self.state().join(name));
        let files = places.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().count();
        Ok(runtimes + files + self.servers().len())
    }

    fn sandboxes(&self) -> anyhow::Result<Vec<String>> {
        let (status, answer) = self.client()?.request("GET", "/list", b"")?;
        anyhow::ensure!(status == 200, "/list: status {status}: {}", String::from_utf8_lossy(&answer));
        let answer: Value = serde_json::from_slice(&answer)?;
        let runtimes = answer.get("runtimes").and_then(Value::as_array).context("/list gives no list")?;
        let id = |runtime: &Value| Some(runtime.get("runtime_id")?.as_str()?.to_owned());
        runtimes.iter().map(id).collect::<Option<_>>().context("/list has a sandbox without an id")
    }

    /// Asks the gateway to end, and waits until it has.
    fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            anyhow::ensure!(began.elapsed() < LIMIT, "the gateway did not end within {LIMIT:?}");
            thread::sleep(LOOK);
        }
    }

    /// Servers of its sandboxes on this machine.
    fn servers(&self) -> Vec<u32> {
        let state = format!("--state {}", self.state().display());
        let is_ours = |pid: &u32| process::command_line(*pid).is_some_and(|line| line.contains(&state));
        process::all().into_iter().filter(is_ours).collect()
    }

    /// Ends whatever is left of its sandboxes on this machine.
    fn kill(&self) {
        let servers = self.servers();
        let below = servers.iter().flat_map(|pid| process::descendants(*pid));
        let all: Vec<u32> = servers.iter().copied().chain(below).collect();
        for pid in all.into_iter().filter_map(|pid| i32::try_from(pid).ok().and_then(Pid::from_raw)) {
            // It may have ended with the one above it.
            let _gone = kill_process(pid, Signal::KILL);
        }
    }
}

impl Drop for Gateway {
    /// Ends a gateway whose measurement has failed, and its sandboxes.
    fn drop(&mut self) {
        if !self.has_ended && matches!(self.child.try_wait(), Ok(None)) {
            // What it cannot do any more is done below.
            let _left = self.finish();
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = self.child.kill();
            let _status = self.child.wait();
        }
        self.kill();
    }
}

/// Starts a sandbox, and waits until its server answers.
pub(super) fn start(client: &mut Client, session: &str) -> anyhow::Result<Runtime> {
    let body = json!({"session_id": session}).to_string();
    let (status, answer) = client.request("POST", "/start", body.as_bytes())?;
    anyhow::ensure!(status == 200, "/start of {session}: status {status}: {}", String::from_utf8_lossy(&answer));
    let answer: Value = serde_json::from_slice(&answer)?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let (id, key) = text("runtime_id").zip(text("session_api_key")).context("/start tells no id or no key")?;
    let (path, began) = (format!("/{id}/alive"), Instant::now());
    loop {
        let (status, answer) = client.request("GET", &path, b"")?;
        if status == 200 {
            return Ok(Runtime { id, key });
        }
        let answer = String::from_utf8_lossy(&answer);
        anyhow::ensure!(began.elapsed() < LIMIT, "{path} is not there after {LIMIT:?}: status {status}: {answer}");
        thread::sleep(LOOK);
    }
}

/// Ends a sandbox.
pub(super) fn stop(client: &mut Client, id: &str) -> anyhow::Result<()> {
    let body = json!({"runtime_id": id}).to_string();
    let (status, answer) = client.request("POST", "/stop", body.as_bytes())?;
    anyhow::ensure!(status == 200, "/stop of {id}: status {status}: {}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// Does so many things, each with one of [`AT_ONCE`] connections to the gateway; gives their results in order.
pub(super) fn in_parallel<T: Send>(
    gateway: &Gateway,
    count: usize,
    work: impl Fn(&mut Client, usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let turn = |first: usize| {
        let mut client = gateway.client()?;
        let numbers = (first..count).step_by(AT_ONCE);
        numbers.map(|number| Ok((number, work(&mut client, number)?))).collect::<anyhow::Result<Vec<_>>>()
    };
    let turn = &turn;
    let done = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE.min(count)).map(|first| scope.spawn(move || turn(first))).collect();
        join(threads)
    })?;
    let mut done: Vec<(usize, T)> = done.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// The results of all threads, or the first failure.
pub(super) fn join<T>(threads: Vec<ScopedJoinHandle<'_, anyhow::Result<T>>>) -> anyhow::Result<Vec<T>> {
    let joined = threads.into_iter().map(ScopedJoinHandle::join);
    joined.map(|result| result.map_err(|_| anyhow::anyhow!("a thread of the measurement failed"))?).collect()
}
