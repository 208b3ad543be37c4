//! `gate`: what stands beside a sandbox whose network is closed.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ExitCode,
};

use clap::Args;
use gloveport_allow_list::Rules;
use gloveport_egress::{Egress, EgressLimits, EgressOptions, Forward, ProxyOptions};

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
    #[arg(long, value_name = "ADDRESS:PORT")]
    proxy: Option<SocketAddr>,
    /// What the proxy lets through: a host, `*.host`, an address or a network, each also with `:port`; may be repeated.
    #[arg(long = "allow", value_name = "RULE", requires = "proxy")]
    allowed: Vec<String>,
    /// Address of the sandbox: the proxy serves it alone, and the ports everybody else.
    #[arg(long, value_name = "ADDRESS")]
    sandbox: Option<IpAddr>,
    /// Who looks names up, instead of whom the system asks.
    #[arg(long, value_name = "ADDRESS:PORT")]
    dns: Option<SocketAddr>,
}

pub(crate) async fn gate(arguments: GateArgs) -> anyhow::Result<ExitCode> {
    let GateArgs { forwards, address, proxy, allowed, sandbox, dns } = arguments;
    let rules = Rules::parse(&allowed)?;
    let proxy = proxy.map(|listen| ProxyOptions { listen, rules });
    let stop = tools::stop_signal()?;
    let gate =
        Egress::open(EgressOptions { address, forwards, proxy, sandbox, dns, limits: EgressLimits::default() }).await?;
    tracing::info!(forwards = ?gate.forwards(), proxy = ?gate.proxy(), "the gate is open");
    gate.serve(stop).await;
    Ok(ExitCode::SUCCESS)
}
