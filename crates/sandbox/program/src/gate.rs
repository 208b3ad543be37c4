//! `gate`: what stands beside a sandbox whose network is closed.

pub(crate) mod change;
mod control;
mod given;
mod recorder;
mod rules;

use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_allow_list::Rules;
use gloveport_audit::{self as audit, Log};
use gloveport_contract::gate::LONGEST_EDGE;
use gloveport_edge::EdgeConfig;
use gloveport_egress::{Edge, Egress, EgressLimits, EgressOptions, Forward, Policy, ProxyOptions, Roots};
use gloveport_sys::{again::start_again, confined, frames};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use self::{
    given::Given,
    recorder::{Kept, Recorder},
    rules::KeptRules,
};
use crate::tools;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct GateArgs {
    /// Port of the gate, and the port of the sandbox that it leads to; may be repeated.
    #[arg(long = "forward", value_name = "PORT=HOST:PORT")]
    forwards: Vec<Forward>,
    /// Address that the ports of --forward are on.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    address: IpAddr,
    /// Address and port of the HTTP proxy for the sandbox; without it there is none.
    #[arg(long, value_name = "ADDRESS:PORT", group = "way_out")]
    proxy: Option<SocketAddr>,
    /// Be that proxy on the port that standard input listens on, and nothing else.
    #[arg(long, group = "way_out", conflicts_with_all = ["forwards", "sandbox", "dns"])]
    proxy_on_input: bool,
    /// What else it needs comes over the socket that standard output is.
    #[arg(long, requires = "proxy_on_input")]
    more_on_output: bool,
    /// What the proxy lets through: a host, `*.host`, an address or a network, each also with `:port`; may be repeated.
    #[arg(long = "allow", value_name = "RULE", requires = "way_out")]
    allowed: Vec<String>,
    /// Take changes of the rules from who is in the network of the gate, as nobody of the sandbox is.
    #[arg(long, requires = "proxy", conflicts_with = "proxy_on_input")]
    control: bool,
    /// A line of JSON on standard input has what the proxy puts into requests; it is read before any port is open.
    #[arg(long, requires = "proxy", requires = "secret_hosts", conflicts_with = "proxy_on_input")]
    edge_on_input: bool,
    /// Whom that is for; if it does not come, nothing goes there. May be repeated.
    #[arg(long = "secret-host", value_name = "RULE", requires = "edge_on_input")]
    secret_hosts: Vec<String>,
    /// Record what happens in this file.
    #[arg(long, value_name = "FILE", requires = "session", conflicts_with = "proxy_on_input")]
    audit: Option<PathBuf>,
    /// The session of what is recorded.
    #[arg(long, value_name = "ID", requires = "audit")]
    session: Option<String>,
    /// Where the server of the sandbox says what it is about to do.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "audit", requires = "recorder_key")]
    recorder: Option<SocketAddr>,
    /// SHA-256 of the key that it says first.
    #[arg(long, value_name = "HASH", requires = "recorder")]
    recorder_key: Option<audit::Hash>,
    /// Address of the sandbox: the proxy serves it alone, and the ports everybody else.
    #[arg(long, value_name = "ADDRESS")]
    sandbox: Option<IpAddr>,
    /// Who looks names up, instead of whom the system asks.
    #[arg(long, value_name = "ADDRESS:PORT")]
    dns: Option<SocketAddr>,
    /// What has come over standard output.
    #[arg(skip)]
    taken: Option<Taken>,
}

impl GateArgs {
    /// Keeps this process to what it needs, where it stands between a sandbox and the machine itself, and returns in a copy of
    /// it, and in another one whenever that is killed. Call it while this is the only thread.
    pub(crate) fn close(&mut self) -> anyhow::Result<()> {
        if self.proxy_on_input {
            confined::close_all_but_the_network().context("cannot keep the gate from the files of this machine")?;
        }
        if self.more_on_output {
            let more = More::take().context("cannot take over what the gate needs")?;
            let rules = KeptRules::new().context("cannot keep the rules of the gate")?;
            let before = start_again(c"gloveport-again").context("cannot start the gate")?;
            self.taken = Some(Taken { more, rules, before });
        }
        if self.edge_on_input {
            tools::hide();
        }
        Ok(())
    }
}

pub(crate) async fn gate(mut arguments: GateArgs) -> anyhow::Result<ExitCode> {
    let stop = tools::stop_signal()?;
    let gate = if arguments.proxy_on_input {
        of_machine(arguments.taken.take(), &arguments.allowed, &stop)?
    } else {
        let policy = Policy::new(Rules::parse(&arguments.allowed)?);
        tokio::select! {
            gate = of_container(arguments, policy, &stop) => gate?,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        }
    };
    tracing::info!(forwards = ?gate.forwards(), proxy = ?gate.proxy(), "the gate is open");
    gate.serve(stop).await;
    Ok(ExitCode::SUCCESS)
}

/// The gate of a sandbox on this machine: a proxy on a port of the network of the sandbox.
fn of_machine(taken: Option<Taken>, allowed: &[String], stop: &CancellationToken) -> anyhow::Result<Egress> {
    let listener = rustix::io::dup(io::stdin().as_fd()).context("cannot use standard input")?;
    let Some(Taken { more, rules, before }) = taken else {
        let policy = Policy::new(Rules::parse(allowed)?);
        return Ok(Egress::on(listener.into(), policy, None, EgressLimits::default())?);
    };
    if before > 0 {
        tracing::warn!(before, "the gate was killed or has failed, and was started again; its connections have ended");
    }
    let policy = rules.policy(allowed)?;
    let edge = more.edge.map(read_edge).transpose()?;
    if let Some((session, file)) = more.audit {
        let log = Log::over(file.into()).context("cannot use the audit log")?;
        audit::record_into(GateLog { kept: Arc::new(Kept { session, log }), stop: stop.clone() });
    }
    // It ends with this process.
    tokio::spawn(control::serve(control::ready(more.control)?, policy.clone(), Some(rules)));
    Ok(Egress::on(listener.into(), policy, edge, EgressLimits::default())?)
}

