//! `gate`: what stands beside a sandbox whose network is closed.

pub(crate) mod change;
mod control;

use std::{
    fs::File,
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_allow_list::Rules;
use gloveport_audit::{self as audit, Log};
use gloveport_edge::EdgeConfig;
use gloveport_egress::{Edge, Egress, EgressLimits, EgressOptions, Forward, Policy, ProxyOptions, Roots};
use gloveport_sys::{confined, frames};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::tools;

/// Most bytes of what is put into requests, with what is trusted.
const MOST: u64 = 16 * 1024 * 1024;

#[derive(Debug, Args)]
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
    /// Address of the sandbox: the proxy serves it alone, and the ports everybody else.
    #[arg(long, value_name = "ADDRESS")]
    sandbox: Option<IpAddr>,
    /// Who looks names up, instead of whom the system asks.
    #[arg(long, value_name = "ADDRESS:PORT")]
    dns: Option<SocketAddr>,
}

impl GateArgs {
    /// Keeps this process to what it needs, where it stands between a sandbox and the machine itself. Call it while this is
    /// the only thread.
    pub(crate) fn close(&self) -> anyhow::Result<()> {
        if self.proxy_on_input {
            confined::close_all_but_the_network().context("cannot keep the gate from the files of this machine")?;
        }
        Ok(())
    }
}

pub(crate) async fn gate(arguments: GateArgs) -> anyhow::Result<ExitCode> {
    let GateArgs { forwards, address, proxy, proxy_on_input, more_on_output, allowed, control, sandbox, dns } =
        arguments;
    let policy = Policy::new(Rules::parse(&allowed)?);
    let stop = tools::stop_signal()?;
    let limits = EgressLimits::default();
    let gate = if proxy_on_input {
        let listener = rustix::io::dup(std::io::stdin().as_fd()).context("cannot use standard input")?;
        let mut edge = None;
        if more_on_output {
            let more = More::take().context("cannot take over what the gate needs")?;
            edge = more.edge.map(read_edge).transpose()?;
            if let Some((session, file)) = more.audit {
                let log = Log::over(file.into()).context("cannot use the audit log")?;
                audit::record_into(GateLog { session, log, stop: stop.clone() });
            }
            // It ends with this process.
            tokio::spawn(control::serve(control::ready(more.control)?, policy.clone()));
        }
        Egress::on(listener.into(), policy, edge, limits)?
    } else {
        if control {
            // It ends with this process.
            tokio::spawn(control::serve(control::ready(change::listen()?)?, policy.clone()));
        }
        let proxy = proxy.map(|listen| ProxyOptions { listen, policy, edge: None });
        Egress::open(EgressOptions { address, forwards, proxy, sandbox, dns, limits }).await?
    };
    tracing::info!(forwards = ?gate.forwards(), proxy = ?gate.proxy(), "the gate is open");
    gate.serve(stop).await;
    Ok(ExitCode::SUCCESS)
}

/// What a gate records. Where it cannot, it ends, and with it the way out.
struct GateLog {
    session: String,
    log: Log,
    stop: CancellationToken,
}

impl audit::Sink for GateLog {
    fn keep(&self, event: audit::Event) {
        if let Err(error) = self.log.add(&self.session, &event) {
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

/// What is put into requests.
fn read_edge(file: OwnedFd) -> anyhow::Result<Edge> {
    let mut text = Zeroizing::new(Vec::new());
    File::from(file).take(MOST).read_to_end(&mut text).context("cannot read what is put into requests")?;
    let config: EdgeConfig = serde_json::from_slice(&text).context("cannot understand what is put into requests")?;
    let roots = if config.roots.is_empty() { Roots::of_system() } else { Roots::of_text(&config.roots) };
    Ok(Edge::new(config, roots)?)
}
