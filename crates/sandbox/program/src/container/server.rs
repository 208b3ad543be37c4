//! `container-server`: what the runtimes `docker` and `kubernetes` start in a container (`gloveport_contract::container`).

use std::{
    collections::BTreeMap,
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
use gloveport_contract::container::{
    ABANDONED, CLAIM, CLAIMED, Claimed, EXPIRED, INPUT, Input, KEY, KeptClaim, PORT, STATE, UNRECORDED, UNUSED,
};
use gloveport_contract::recorder::Recorder;
use gloveport_executor::Executor;
use gloveport_server::{Claim, DrainEnd, Occupancy, Origins, ServerOptions, SessionKey, wait_for_claim};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, wait},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::records::{End, Records};
use crate::{
    Owner, audit,
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
    /// End after this many seconds, whatever the clock of this machine says.
    #[arg(long, value_name = "SECONDS", conflicts_with = "expires")]
    time_to_live: Option<f64>,
    /// End when nobody has asked anything for this many seconds.
    #[arg(long, value_name = "SECONDS")]
    idle_stop: Option<f64>,
    /// Read a line with secrets from standard input first.
    #[arg(long)]
    input: bool,
    /// Wait until somebody who has the key says what the sandbox is for.
    #[arg(long, conflicts_with_all = ["plugin", "expires", "time_to_live", "idle_stop", "input", "lifeline"])]
    claimed: bool,
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

/// What a server is for.
struct Purpose {
    key: String,
    environment: BTreeMap<String, String>,
    secrets: BTreeMap<String, String>,
    /// Who records what happens, if anybody does.
    audit: Option<Recorder>,
    plugins: Vec<String>,
    /// When it ends, whatever it does.
    end: Option<Instant>,
    idle_stop: Option<f64>,
    /// Who waits for the server, and where it listens already.
    claim: Option<(Claim, TcpListener)>,
}

impl Purpose {
    /// What a claim says.
    fn of(claimed: Claimed, claim: Option<(Claim, TcpListener)>) -> Self {
        let Claimed { session_key, environment, secrets, plugins, time_to_live, idle_stop } = claimed;
        Self {
            key: session_key,
            environment,
            secrets,
            audit: None,
            plugins,
            end: after(time_to_live),
            idle_stop,
            claim,
        }
    }
}

pub(crate) async fn serve(arguments: ServerArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let stop = tools::stop_signal()?;
    let mut stdin = BufReader::new(tokio::io::stdin());
    let purpose = tokio::select! {
        purpose = purpose(&arguments, &mut stdin, &stop) => purpose?,
        () = stop.cancelled() => None,
    };
    let Some(mut purpose) = purpose else {
        if stop.is_cancelled() {
            return Ok(ExitCode::SUCCESS);
        }
        tracing::info!("nobody needs the sandbox any more");
        return Ok(exit(ABANDONED));
    };
    let unrecorded = End::new();
    if let Some(recorder) = purpose.audit.take() {
        let recorded = tokio::select! {
            recorded = recorded(recorder, unrecorded.clone(), &arguments.workspace, &purpose.secrets) => recorded,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        };
        if let Err(error) = recorded {
            tracing::error!(error = format!("{error:#}"), "nothing can be recorded, so the sandbox does not start");
            return Ok(exit(UNRECORDED));
        }
    }
    let claim = purpose.claim.take();
    let key = SessionKey::new(std::mem::take(&mut purpose.key));
    let (end, idle_stop) = (purpose.end, purpose.idle_stop.and_then(seconds));
    let started = start(&arguments, purpose, owner).await;
    let ((executor, origins), listener) = match (started, claim) {
        (Ok(made), Some((claim, listener))) => {
            claim.fulfil();
            (made, listener)
        }
        // Until here connections are refused: a caller takes the first answer as the sign that everything is ready.
        (Ok(made), None) => (made, listen(arguments.port).await?),
        (Err(error), claim) => {
            if let Some((claim, _)) = claim {
                claim.refuse(format!("{error:#}"));
            }
            return Err(error);
        }
    };
    tracing::info!(port = arguments.port, "ready");
    let occupancy = Arc::new(Occupancy::limited(idle_stop));
    let options = ServerOptions {
        session_key: Some(key),
        origins,
        occupancy: Arc::clone(&occupancy),
        ..ServerOptions::default()
    };
    let closing = CancellationToken::new();
    let server = gloveport_server::serve(listener, Arc::clone(&executor), options, closing.clone(), DRAIN);
    // A time that no clock can show is never.
    let expires = arguments.expires.and_then(seconds).and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    let watch = async {
        let (code, reason) = tokio::select! {
            () = stop.cancelled() => (0, "it was told to end".to_owned()),
            () = owner.lost() => (1, owner::LOST.to_owned()),
            () = ended(&mut stdin, arguments.lifeline) => (ABANDONED, "its backend has ended".to_owned()),
            () = expired(expires) => (EXPIRED, "its time is over".to_owned()),
            () = reached(end) => (EXPIRED, "its time is over".to_owned()),
            limit = unused(&occupancy, &executor) => {
                (UNUSED, format!("nobody used it for {} s", limit.as_secs_f64()))
            }
        };
        tracing::info!(reason, "the server ends");
        unrecorded.is_near(code);
        closing.cancel();
        (code, reason)
    };
    let (drained, (code, reason)) = tokio::join!(server, watch);
    executor.close().await;
    audit::end(&reason);
    if let DrainEnd::CutOff { open } = drained? {
        tracing::info!(open, "requests were cut off");
    }
    Ok(exit(code))
}

/// Has everything recorded from now on, and that the sandbox starts. What is secret is left out.
async fn recorded(
    recorder: Recorder,
    end: End,
    workspace: &Path,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let (workspace, variables) = (workspace.to_owned(), variables.clone());
    let begin = move || {
        let first = recorder.first.clone();
        // Nobody waits for what it tells: it does not outlive a failure.
        audit::begin(Records::connect(recorder, end)?, &first, &workspace, &variables).map(drop)
    };
    tokio::task::spawn_blocking(begin).await?
}

/// What the arguments, standard input or a claim say; none if nobody needs the server any more.
async fn purpose(
    arguments: &ServerArgs,
    stdin: &mut (impl AsyncBufRead + Unpin),
    stop: &CancellationToken,
) -> anyhow::Result<Option<Purpose>> {
    let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
    let key = key.with_context(|| format!("{KEY} is not set: everybody who reaches the port could run commands"))?;
    if arguments.claimed {
        return claimed(arguments.port, key, stop).await;
    }
    let input = if arguments.input { input(stdin).await? } else { Some(Input::default()) };
    Ok(input.map(|input| Purpose {
        key,
        environment: BTreeMap::new(),
        secrets: input.secrets,
        audit: input.audit,
        plugins: arguments.plugin.clone(),
        end: after(arguments.time_to_live),
        idle_stop: arguments.idle_stop,
        claim: None,
    }))
}

/// Waits for a claim that can be understood.
async fn claimed(port: u16, key: String, stop: &CancellationToken) -> anyhow::Result<Option<Purpose>> {
    if let Some(before) = kept_claim()? {
        return Ok(Some(Purpose::of(before, None)));
    }
    let listener = listen(port).await?;
    let key = SessionKey::new(key);
    tracing::info!(port, "waits for a session");
    loop {
        let Some(claim) = wait_for_claim(&listener, CLAIM, key.clone(), stop).await else { return Ok(None) };
        match serde_json::from_slice::<Claimed>(&claim.body) {
            Ok(claimed) if claimed.session_key.is_empty() => claim.refuse("its key is empty".to_owned()),
            Ok(claimed) => match keep_claim(&claimed) {
                Ok(()) => return Ok(Some(Purpose::of(claimed, Some((claim, listener))))),
                Err(error) => claim.refuse(format!("what a later start needs cannot be kept in {CLAIMED}: {error}")),
            },
            Err(error) => claim.refuse(format!("it cannot be understood: {error}")),
        }
    }
}

/// Keeps what the server was told, where its container has a place for that.
fn keep_claim(claimed: &Claimed) -> io::Result<()> {
    if !Path::new(STATE).is_dir() {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let until = claimed.time_to_live.map(|time| now.as_secs_f64() + time);
    let text = serde_json::to_vec(&serde_json::json!({"claimed": claimed, "until": until}))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(CLAIMED);
    match file.and_then(|mut file| file.write_all(&text)) {
        // The engine makes such a container anew, and does not start it again.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        other => other,
    }
}

/// What the server was told before its container was stopped.
fn kept_claim() -> anyhow::Result<Option<Claimed>> {
    let text = match fs::read(CLAIMED) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {CLAIMED}")),
    };
    let KeptClaim { claimed, until } = serde_json::from_slice(&text).with_context(|| format!("{CLAIMED} is broken"))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time_to_live = until.map(|until| (until - now.as_secs_f64()).max(0.0));
    Ok(Some(Claimed { time_to_live, ..claimed }))
}

/// Starts the tools, and says whose pages may use them.
async fn start(arguments: &ServerArgs, purpose: Purpose, owner: &Owner) -> anyhow::Result<(Arc<Executor>, Origins)> {
    let mut options = tools::executor_options(owner, workspace(&arguments.workspace)?)?;
    let given: BTreeMap<String, String> = purpose.environment.into_iter().chain(purpose.secrets).collect();
    options.environment.retain(|(name, _)| name != KEY && !given.keys().any(|given| name == given.as_str()));
    options
        .environment
        .extend(given.into_iter().filter(|(name, _)| name != KEY).map(|(name, value)| (name.into(), value.into())));
    let origins = options.environment.iter().find(|(name, _)| name == tools::ALLOWED_ORIGINS);
    let origins = tools::origins(origins.and_then(|(_, value)| value.to_str()), true)?;
    options.plugins = plugins::asked(&purpose.plugins, &options.environment)?;
    options.startup_commands.push(tools::NO_PAGER.to_owned());
    Ok((Executor::start(options).await?, origins))
}

async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number.max(0.0)).ok()
}

/// The moment that is so many seconds from now; none for never.
fn after(number: Option<f64>) -> Option<Instant> {
    Instant::now().checked_add(number.and_then(seconds)?)
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

/// Returns at this moment, if there is one.
async fn reached(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// The workspace, made if it is missing.
fn workspace(wanted: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(wanted).with_context(|| format!("cannot make the workspace {}", wanted.display()))?;
    tools::existing_directory(wanted)
}
