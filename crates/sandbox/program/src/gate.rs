//! `gate`: what stands beside a sandbox whose network is closed.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::AsFd as _,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_allow_list::Rules;
use gloveport_egress::{Egress, EgressLimits, EgressOptions, Forward, ProxyOptions};

use gloveport_sys::confined;

use crate::tools;

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
    /// What the proxy lets through: a host, `*.host`, an address or a network, each also with `:port`; may be repeated.
    #[arg(long = "allow", value_name = "RULE", requires = "way_out")]
    allowed: Vec<String>,
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
    let GateArgs { forwards, address, proxy, proxy_on_input, allowed, sandbox, dns } = arguments;
    let rules = Rules::parse(&allowed)?;
    let stop = tools::stop_signal()?;
    let limits = EgressLimits::default();
    let gate = if proxy_on_input {
        let listener = rustix::io::dup(std::io::stdin().as_fd()).context("cannot use standard input")?;
        Egress::on(listener.into(), rules, limits)?
    } else {
        let proxy = proxy.map(|listen| ProxyOptions { listen, rules });
        Egress::open(EgressOptions { address, forwards, proxy, sandbox, dns, limits }).await?
    };
    tracing::info!(forwards = ?gate.forwards(), proxy = ?gate.proxy(), "the gate is open");
    gate.serve(stop).await;
    Ok(ExitCode::SUCCESS)
}
