//! From a target to a connection: what is checked is what is connected to.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use rustix::net::sockopt;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    names::Names,
    policy::{Policy, Way},
    refusal::Refusal,
};
use gloveport_allow_list::{Host, Name, Target, is_closed};

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;
/// Whether the other machine lives is asked after this silence …
const PROBE_AFTER: Duration = Duration::from_mins(1);
/// … and again after this, four times.
const PROBE_AGAIN: Duration = Duration::from_secs(15);

/// Connects to what rules let through.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) policy: Policy,
    pub(crate) names: Names,
    /// Limit of everything until the connection is there.
    pub(crate) limit: Duration,
}

impl Reach {
    /// Connects to an address of the target that the rules let through.
    pub(crate) async fn connect(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let late = || Refusal::Late { target: target.clone(), limit: self.limit };
        let connected = timeout(self.limit, self.connect_at_leisure(target)).await.unwrap_or_else(|_| Err(late()));
        self.policy.note(target, !connected.as_ref().is_err_and(|refusal| refusal.denied().is_some()));
        connected
    }

    /// The same, for a connection that leads there then.
    pub(crate) async fn lead(&self, way: &Way, target: &Target) -> Result<TcpStream, Refusal> {
        let stream = self.connect(target).await?;
        let failed = |error: std::io::Error| Refusal::Connect { target: target.clone(), reason: error.to_string() };
        way.lead(target, stream.peer_addr().map_err(failed)?.ip(), &self.policy)?;
        Ok(stream)
    }

    async fn connect_at_leisure(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let addresses = self.allowed(target).await?;
        // One address that swallows packets must not use up the time of all.
        let share = self.limit / u32::try_from(addresses.len()).unwrap_or(1).max(1);
        let mut reason = String::new();
        for address in addresses {
            match timeout(share, TcpStream::connect(SocketAddr::new(address, target.port))).await {
                Ok(Ok(stream)) => {
                    ready(&stream);
                    return Ok(stream);
                }
                Ok(Err(error)) => reason = error.to_string(),
                Err(_) => reason = format!("no answer in {} s", share.as_secs()),
            }
        }
        Err(Refusal::Connect { target: target.clone(), reason })
    }

    /// The addresses that may be connected to; at least one.
    async fn allowed(&self, target: &Target) -> Result<Vec<IpAddr>, Refusal> {
        let now = self.policy.now();
        let rules = &now.allowed;
        let not_allowed = || Refusal::NotAllowed { target: target.clone(), rules: rules.clone() };
        if now.denies(target) {
            return Err(Refusal::Denied { target: target.clone() });
        }
        match &target.host {
            Host::Address(address) if rules.allow_address(*address, target.port) => Ok(vec![*address]),
            Host::Address(_) => Err(not_allowed()),
            Host::Name(name) => {
                let named = rules.allow_name(name, target.port);
                if !named && !rules.have_addresses(target.port) {
                    return Err(not_allowed());
                }
                let mut found = self.look_up(name, target).await?;
                let count = found.len();
                found.retain(|address| !now.denies_address(*address, target.port));
                if found.len() < count && found.is_empty() {
                    return Err(Refusal::Denied { target: target.clone() });
                }
                let first = found.first().copied();
                let open =
                    |address: &IpAddr| rules.allow_address(*address, target.port) || named && !is_closed(*address);
                let open: Vec<_> = found.into_iter().filter(open).take(MOST_ADDRESSES).collect();
                match first {
                    _ if !open.is_empty() => Ok(open),
                    Some(address) if named => Err(Refusal::Closed { target: target.clone(), address }),
                    None if named => Err(Refusal::NoAddress { target: target.clone() }),
                    _ => Err(not_allowed()),
                }
            }
        }
    }

    async fn look_up(&self, name: &Name, target: &Target) -> Result<Vec<IpAddr>, Refusal> {
        let failed = |reason| Refusal::LookUp { target: target.clone(), reason };
        self.names.look_up(name).await.map_err(failed)
    }
}

/// Bytes go out at once, and a machine that is gone is noticed.
pub(crate) fn ready(stream: &TcpStream) {
    let set = stream
        .set_nodelay(true)
        .and_then(|()| Ok(sockopt::set_socket_keepalive(stream, true)?))
        .and_then(|()| Ok(sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?))
        .and_then(|()| Ok(sockopt::set_tcp_keepintvl(stream, PROBE_AGAIN)?))
        .and_then(|()| Ok(sockopt::set_tcp_keepcnt(stream, 4)?));
    if let Err(error) = set {
        // A connection that was reset meanwhile tells that itself.
        tracing::debug!(%error, "a connection keeps the system's settings");
    }
}
