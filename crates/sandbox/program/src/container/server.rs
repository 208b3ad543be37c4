//! `container-server`: what the runtime `docker` starts in a container (`gloveport_contract::container`).

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use clap::Args;
use gloveport_contract::container::{ABANDONED, EXPIRED, INPUT, Input, KEY, PORT, STATE, UNUSED};
use gloveport_executor::Executor;
use gloveport_server::{DrainEnd, Occupancy, ServerOptions, SessionKey};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, wait},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Owner,
    local::server::{expired, unused},
    owner, plugins,
    tools::{self, bind},
};

/// Time that requests in flight have to end.
const DRAIN: Duration = Duration::from_secs(1);
/// Longest line on standard input.
const LONGEST: u64 = 64 * 1024 * 1024;
/// How long that line is waited for.
const INPUT_LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Port to listen on, on all addresses.
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Directory that tools start in; made if it is missing.
    #[arg(long, value_name = "DIRECTORY")]
    workspace: PathBuf,
    /// A plugin to load; may be repeated.
    #[arg(long, value_name = "NAME")]
    plugin: Vec<String>,
    /// End at this time, in seconds since 1970.
    #[arg(long, value_name = "SECONDS")]
    expires: Option<f64>,
    /// End when nobody has asked anything for this many seconds.
    #[arg(long, value_name = "SECONDS")]
    idle_stop: Option<f64>,
    /// Read a line with secrets from standard input first.
    #[arg(long)]
    input: bool,
    /// End when standard input does.
    #[arg(long)]
    lifeline: bool,
}

/// As the first process of a container: starts the server as another one, passes signals on to it, and takes the exit codes
/// of processes that nobody else waits for. The kernel protects a first process from signals that would end any other.
pub(crate) fn init() -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut children = signal(SignalKind::child()).context("cannot listen for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let program = std::env::current_exe().context("cannot tell where this program is; is /proc mounted?")?;
        let server = Command::new(program).args(std::env::args_os().skip(1)).spawn();
        let server = server.context("cannot start the server")?;
        let server = i32::try_from(server.id()).ok().and_then(Pid::from_raw).context("the server has no id")?;
        loop {
            let passed_on = tokio::select! {
                _ = children.recv() => None,
                _ = terminate.recv() => Some(Signal::TERM),
                _ = interrupt.recv() => Some(Signal::INT),
                _ = hang_up.recv() => Some(Signal::HUP),
            };
            if let Some(signal) = passed_on {
                // It may have ended meanwhile, which the next turn tells.
                let _ended = kill_process(server, signal);
            }
            if let Some(code) = reap(server)? {
                return Ok(ExitCode::from(code));
            }
        }
    })
}

/// Takes the exit codes of all that has ended, and gives that of the server.
fn reap(server: Pid) -> anyhow::Result<Option<u8>> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == server => {
                let code = status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0));
                return Ok(Some(u8::try_from(code).unwrap_or(u8::MAX)));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(io::Error::from(error)).context("cannot wait for the server"),
        }
    }
}

pub(crate) async fn serve(arguments: ServerArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let stop = tools::stop_signal()?;
    let mut stdin = BufReader::new(tokio::io::stdin());
    let input = if arguments.input {
        tokio::select! {
            input = input(&mut stdin) => input?,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        }
    } else {
        Some(Input::default())
    };
    let Some(input) = input else {
        tracing::info!("nobody needs the sandbox any more");
        return Ok(exit(ABANDONED));
    };
    let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
    let key = key.with_context(|| format!("{KEY} is not set: everybody who reaches the port could run commands"))?;
    let workspace = workspace(&arguments.workspace)?;
    let mut options = tools::executor_options(owner, workspace)?;
    options.environment.retain(|(name, _)| name != KEY && !input.secrets.keys().any(|secret| name == secret.as_str()));
    options.environment.extend(input.secrets.into_iter().map(|(name, value)| (name.into(), value.into())));
    options.plugins = plugins::asked(&arguments.plugin, &options.environment)?;
    options.startup_commands.push(tools::NO_PAGER.to_owned());
    let executor = Executor::start(options).await?;
    // Until here connections are refused: a caller takes the first answer as the sign that everything is ready.
    let listener = bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, arguments.port))).await?;
    tracing::info!(port = arguments.port, "ready");
    let occupancy = Arc::<Occupancy>::default();
    let options = ServerOptions {
        session_key: Some(SessionKey::new(key)),
        occupancy: Arc::clone(&occupancy),
        ..ServerOptions::default()
    };
    let closing = CancellationToken::new();
    let server = gloveport_server::serve(listener, Arc::clone(&executor), options, closing.clone(), DRAIN);
    // A time that no clock can show is never.
    let seconds = |number: f64| Duration::try_from_secs_f64(number.max(0.0)).ok();
    let expires = arguments.expires.and_then(seconds).and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    let idle_stop = arguments.idle_stop.and_then(seconds);
    let watch = async {
        let (code, reason) = tokio::select! {
            () = stop.cancelled() => (0, "it was told to end".to_owned()),
            () = owner.lost() => (1, owner::LOST.to_owned()),
            () = ended(&mut stdin, arguments.lifeline) => (ABANDONED, "its backend has ended".to_owned()),
            () = expired(expires) => (EXPIRED, "its time is over".to_owned()),
            limit = unused(idle_stop, &occupancy, &executor) => {
                (UNUSED, format!("nobody used it for {} s", limit.as_secs_f64()))
            }
        };
        tracing::info!(reason, "the server ends");
        closing.cancel();
        code
    };
    let (drained, code) = tokio::join!(server, watch);
    executor.close().await;
    if let DrainEnd::CutOff { open } = drained? {
        tracing::info!(open, "requests were cut off");
    }
    Ok(exit(code))
}

fn exit(code: i64) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// The line of this start, or that of an earlier one; none if the backend is gone before.
async fn input(stdin: &mut (impl AsyncBufRead + Unpin)) -> anyhow::Result<Option<Input>> {
    match fs::read(INPUT) {
        Ok(text) => return serde_json::from_slice(&text).map(Some).with_context(|| format!("{INPUT} is broken")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {INPUT}")),
    }
    let mut line = Vec::new();
    let mut limited = stdin.take(LONGEST);
    let read = tokio::time::timeout(INPUT_LIMIT, limited.read_until(b'\n', &mut line)).await;
    read.with_context(|| format!("nothing came on standard input within {} s", INPUT_LIMIT.as_secs()))?
        .context("cannot read standard input")?;
    if !line.ends_with(b"\n") {
        return Ok(None);
    }
    let input: Input = serde_json::from_slice(&line).context("cannot understand the line on standard input")?;
    if Path::new(STATE).is_dir() {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(INPUT);
        let kept = file.and_then(|mut file| file.write_all(&line));
        kept.with_context(|| format!("cannot keep what a later start needs in {INPUT}"))?;
    }
    Ok(Some(input))
}

/// Ends with standard input, if that is a lifeline.
async fn ended(stdin: &mut (impl AsyncRead + Unpin), lifeline: bool) {
    let mut rest = [0; 256];
    while lifeline && !matches!(stdin.read(&mut rest).await, Ok(0) | Err(_)) {}
    if !lifeline {
        std::future::pending::<()>().await;
    }
}

/// The workspace, made if it is missing.
fn workspace(wanted: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(wanted).with_context(|| format!("cannot make the workspace {}", wanted.display()))?;
    tools::existing_directory(wanted)
}
