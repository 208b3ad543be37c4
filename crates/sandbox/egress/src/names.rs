//! Names are looked up by the gate itself, without the C library.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts},
    net::{NetError, runtime::TokioRuntimeProvider},
};

use gloveport_allow_list::Name;

/// Answers that are remembered.
const CACHED: u64 = 256;

/// Why names cannot be looked up.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// The system does not say who knows names.
    #[error("cannot read from /etc/resolv.conf who looks up names: {0}; name the server with --dns")]
    System(#[source] NetError),
    /// The resolver cannot be made.
    #[error("cannot look up names: {0}")]
    Resolver(#[source] NetError),
}

/// Looks up names.
#[derive(Clone)]
pub struct Names {
    resolver: TokioResolver,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

impl Names {
    /// Asks whom the system asks (`/etc/resolv.conf`, `/etc/hosts`).
    pub fn of_system() -> Result<Self, NamesError> {
        let mut builder = TokioResolver::builder_tokio().map_err(NamesError::System)?;
        set(builder.options_mut());
        Ok(Self { resolver: builder.build().map_err(NamesError::Resolver)? })
    }

    /// Asks this server.
    pub fn of_server(server: SocketAddr) -> Result<Self, NamesError> {
        let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
        (udp.port, tcp.port) = (server.port(), server.port());
        let server = NameServerConfig::new(server.ip(), true, vec![udp, tcp]);
        let config = ResolverConfig::from_name_servers(vec![server]);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        set(builder.options_mut());
        Ok(Self { resolver: builder.build().map_err(NamesError::Resolver)? })
    }

    /// The addresses of a name, IPv4 first; none if there is no such name or it has no addresses.
    pub(crate) async fn look_up(&self, name: &Name) -> Result<Vec<IpAddr>, String> {
        // With the dot, no search list is tried: it is this name or none.
        match self.resolver.lookup_ip(format!("{name}.")).await {
            Ok(found) => {
                let mut addresses: Vec<_> = found.iter().map(|address| address.to_canonical()).collect();
                addresses.sort_by_key(IpAddr::is_ipv6);
                addresses.dedup();
                Ok(addresses)
            }
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn set(options: &mut ResolverOpts) {
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = CACHED;
    options.timeout = Duration::from_secs(3);
    options.attempts = 2;
}
