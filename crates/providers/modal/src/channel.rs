//! A connection to a service of gRPC: HTTP/2, with TLS or, to this machine, without.

use std::{fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use gloveport_client::causes;
use gloveport_resolver::Resolver;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Mutex,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::grpc::Failure;

/// Time to make a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How often the other side is asked whether it is there, and how long it may take to say so (`hosted-apis` 5.1).
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));
/// What may be on its way of one answer, and of all.
const WINDOWS: (u32, u32) = (4 * 1024 * 1024, 16 * 1024 * 1024);
/// What comes before a message that was not heard at all.
const NOT_CONNECTED: &str = "no connection";

type Sender = SendRequest<Full<Bytes>>;

/// A connection that is made when it is needed, and again when it was lost. All calls share it.
pub(crate) struct Channel {
    /// Scheme, host and port, without a slash at the end.
    url: String,
    sender: Mutex<Option<Sender>>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Channel {
    /// A connection to this URL. It is not made yet.
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), sender: Mutex::new(None) }
    }

    /// Sends one message, and gives the head of the answer.
    pub(crate) async fn send(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let broken = |error: &dyn fmt::Display| Failure::Network(error.to_string());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{path}", self.url))
            .body(Full::new(body))
            .map_err(|error| broken(&error))?;
        *request.headers_mut() = headers;
        let mut sender = self.sender().await?;
        sender.send_request(request).await.map_err(|error| Failure::Network(causes(&error)))
    }

    async fn sender(&self) -> Result<Sender, Failure> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.as_mut().filter(|sender| !sender.is_closed())
            && sender.ready().await.is_ok()
        {
            return Ok(sender.clone());
        }
        let made = timeout(CONNECT, Box::pin(connect(&self.url))).await;
        let made = made.unwrap_or_else(|_| Err(io::Error::other(format!("none within {} s", CONNECT.as_secs()))));
        let sender = made.map_err(|error| Failure::Network(format!("{NOT_CONNECTED}: {error}")))?;
        Ok(kept.insert(sender).clone())
    }
}

async fn connect(url: &str) -> io::Result<Sender> {
    let uri: Uri = url.parse().map_err(io::Error::other)?;
    let (tls, host) = (uri.scheme_str() == Some("https"), uri.host().unwrap_or_default().trim_matches(['[', ']']));
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let tcp = reach(host, port).await?;
    tcp.set_nodelay(true)?;
    if !tls {
        return speak(tcp).await;
    }
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    speak(TlsConnector::from(Arc::new(configuration()?)).connect(name, tcp).await?).await
}

/// The first of a host's addresses that takes a connection.
async fn reach(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<std::net::IpAddr>() {
        return TcpStream::connect((address, port)).await;
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in Resolver::default().addresses(host).await? {
        match TcpStream::connect((address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The certificates of the system are what counts, and the bundled ones where it has none.
fn configuration() -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = || {
        ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)
    };
    let mut configuration = if let Ok(builder) = builder()?.with_platform_verifier() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        builder()?.with_root_certificates(roots).with_no_client_auth()
    };
    configuration.alpn_protocols = vec![b"h2".to_vec()];
    Ok(configuration)
}

async fn speak(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> io::Result<Sender> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .handshake(TokioIo::new(io))
        .await
        .map_err(io::Error::other)?;
    // It ends when nobody can send any more, or with the connection, which the next call notices.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %causes(&error), "a connection to Modal has ended");
        }
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_service_that_is_not_there_is_told_as_such() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let failure = Channel::new(&url).send("/x", HeaderMap::new(), Bytes::new()).await.unwrap_err();
        assert!(matches!(&failure, Failure::Network(text) if text.starts_with(NOT_CONNECTED)), "{failure:?}");
    }

    #[test]
    fn connections_with_tls_ask_for_http2() {
        assert_eq!(configuration().unwrap().alpn_protocols, [b"h2"]);
    }
}
