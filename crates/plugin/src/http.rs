//! One HTTP request to a service, over a connection of its own.

use std::{error::Error as _, io};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_util::task::AbortOnDropHandle;

use crate::service::Endpoint;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// Nobody accepts the connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// The connection broke, or what came is no HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The request itself cannot be made, as for a path with a blank in it.
    #[error("cannot make the request: {0}")]
    Request(#[from] hyper::http::Error),
}

impl From<hyper::Error> for HttpError {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self::Broken(format!("{error}{cause}"))
    }
}

/// The status that a path is answered with. The body is not read.
pub(crate) async fn status(endpoint: &Endpoint, path: &str) -> Result<u16, HttpError> {
    let request = Request::get(path).header("host", "localhost").body(Full::default())?;
    match endpoint {
        Endpoint::Port(port) => exchange(TcpStream::connect(("127.0.0.1", *port)).await?, request).await,
        Endpoint::Socket(path) => exchange(UnixStream::connect(path).await?, request).await,
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<u16, HttpError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    Ok(sender.send_request(request).await?.status().as_u16())
}
