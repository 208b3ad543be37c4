//! The level `gvisor`: a container whose server and tools run on a kernel of their own.
//!
//! The container is made as at the level `container`. In it a *front* stands where the server would: it has the machine's
//! sockets, which gVisor cannot take, starts gVisor's `runsc`, and tells the server on that kernel what the backend tells.
//!
//! ```text
//! backend ──── keeper ── front            process 1 of the container: ports of the machine, errands
//!                          └─ runsc       its kernel; all of the container's root directory is that of the sandbox
//!                               └─ server, tools
//! ```

use std::{
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use gloveport_contract::local::{
    directory::random_name,
    lifeline::{Lifeline, Reply, Request},
};
use gloveport_sys::{container::Place, errand};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, ChildStderr, Command},
    time::timeout,
};

use super::{
    inside::{Inside, SharedLog},
    ports,
    server::{PROGRAM, Waiting, backend_gone},
};
use crate::tools;

/// The name of `runsc` in the container.
pub(super) const RUNSC: &str = "/run/gloveport/runsc";
/// Where it keeps what it needs. On the sandbox's own kernel something empty is there.
pub(super) const ENGINE: &str = "/run/gloveport/engine";
/// The oldest release that is known to do. Terminals of older ones know no keys that interrupt.
const OLDEST: u32 = 20_240_729;
/// Time for the server to come up on its kernel.
const START: Duration = Duration::from_secs(30);
/// Time for its tools to be ready. The backend waits for less, as a rule, and ends it then.
const READY: Duration = Duration::from_mins(5);
/// Time for it to end by itself.
const END: Duration = Duration::from_secs(10);
/// Time for what has ended to say so.
const BRIEF: Duration = Duration::from_secs(1);
/// Bytes of complaints that are kept to be told.
const COMPLAINT: usize = 2048;
/// Longest line of its log, in bytes.
const LINE: u64 = 64 * 1024;
/// Bytes of `/dev/shm`.
const SHARED: &str = "size=512m";
/// Most processes and threads, where nothing else is asked for. Each takes about 2 MiB of the machine.
const PROCESSES: u64 = 1024;
/// Those of the machine that may be behind one of them, and behind none.
const BEHIND: (u64, u64) = (3, 1024);
/// What root on that kernel may do, as in a container.
const RIGHTS: [&str; 6] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE"];

/// Why a server does not come up on a kernel of its own.
type Missing = String;

/// A command that `runsc` runs on a kernel of its own, with all that this container has.
fn command(arguments: &[&str], processes: Option<u64>) -> io::Result<Command> {
    std::fs::write(Path::new(ENGINE).join("config.json"), bundle(arguments, processes).to_string())?;
    let mut command = Command::new(RUNSC);
    command.arg("--root").arg(Path::new(ENGINE).join("state"));
    // Files are changed by others on the machine as well, and nothing that is changed inside is kept from them.
    command.args(["--rootless", "--network=host", "--ignore-cgroups", "--file-access=shared", "--overlay2=none"]);
    // Its sockets have this name wherever the network is that of the machine.
    command.arg("run").arg("--bundle").arg(ENGINE).arg(format!("gloveport-{}", random_name()?));
    command.kill_on_drop(true);
    Ok(command)
}

/// What is run, as the runtime specification of the Open Container Initiative has it.
fn bundle(arguments: &[&str], processes: Option<u64>) -> Value {
    let environment: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    let limit = |kind: &str, most: u64| json!({ "type": kind, "soft": most, "hard": most });
    let mount = |place: &str, kind: &str, options: &[&str]| json!({ "destination": place, "type": kind, "source": kind, "options": options });
    let namespaces: Vec<Value> = ["pid", "ipc", "uts", "mount"].iter().map(|kind| json!({ "type": kind })).collect();
    json!({
        "ociVersion": "1.0.0",
        "process": {
            // Who runs `runsc` is root on its kernel, and nobody else is there.
            "user": { "uid": 0, "gid": 0 },
            "args": arguments,
            "env": environment,
            "cwd": "/",
            "noNewPrivileges": true,
            "capabilities": { "bounding": RIGHTS, "effective": RIGHTS, "permitted": RIGHTS },
            "rlimits": [limit("RLIMIT_CORE", 0), limit("RLIMIT_NPROC", processes.unwrap_or(PROCESSES))],
        },
        "root": { "path": "/" },
        "hostname": rustix::system::uname().nodename().to_string_lossy(),
        "mounts": [
            mount("/proc", "proc", &[]),
            mount("/dev/shm", "tmpfs", &["nosuid", "nodev", "mode=1777", SHARED]),
            mount(ENGINE, "tmpfs", &["ro", "nosuid", "nodev", "noexec", "size=4k"]),
        ],
        "linux": { "namespaces": namespaces },
    })
}

