//! How fast requests and answers go through a gate that reads them, beside a tunnel that passes unread: TLS both times.
//!
//! `cargo run --release -p gloveport-egress --example edge_speed`
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures prints what it finds, and stops at the first thing that fails"
)]

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Instant};

use bytes::Bytes;
use futures_util::stream;
use gloveport_allow_list::Rules;
use gloveport_edge::{Authority, EdgeConfig, EdgeSecret};
use gloveport_egress::{Edge, Egress, EgressLimits, Policy, Roots};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::{http1, http2},
    server,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

const PLACEHOLDER: &str = "gp_placeholder_of_speed";
const VALUE: &str = "value-of-the-secret-of-speed";
const REQUESTS: usize = 3000;
const CHUNK: usize = 64 * 1024;
const CHUNKS: usize = 16 * 1024;

type Body = UnsyncBoxBody<Bytes, Infallible>;

#[tokio::main]
async fn main() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let world = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let (read, unread) = (origin(&world).await, origin(&world).await);
    let authority = Authority::make("speed").unwrap();
    let trusted = authority.certificate_pem().to_owned();
    let proxy = gate(&world, authority, read);
    for version in ["http/1.1", "h2"] {
        for (what, port, trusted) in [("unread", unread, &world.pem()), ("read", read, &trusted)] {
            let stream = connect(proxy, port, trusted, version).await;
            let mut client = Client::on(stream).await;
            let p50 = client.small(port).await;
            let speed = client.large(port).await;
            println!("{version:8} {what:6} p50 {p50:>6} us   {speed:>6.0} MB/s of 1 GB");
        }
    }
}

fn gate(world: &CertifiedIssuer<'_, KeyPair>, authority: Authority, port: u16) -> SocketAddr {
    let secret = EdgeSecret {
        name: "SPEED".to_owned(),
        placeholder: PLACEHOLDER.to_owned(),
        value: VALUE.to_owned().into(),
        hosts: Rules::parse([format!("127.0.0.1:{port}")]).unwrap(),
    };
    let config = EdgeConfig { secrets: vec![secret], authority, roots: String::new() };
    let edge = Edge::new(config, Roots::of_system().and(&world.pem()).unwrap()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rules = Rules::parse(["127.0.0.1"]).unwrap();
    let gate = Egress::on(listener, Policy::new(rules), Some(edge), EgressLimits::default()).unwrap();
    let proxy = gate.proxy().unwrap();
    tokio::spawn(gate.serve(CancellationToken::new()));
    proxy
}

/// A server that sends 1 GB for `/large`, and a few bytes for anything else.
async fn origin(world: &CertifiedIssuer<'_, KeyPair>) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, world).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let (io, service) = (TokioIo::new(stream), service_fn(answer));
                if http2 {
                    server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await.ok();
                } else {
                    server::conn::http1::Builder::new().serve_connection(io, service).await.ok();
                }
            });
        }
    });
    port
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let body = if request.uri().path() == "/large" {
        let chunk = noise();
        let frames = (0..CHUNKS).map(move |_| Ok(Frame::data(chunk.clone())));
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    } else {
        Full::new(Bytes::from_static(b"{\"fine\": true}")).boxed_unsync()
    };
    Ok(Response::new(body))
}

/// Bytes without a pattern (Knuth's MMIX generator).
fn noise() -> Bytes {
    let mut state = 1_u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..CHUNK).map(step).collect()
}

async fn connect(proxy: SocketAddr, port: u16, trusted: &str, version: &str) -> TlsStream<TcpStream> {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let head = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![version.as_bytes().to_vec()];
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

enum Client {
    One(http1::SendRequest<Empty<Bytes>>),
    Many(http2::SendRequest<Empty<Bytes>>),
}

impl Client {
    async fn on(stream: TlsStream<TcpStream>) -> Self {
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.initial_stream_window_size(2 << 20).initial_connection_window_size(4 << 20);
            let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            Self::Many(sender)
        } else {
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            Self::One(sender)
        }
    }

    async fn get(&mut self, port: u16, path: &str) -> Incoming {
        let request = Request::get(format!("https://127.0.0.1:{port}{path}")).header("authorization", PLACEHOLDER);
        let mut request = request.body(Empty::new()).unwrap();
        let answer = match self {
            Self::One(sender) => {
                *request.uri_mut() = path.parse().unwrap();
                request.headers_mut().insert("host", format!("127.0.0.1:{port}").parse().unwrap());
                sender.ready().await.unwrap();
                sender.send_request(request).await
            }
            Self::Many(sender) => sender.send_request(request).await,
        };
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body()
    }

    /// Half of small requests take less than these microseconds.
    async fn small(&mut self, port: u16) -> u128 {
        let mut times = Vec::new();
        for _ in 0..REQUESTS {
            let begun = Instant::now();
            self.get(port, "/").await.collect().await.unwrap();
            times.push(begun.elapsed().as_micros());
        }
        times.sort_unstable();
        times[REQUESTS / 2]
    }

    /// Megabytes per second.
    async fn large(&mut self, port: u16) -> f64 {
        let begun = Instant::now();
        let mut body = self.get(port, "/large").await;
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame.unwrap().data_ref().map_or(0, Bytes::len);
        }
        assert_eq!(length, CHUNK * CHUNKS);
        #[expect(clippy::cast_precision_loss, reason = "it is printed without fractions")]
        let megabytes = (length / 1_000_000) as f64;
        megabytes / begun.elapsed().as_secs_f64()
    }
}
