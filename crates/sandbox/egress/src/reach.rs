//! From a target to a connection: what is checked is what is connected to.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use rustix::net::sockopt;
use tokio::{net::TcpStream, time::timeout};

use crate::{names::Names, refusal::Refusal};
use gloveport_allow_list::{Host, Name, Rules, Target, is_closed};

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;
/// Whether the other machine lives is asked after this silence …
const PROBE_AFTER: Duration = Duration::from_mins(1);
/// … and again after this, four times.
const PROBE_AGAIN: Duration = Duration::from_secs(15);

/// Connects to what rules let through.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) rules: Rules,
    pub(crate) names: Names,
    /// Limit of everything until the connection is there.
    pub(crate) limit: Duration,
}

impl Reach {
    /// Connects to an address of the target that the rules let through.
    pub(crate) async fn connect(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let late = || Refusal::Late { target: target.clone(), limit: self.limit };
        timeout(self.limit, self.connect_at_leisure(target)).await.map_err(|_| late())?
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
        let not_allowed = || Refusal::NotAllowed { target: target.clone(), rules: self.rules.clone() };
        match &target.host {
            Host::Address(address) if self.rules.allow_address(*address, target.port) => Ok(vec![*address]),
            Host::Address(_) => Err(not_allowed()),
            Host::Name(name) => {
                let named = self.rules.allow_name(name, target.port);
                if !named && !self.rules.have_addresses(target.port) {
                    return Err(not_allowed());
                }
                let found = self.look_up(name, target).await?;
                let first = found.first().copied();
                let open =
                    |address: &IpAddr| self.rules.allow_address(*address, target.port) || named && !is_closed(*address);
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