/// Whether this `runsc` is known to do.
async fn check() -> Result<(), Missing> {
    let mut command = Command::new(RUNSC);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(END, command.output()).await.map_err(|_| "`runsc --version` does not answer".to_owned())?;
    let output = output.map_err(|error| format!("`runsc` cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or_default();
    match release(version) {
        Some(date) if date < OLDEST => Err(format!(
            "`runsc` of {date} is too old: keys do not interrupt programs on it; install one of {OLDEST} or later \
             (https://gvisor.dev/docs/user_guide/install)"
        )),
        Some(_) => Ok(()),
        None => Err(format!("`runsc --version` says {version:?}, which names no release; is it gVisor's?")),
    }
}

/// The day of a release: `runsc version release-20240729.0`, `runsc version 0.0~20240729.0`.
fn release(version: &str) -> Option<u32> {
    let numbers = version.split(|c: char| !c.is_ascii_digit());
    numbers.filter(|number| number.len() == 8).find_map(|number| number.parse().ok())
}

/// Runs a program on such a kernel that does nothing.
pub(super) async fn try_it() -> Result<(), Missing> {
    check().await?;
    let mut command =
        command(&[PROGRAM, "--version"], None).map_err(|error| format!("`runsc` cannot be told: {error}"))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("`runsc` cannot be started: {error}"))?;
    let output = timeout(START, child.wait_with_output()).await;
    let output = output.map_err(|_| format!("`runsc` starts nothing within {} s", START.as_secs()))?;
    let output = output.map_err(|error| format!("`runsc` is lost: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(ended(output.status, &String::from_utf8_lossy(&output.stderr)))
}

fn ended(status: ExitStatus, complaint: &str) -> Missing {
    let last: Vec<&str> = complaint.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    format!(
        "`runsc` ended with {status}: {}",
        if last.is_empty() { "it does not say why".to_owned() } else { last.join("; ") }
    )
}

/// A server on a kernel of its own, that waits for its session.
struct Running {
    engine: Child,
    lifeline: Lifeline,
    /// Where it listens.
    port: u16,
}

impl Running {
    async fn start(inside: &Inside, log: SharedLog, processes: Option<u64>) -> Result<Self, Missing> {
        let checked = tokio::spawn(check());
        let failed = |error: io::Error| format!("`runsc` cannot be started: {error}");
        let (ours, its) = UnixStream::pair().map_err(failed)?;
        let (errands, its_errands) = UnixStream::pair().map_err(failed)?;
        let words = [PROGRAM, "sandbox-server", "--state", "/", "--on-own-kernel"];
        let mut command = command(&words, processes).map_err(failed)?;
        command.stdin(OwnedFd::from(its)).stdout(OwnedFd::from(its_errands)).stderr(Stdio::piped());
        let mut engine = command.spawn().map_err(failed)?;
        // They were given away.
        drop(command);
        let output = engine.stderr.take().ok_or_else(|| "`runsc` has no standard error output".to_owned())?;
        let complaint = tokio::spawn(pass_on_log(output, log));
        let inside = inside.clone();
        let serve = move || errand::serve(&errands, |errand| inside.pass_on(&errand));
        thread::Builder::new().name("gloveport-errands".to_owned()).spawn(serve).map_err(failed)?;
        let mut lifeline = Lifeline::new(ours).map_err(failed)?;
        let asks = Request::Listen { host: IpAddr::V4(Ipv4Addr::LOCALHOST), reserve: 0 };
        let talk = async {
            lifeline.send(&asks).await?;
            lifeline.receive::<Reply>().await
        };
        let told = timeout(START, talk).await;
        let is_answered = matches!(told, Ok(Ok(Some(_))));
        let status = if is_answered { None } else { timeout(BRIEF, engine.wait()).await.ok() };
        // One that is too old may end for other reasons than it says.
        checked.await.map_err(|error| format!("`runsc --version` is lost: {error}"))??;
        if let Some(Ok(status)) = status {
            let complaint = timeout(BRIEF, complaint).await;
            return Err(ended(status, &complaint.ok().and_then(Result::ok).unwrap_or_default()));
        }
        match told {
            Ok(Ok(Some(Reply::Listening { port, .. }))) => Ok(Self { engine, lifeline, port }),
            Ok(Ok(Some(Reply::Failed { reason } | Reply::Refused { reason }))) => Err(reason),
            Ok(Ok(other)) => Err(format!("the server on its kernel answers {other:?}")),
            Ok(Err(error)) => Err(format!("the server on its kernel cannot be understood: {error}")),
            Err(_) => Err(format!("the server does not come up on its kernel within {} s", START.as_secs())),
        }
    }

    /// Waits for its end, which was asked for.
    async fn finish(mut self) {
        drop(self.lifeline);
        if timeout(END, self.engine.wait()).await.is_err() {
            tracing::warn!("a kernel does not end by itself, and is killed");
            if let Err(error) = self.engine.kill().await {
                tracing::warn!(%error, "it cannot be killed; it ends with the container");
            }
        }
    }
}

/// Passes on what is logged on that kernel, and gives the last of it.
async fn pass_on_log(output: ChildStderr, mut log: SharedLog) -> String {
    let mut output = BufReader::new(output);
    let (mut line, mut last) = (Vec::new(), String::new());
    while (&mut output).take(LINE).read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
        if let Err(error) = log.write_all(&line) {
            tracing::debug!(%error, "its log cannot be written");
        }
        last.push_str(&String::from_utf8_lossy(&line));
        if last.len() > COMPLAINT {
            let from = last.ceil_char_boundary(last.len() - COMPLAINT);
            last.drain(..from);
        }
        line.clear();
    }
    last
}

/// The life of a front.
pub(crate) async fn front(inside: Inside, log: SharedLog, processes: Option<u64>) -> anyhow::Result<ExitCode> {
    let socket = Inside::socket().context("this command is started by the runtime `local`")?;
    let stop = tools::stop_signal()?;
    let mut running = match Running::start(&inside, log, processes).await {
        Ok(running) => running,
        Err(reason) => {
            tracing::error!(reason, "there is no kernel of its own");
            if let Err(error) = (Reply::Refused { reason }).tell(socket) {
                tracing::debug!(%error, "the backend does not listen");
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    let lifeline = Lifeline::new(socket).context("cannot use the socket to the backend")?;
    let mut waiting = Waiting::new(inside.clone(), lifeline, stop.clone());
    let Some(start) = waiting.start().await? else {
        running.finish().await;
        inside.remove().context("cannot remove the sandbox")?;
        return Ok(ExitCode::SUCCESS);
    };
    let keep_alive = start.keep_alive;
    let reply = match lead(&mut waiting, running.port) {
        Ok(()) => {
            running.lifeline.send(&Request::Start(start)).await.context("its server does not listen")?;
            match timeout(READY, running.lifeline.receive()).await {
                Ok(reply) => reply
                    .context("its server cannot be understood")?
                    .unwrap_or_else(|| Reply::Failed { reason: "its server has ended".to_owned() }),
                Err(_) => Reply::Failed { reason: format!("its tools are not ready within {} s", READY.as_secs()) },
            }
        }
        Err(error) => Reply::Failed { reason: format!("{error:#}") },
    };
    let is_ready = matches!(reply, Reply::Ready);
    waiting.tell(&reply).await;
    if !is_ready {
        running.finish().await;
        inside.remove().context("cannot remove the sandbox")?;
        return Ok(ExitCode::FAILURE);
    }
    let nobody = tokio_util::sync::CancellationToken::new();
    tokio::select! {
        ended = running.engine.wait() => {
            tracing::info!(ended = ended.map(|status| status.to_string()).unwrap_or_default(), "the sandbox's kernel has ended");
            return Ok(ExitCode::SUCCESS);
        }
        () = stop.cancelled() => {
            running.lifeline.send(&Request::Stop).await.context("its server does not listen")?;
            if timeout(END, running.engine.wait()).await.is_err() {
                inside.tell_ended("its server was told to end, and did not")?;
            }
        }
        () = backend_gone(&mut waiting.lifeline, keep_alive, &nobody) => {
            running.finish().await;
            // It has done so, unless it was killed.
            inside.remove().context("cannot remove the sandbox")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Leads the ports of the sandbox to where its programs listen.
fn lead(waiting: &mut Waiting, port: u16) -> anyhow::Result<()> {
    waiting.open_ports()?;
    let listener = waiting.listener.take().context("it was not told to listen")?;
    ports::lead_to(listener, port, waiting.stop.clone());
    Ok(())
}

/// Processes and threads of the machine that a container must have for it.
pub(super) fn processes(inside: Option<u64>) -> u64 {
    inside.unwrap_or(PROCESSES).saturating_mul(BEHIND.0).saturating_add(BEHIND.1)
}

/// What of it a container has.
pub(super) fn places(runsc: &Path, engine: PathBuf) -> [Place; 2] {
    [
        Place { target: RUNSC.into(), source: runsc.to_owned(), is_written: false },
        Place { target: ENGINE.into(), source: engine, is_written: true },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_day_however_it_is_packaged() {
        assert_eq!(release("runsc version release-20240729.0"), Some(20_240_729));
        assert_eq!(release("runsc version 0.0~20221219.0"), Some(20_221_219));
        assert_eq!(release("runsc version VERSION_MISSING"), None);
    }

    #[test]
    fn what_runs_has_few_rights_and_does_not_see_what_its_engine_keeps() {
        let bundle = bundle(&["/program", "--flag"], Some(7));
        assert_eq!(bundle["process"]["args"], json!(["/program", "--flag"]));
        assert_eq!(bundle["process"]["capabilities"]["bounding"], json!(RIGHTS));
        assert_eq!(bundle["process"]["noNewPrivileges"], true);
        assert_eq!(bundle["process"]["rlimits"][1]["hard"], 7);
        let hidden = bundle["mounts"].as_array().unwrap().iter().find(|mount| mount["destination"] == ENGINE).unwrap();
        assert_eq!(hidden["type"], "tmpfs");
    }

    #[test]
    fn an_engine_that_fails_is_told_with_its_last_words() {
        let status = std::os::unix::process::ExitStatusExt::from_raw(128 << 8);
        let told = ended(status, "one\ntwo\n\nthree\nfour\n");
        assert!(told.contains("two; three; four") && !told.contains("one"), "{told}");
        assert!(ended(status, "\n").contains("does not say why"));
    }
}
