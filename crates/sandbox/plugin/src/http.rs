//! One HTTP request to a service, over a connection of its own.

use std::{error::Error as _, io};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_util::task::AbortOnDropHandle;

use crate::service::{Endpoint, connect_socket};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// Nobody accepts the connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// The connection broke, or what came is no HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The answer is too long.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
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

/// What a service answers.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// The status that a path is answered with. The body is not read.
pub(crate) async fn status(endpoint: &Endpoint, path: &str) -> Result<u16, HttpError> {
    let request = Request::get(path).header("host", "localhost").body(Full::default())?;
    match endpoint {
        Endpoint::Port(port) => exchange(TcpStream::connect(("127.0.0.1", *port)).await?, request, None).await,
        Endpoint::Socket(path) => exchange(connect_socket(path).await?, request, None).await,
    }
    .map(|answer| answer.status)
}

/// Posts JSON, and reads an answer of at most so many bytes.
pub(crate) async fn post(endpoint: &Endpoint, path: &str, json: Bytes, most: usize) -> Result<Answer, HttpError> {
    let request = Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("connection", "close")
        .body(Full::new(json))?;
    match endpoint {
        Endpoint::Port(port) => exchange(TcpStream::connect(("127.0.0.1", *port)).await?, request, Some(most)).await,
        Endpoint::Socket(path) => exchange(connect_socket(path).await?, request, Some(most)).await,
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    most: Option<usize>,
) -> Result<Answer, HttpError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let Some(most) = most else { return Ok(Answer { status, body: Bytes::new() }) };
    let body = Limited::new(response.into_body(), most).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() { HttpError::TooLong(most) } else { HttpError::Broken(error.to_string()) }
    })?;
    Ok(Answer { status, body: body.to_bytes() })
}