/// The gate of a sandbox in a container, which is a container of its own beside it.
async fn of_container(arguments: GateArgs, policy: Policy, stop: &CancellationToken) -> anyhow::Result<Egress> {
    // The sandbox waits for this first.
    record(&arguments, stop).await?;
    let GateArgs { forwards, address, proxy, control, edge_on_input, secret_hosts, sandbox, dns, .. } = arguments;
    let (mut edge, mut lost) = (None, Rules::default());
    if edge_on_input {
        match given::take(&secret_hosts).await? {
            Given::Edge(given) => edge = Some(given),
            Given::Lost(hosts) => lost = hosts,
        }
    }
    if control {
        // It ends with this process.
        tokio::spawn(control::serve(control::ready(change::listen()?)?, policy.clone(), None));
    }
    let proxy = proxy.map(|listen| ProxyOptions { listen, policy, edge, lost });
    let limits = EgressLimits::default();
    Ok(Egress::open(EgressOptions { address, forwards, proxy, sandbox, dns, limits }).await?)
}

/// Records what the gate does, and what the server of the sandbox says, if anything is recorded.
async fn record(arguments: &GateArgs, stop: &CancellationToken) -> anyhow::Result<()> {
    let (Some(path), Some(session)) = (&arguments.audit, &arguments.session) else { return Ok(()) };
    let log = Log::open(path).with_context(|| format!("cannot use the audit log {}", path.display()))?;
    let kept = Arc::new(Kept { session: session.clone(), log });
    audit::record_into(GateLog { kept: Arc::clone(&kept), stop: stop.clone() });
    if let (Some(address), Some(key)) = (arguments.recorder, arguments.recorder_key) {
        let listener = Recorder::listen(address).await?;
        // It ends with this process.
        tokio::spawn(Recorder::new(kept, key, arguments.sandbox).serve(listener));
    }
    Ok(())
}

/// What a gate records. Where it cannot, it ends, and with it the way out.
struct GateLog {
    kept: Arc<Kept>,
    stop: CancellationToken,
}

impl audit::Sink for GateLog {
    fn keep(&self, event: audit::Event) {
        if let Err(error) = self.kept.add(&event) {
            tracing::error!(%error, "the audit log cannot be written, so the gate closes");
            self.stop.cancel();
        }
    }
}

/// What a gate is given by whoever starts it, beside what it listens on.
#[derive(Debug)]
pub(crate) struct More {
    /// Where it is told of other rules, and tells what it does.
    pub(crate) control: UnixListener,
    /// What it puts into requests, as JSON.
    pub(crate) edge: Option<OwnedFd>,
    /// Where it records what it does, and for which session.
    pub(crate) audit: Option<(String, OwnedFd)>,
}

/// What a gate has of that, and of the one that it takes the place of.
#[derive(Debug)]
struct Taken {
    more: More,
    rules: KeptRules,
    /// How many gates there were before it.
    before: u32,
}

/// What the descriptors are that come behind the first one.
#[derive(Debug, Serialize, Deserialize)]
struct Which {
    has_edge: bool,
    audited_session: Option<String>,
}

impl More {
    /// The socket that a gate finds it in.
    pub(crate) fn hand_over(self) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        let Self { control, edge, audit } = &self;
        let log = audit.as_ref().map(|(_, file)| file);
        let all: Vec<BorrowedFd<'_>> =
            [control.as_fd()].into_iter().chain(edge.iter().chain(log).map(AsFd::as_fd)).collect();
        let audited_session = audit.as_ref().map(|(session, _)| session.clone());
        frames::send(&ours, &Which { has_edge: edge.is_some(), audited_session }, &all)?;
        Ok(theirs.into())
    }

    fn take() -> io::Result<Self> {
        let socket = UnixStream::from(rustix::io::dup(io::stdout().as_fd())?);
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (which, all) = frames::receive::<Which>(&socket)?.ok_or_else(missing)?;
        let mut all = all.into_iter();
        let control = all.next().ok_or_else(missing)?.into();
        let edge = which.has_edge.then(|| all.next().ok_or_else(missing)).transpose()?;
        let log = |session| Ok::<_, io::Error>((session, all.next().ok_or_else(missing)?));
        Ok(Self { control, edge, audit: which.audited_session.map(log).transpose()? })
    }
}

/// What is put into requests. A gate before this one may have read it, too.
fn read_edge(file: OwnedFd) -> anyhow::Result<Edge> {
    let (mut file, mut text) = (File::from(file), Zeroizing::new(Vec::new()));
    let read = file.rewind().and_then(|()| file.take(LONGEST_EDGE).read_to_end(&mut text));
    read.context("cannot read what is put into requests")?;
    edge_of(&text)
}

fn edge_of(text: &[u8]) -> anyhow::Result<Edge> {
    let config: EdgeConfig = serde_json::from_slice(text).context("cannot understand what is put into requests")?;
    let roots = if config.roots.is_empty() { Roots::of_system() } else { Roots::of_text(&config.roots) };
    Ok(Edge::new(config, roots)?)
}
