//! Connections to services.

use std::{io, net::Ipv4Addr, time::Duration};

use gloveport_plugin::Endpoint;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

use crate::error::ForwardError;

/// Pause before a socket whose queue is full is tried again; the kernel tells nobody when there is room.
const PAUSE: Duration = Duration::from_millis(10);

/// A connection to a service, over whatever. One type, so that the client's code is there once.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

/// Connects to a service.
pub(crate) async fn connect(endpoint: &Endpoint, limit: Duration) -> Result<Box<dyn Connection>, ForwardError> {
    let place = describe(endpoint);
    match timeout(limit, open(endpoint)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(source)) => Err(ForwardError::Unreachable { place, source }),
        Err(_) => Err(ForwardError::ConnectTimeout { place, limit }),
    }
}

async fn open(endpoint: &Endpoint) -> io::Result<Box<dyn Connection>> {
    match endpoint {
        Endpoint::Port(port) => {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Endpoint::Socket(path) => loop {
            match UnixStream::connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE).await,
                other => return Ok(Box::new(other?)),
            }
        },
    }
}

/// Where a service is, in words.
fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Port(port) => format!("port {port}"),
        Endpoint::Socket(path) => path.display().to_string(),
    }
}
