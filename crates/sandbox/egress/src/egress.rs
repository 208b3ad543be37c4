//! A gate: its ports, who owns their connections, and how it ends.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    edge::Edge,
    forward::{Forward, Forwarder},
    limits::EgressLimits,
    names::{Names, NamesError},
    policy::Policy,
    proxy::{Proxy, Secrets},
    reach::Reach,
};
use gloveport_allow_list::{Host, Rules};

/// Time before connections are accepted again when the system has no room for them.
const NO_ROOM: Duration = Duration::from_millis(100);

/// What the proxy says to whom it has no place for.
const FULL: &str = "gloveport: too many connections of this sandbox are open; try again later\n";

/// Why a gate does not open.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// A port cannot be taken.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Names cannot be looked up.
    #[error(transparent)]
    Names(#[from] NamesError),
}

/// What a gate does.
#[derive(Clone, Debug)]
pub struct EgressOptions {
    /// Address that the ports of `forwards` are on.
    pub address: IpAddr,
    /// Ports that lead to the sandbox.
    pub forwards: Vec<Forward>,
    /// The way out; `None` if there is none.
    pub proxy: Option<ProxyOptions>,
    /// Address of the sandbox, if it is known: the proxy serves it alone, and the forwards serve everybody else.
    pub sandbox: Option<IpAddr>,
    /// Who knows names; `None` is whom the system asks.
    pub dns: Option<SocketAddr>,
    /// Bounds.
    pub limits: EgressLimits,
}

/// The way out.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What it lets through.
    pub policy: Policy,
    /// The secrets that it puts in; `None` if all https goes through it unread.
    pub edge: Option<Edge>,
    /// Whom secrets are for that it has no more. Nothing goes there, as it would be with what only stands for them.
    pub lost: Rules,
}

/// A gate whose ports are taken.
#[derive(Debug)]
pub struct Egress {
    ways: Vec<Way>,
    limits: EgressLimits,
}

#[derive(Debug)]
struct Way {
    listener: TcpListener,
    address: SocketAddr,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Out(Arc<Proxy>),
    In(Arc<Forwarder>),
}

impl Egress {
    /// Takes the ports.
    pub async fn open(options: EgressOptions) -> Result<Self, EgressError> {
        let EgressOptions { address, forwards, proxy, sandbox, dns, limits } = options;
        // Addresses need nobody who knows names.
        let mut names = None;
        if proxy.is_some() || forwards.iter().any(|forward| matches!(forward.to.host, Host::Name(_))) {
            names = Some(match dns {
                Some(server) => Names::of_server(server)?,
                None => Names::of_system()?,
            });
        }
        let mut ways = Vec::new();
        for Forward { port, to } in forwards {
            let forwarder = Forwarder {
                to,
                names: names.clone(),
                except: sandbox,
                limits: limits.clone(),
                starts_until: Instant::now() + limits.start,
                reached: AtomicBool::new(false),
            };
            ways.push(Way::open(SocketAddr::new(address, port), Kind::In(Arc::new(forwarder))).await?);
        }
        if let (Some(ProxyOptions { listen, policy, edge, lost }), Some(names)) = (proxy, names) {
            let reach = Reach { policy, names, limit: limits.connect };
            let proxy = Proxy::new(reach, Secrets { edge, lost }, sandbox, limits.clone());
            ways.push(Way::open(listen, Kind::Out(Arc::new(proxy))).await?);
        }
        Ok(Self { ways, limits })
    }

    /// The way out alone, on a port that somebody has taken for it, as in a network that this process is not in.
    pub fn on(
        listener: std::net::TcpListener,
        policy: Policy,
        edge: Option<Edge>,
        limits: EgressLimits,
    ) -> Result<Self, EgressError> {
        let address = listener.local_addr().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let failed = |source| EgressError::Listen { address, source };
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        let reach = Reach { policy, names: Names::of_system()?, limit: limits.connect };
        let proxy = Proxy::new(reach, Secrets { edge, lost: Rules::default() }, None, limits.clone());
        Ok(Self { ways: vec![Way { listener, address, kind: Kind::Out(Arc::new(proxy)) }], limits })
    }

    /// Where the forwards listen, in the order of the options.
    pub fn forwards(&self) -> Vec<SocketAddr> {
        self.ways.iter().filter(|way| matches!(way.kind, Kind::In(_))).map(|way| way.address).collect()
    }

    /// Where the proxy listens.
    pub fn proxy(&self) -> Option<SocketAddr> {
        self.ways.iter().find(|way| matches!(way.kind, Kind::Out(_))).map(|way| way.address)
    }

    /// Serves until `stop`; then all connections end.
    pub async fn serve(self, stop: CancellationToken) {
        let mut ways = JoinSet::new();
        for way in self.ways {
            ways.spawn(way.serve(self.limits.connections, stop.clone()));
        }
        while let Some(ended) = ways.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a port of the gate is not served any more");
            }
        }
    }
}

impl Way {
    async fn open(address: SocketAddr, kind: Kind) -> Result<Self, EgressError> {
        let failed = |source| EgressError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, kind })
    }

    async fn serve(self, places: usize, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(places));
        // Dropping it at the end aborts what is left.
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = sleep(NO_ROOM) => continue,
                    }
                }
            };
            if !self.kind.serves(peer.ip().to_canonical()) {
                tracing::debug!(%peer, "this port is not for them");
                continue;
            }
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                self.kind.turn_away(&stream);
                continue;
            };
            let kind = self.kind.clone();
            connections.spawn(async move {
                match kind {
                    Kind::Out(proxy) => proxy.serve(stream).await,
                    Kind::In(forwarder) => forwarder.serve(stream).await,
                }
                drop(place);
            });
        }
    }
}

impl Kind {
    fn serves(&self, peer: IpAddr) -> bool {
        match self {
            Self::Out(proxy) => proxy.client.is_none_or(|client| client == peer),
            Self::In(forwarder) => forwarder.except.is_none_or(|sandbox| sandbox != peer),
        }
    }

    fn turn_away(&self, stream: &TcpStream) {
        match self {
            Self::Out(_) => {
                let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nconnection: close";
                let answer = format!("{head}\r\nretry-after: 1\r\ncontent-length: {}\r\n\r\n{FULL}", FULL.len());
                // A new socket has room for this; if not, the end of the connection says enough.
                if let Err(error) = stream.try_write(answer.as_bytes()) {
                    tracing::debug!(%error, "nobody reads that there is no place");
                }
            }
            Self::In(forwarder) => tracing::warn!(to = %forwarder.to, "too many connections to the sandbox"),
        }
    }
}
