//! The way in: ports of the gate that are ports of the sandbox.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    io::copy_bidirectional_with_sizes,
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{
    limits::EgressLimits,
    names::Names,
    reach::ready,
    watch::{Activity, Watched},
};
use gloveport_allow_list::{Host, HostError, Target, port_number};

/// What a connection holds in each direction.
const BUFFER: usize = 16 * 1024;
/// First and longest time between two tries to reach a sandbox that starts.
const AGAIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// A text that is no forward.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a forward: {reason}; write PORT=HOST:PORT, for example `8000=10.0.0.2:8000`")]
pub struct ForwardError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A port of the gate (0: the system chooses), and what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The port of the gate.
    pub port: u16,
    /// Where its connections go.
    pub to: Target,
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let wrong = |reason: String| ForwardError { text: text.to_owned(), reason };
        let told = |error: HostError| wrong(error.to_string());
        let (port, to) = text.split_once('=').ok_or_else(|| wrong("there is no `=`".to_owned()))?;
        let port = if port == "0" { 0 } else { port_number(port).map_err(told)? };
        Ok(Self { port, to: Target::parse(to, None).map_err(told)? })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.port, self.to)
    }
}

/// The way to one port of the sandbox.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) to: Target,
    /// Looks names up; `None` if there are none.
    pub(crate) names: Option<Names>,
    /// Who is not served: the sandbox itself, which could use up all places.
    pub(crate) except: Option<IpAddr>,
    pub(crate) limits: EgressLimits,
    /// Until when a sandbox may be starting.
    pub(crate) starts_until: Instant,
    /// It was reached, so it does not start any more.
    pub(crate) reached: AtomicBool,
}

impl Forwarder {
    /// Passes on what comes through one connection, both ways and each end of it.
    pub(crate) async fn serve(&self, mut stream: TcpStream) {
        ready(&stream);
        let target = match self.connect().await {
            Ok(target) => target,
            Err(reason) => {
                tracing::warn!(to = %self.to, reason, "the sandbox cannot be reached");
                return;
            }
        };
        let activity = Activity::new();
        let mut target = Watched::new(target, &activity);
        tokio::select! {
            copied = copy_bidirectional_with_sizes(&mut stream, &mut target, BUFFER, BUFFER) => {
                if let Err(error) = copied {
                    tracing::debug!(%error, "a connection to the sandbox broke");
                }
            }
            () = activity.idle(self.limits.forward_idle) => {
                tracing::warn!(to = %self.to, "a connection to the sandbox is idle, and ends");
            }
        }
    }

    /// Connects, and tries again while the sandbox may be starting.
    async fn connect(&self) -> Result<TcpStream, String> {
        let mut pause = AGAIN.0;
        loop {
            let tried = match timeout(self.limits.connect, self.try_to_connect()).await {
                Ok(tried) => tried,
                Err(_) => Err(format!("no answer in {} s", self.limits.connect.as_secs())),
            };
            match tried {
                Ok(stream) => {
                    self.reached.store(true, Ordering::Relaxed);
                    ready(&stream);
                    return Ok(stream);
                }
                Err(reason) if self.reached.load(Ordering::Relaxed) || Instant::now() >= self.starts_until => {
                    return Err(reason);
                }
                Err(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    async fn try_to_connect(&self) -> Result<TcpStream, String> {
        let addresses = match (&self.to.host, &self.names) {
            (Host::Address(address), _) => vec![*address],
            (Host::Name(name), Some(names)) => names.look_up(name).await?,
            (Host::Name(_), None) => Vec::new(),
        };
        let mut reason = "the name has no address".to_owned();
        for address in addresses {
            match TcpStream::connect(SocketAddr::new(address, self.to.port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read_as_they_are_written() {
        for text in ["8000=10.0.0.2:8000", "1=sandbox:2", "0=[::1]:80"] {
            assert_eq!(text.parse::<Forward>().unwrap().to_string(), text);
        }
        for (text, part) in [
            ("8000", "no `=`"),
            ("x=a:1", "port"),
            ("8000=a", "no port"),
            ("8000=:1", "no host"),
            ("70000=a:1", "port"),
        ] {
            let error = text.parse::<Forward>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`")) && error.contains(part), "{text}: {error}");
        }
    }
}
