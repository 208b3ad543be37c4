//! Servers that speak TLS, and clients that reach them through a gate that puts secrets in.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use bytes::Bytes;
use gloveport_edge::{Authority, EdgeConfig, EdgeSecret};
use gloveport_egress::{Edge, EgressLimits, EgressOptions, Policy, ProxyOptions, Roots};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, client, server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

use super::{Dns, LOOPBACK, Owned, Rules, Running, SocketAddr, options, run, soon, tunnel};

pub const H1: &[&str] = &["http/1.1"];
pub const H2: &[&str] = &["h2"];
pub const BOTH: &[&str] = &["h2", "http/1.1"];

pub type Body = UnsyncBoxBody<Bytes, Infallible>;
type ServerStream = tokio_rustls::server::TlsStream<TcpStream>;
type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Who signs the certificates of servers.
pub struct World(CertifiedIssuer<'static, KeyPair>);

impl World {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn server(&self, names: &[&str], versions: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = versions.iter().map(|version| version.as_bytes().to_vec()).collect();
        Arc::new(config).into()
    }
}

/// What a server got.
#[derive(Debug)]
pub struct Seen {
    pub version: Version,
    pub method: Method,
    pub uri: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A server for `api.test`, `other.test` and 127.0.0.1.
pub struct TlsOrigin {
    pub port: u16,
    pub seen: mpsc::UnboundedReceiver<Seen>,
    _task: Owned,
}

impl TlsOrigin {
    /// Answers with what this makes of each request, when all of it has come.
    pub async fn start(
        world: &World,
        versions: &[&str],
        reply: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let reply = Arc::new(reply);
        Self::streaming(world, versions, move |request, tell| {
            let reply = Arc::clone(&reply);
            Box::pin(async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let uri = parts.uri.path_and_query().unwrap().to_string();
                let seen = Seen { version: parts.version, method: parts.method, uri, headers: parts.headers, body };
                let answer = reply(&seen);
                tell.send(seen).ok();
                answer
            })
        })
        .await
    }

    /// Answers with what this makes of each request while it comes.
    pub async fn streaming(
        world: &World,
        versions: &[&str],
        answer: impl Fn(Request<Incoming>, mpsc::UnboundedSender<Seen>) -> Answering + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::raw(world, versions, move |stream, tell| {
            let answer = Arc::clone(&answer);
            Box::pin(Self::serve(stream, move |request| answer(request, tell.clone())))
        })
        .await
    }

    /// Serves HTTP of the version that was agreed on.
    pub async fn serve(stream: ServerStream, answer: impl Fn(Request<Incoming>) -> Answering + Send + Sync + 'static) {
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let service = service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        let io = TokioIo::new(stream);
        if http2 {
            server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await.ok();
        } else {
            server::conn::http1::Builder::new().serve_connection(io, service).await.ok();
        }
    }

    /// Does this with each connection.
    pub async fn raw(
        world: &World,
        versions: &[&str],
        serve: impl Fn(ServerStream, mpsc::UnboundedSender<Seen>) -> Pin<Box<dyn Future<Output = ()> + Send>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = world.server(&["api.test", "other.test", "127.0.0.1"], versions);
        let (tell, seen) = mpsc::unbounded_channel();
        let serve = Arc::new(serve);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (acceptor, tell, serve) = (acceptor.clone(), tell.clone(), Arc::clone(&serve));
                connections.spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, tell).await;
                    }
                });
            }
        });
        Self { port, seen, _task: Owned(task) }
    }

    pub async fn seen(&mut self) -> Seen {
        soon("a request", self.seen.recv()).await.unwrap()
    }
}

pub const PLACEHOLDER: &str = "gp_placeholder_of_api_1";
pub const VALUE: &str = "s3cr\"t/value+1";
pub const OTHER_PLACEHOLDER: &str = "gp_placeholder_of_other";
pub const OTHER_VALUE: &str = "value-of-the-other";

/// A gate that puts in the value for `api.test` and 127.0.0.1, and another for `other.test`, at this port.
pub struct Gate {
    pub running: Running,
    pub proxy: SocketAddr,
    pub authority: String,
    _dns: Dns,
}

impl Gate {
    pub async fn start(world: &World, port: u16) -> Self {
        Self::with(world, port, VALUE, EgressLimits::default(), |edge| edge).await
    }

    pub async fn with(
        world: &World,
        port: u16,
        value: &str,
        limits: EgressLimits,
        change: impl FnOnce(Edge) -> Edge,
    ) -> Self {
        let names = ["api.test", "other.test", "unbound.test"].map(|name| (name, "127.0.0.1"));
        let dns = Dns::start(&names).await;
        let authority = Authority::make("test").unwrap();
        let pem = authority.certificate_pem().to_owned();
        let secret = |name: &str, placeholder: &str, value: &str, hosts: &[String]| EdgeSecret {
            name: name.to_owned(),
            placeholder: placeholder.to_owned(),
            value: value.to_owned().into(),
            hosts: Rules::parse(hosts).unwrap(),
        };
        let config = EdgeConfig {
            secrets: vec![
                secret("API", PLACEHOLDER, value, &[format!("api.test:{port}"), format!("127.0.0.1:{port}")]),
                secret("OTHER", OTHER_PLACEHOLDER, OTHER_VALUE, &[format!("other.test:{port}")]),
            ],
            authority,
            roots: String::new(),
        };
        // As the gate gets it from another process.
        let config: EdgeConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
        let edge = change(Edge::new(config, Roots::of_system().and(&world.pem()).unwrap()).unwrap());
        let policy = Policy::new(Rules::parse(["127.0.0.1"]).unwrap());
        let proxy = ProxyOptions { listen: (LOOPBACK, 0).into(), policy, edge: Some(edge), lost: Rules::default() };
        let running = run(EgressOptions { proxy: Some(proxy), dns: Some(dns.address), limits, ..options() }).await;
        Self { proxy: running.proxy.unwrap(), running, authority: pem, _dns: dns }
    }

    /// TLS through a tunnel to this target, by a client that trusts the authority of the sandbox alone.
    pub async fn connect(&self, target: &str, versions: &[&str]) -> TlsStream<TcpStream> {
        let (name, _) = target.rsplit_once(':').unwrap();
        self.try_connect(target, Some(name), versions, &self.authority).await.unwrap()
    }

    pub async fn try_connect(
        &self,
        target: &str,
        sni: Option<&str>,
        versions: &[&str],
        trusted: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = tunnel(self.proxy, target).await.unwrap();
        stream.set_nodelay(true)?;
        let (name, _) = target.rsplit_once(':').unwrap();
        let mut config = trusting(trusted);
        config.alpn_protocols = versions.iter().map(|version| version.as_bytes().to_vec()).collect();
        config.enable_sni = sni.is_some();
        let name = ServerName::try_from(sni.unwrap_or(name).to_owned()).unwrap();
        soon("the handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await
    }

    /// A client of HTTP through a tunnel to this target.
    pub async fn client(&self, target: &str, versions: &[&str]) -> Client {
        let stream = self.connect(target, versions).await;
        Client::on(stream, target).await
    }
}

pub fn trusting(pem: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth()
}

pub enum Client {
    One(client::conn::http1::SendRequest<Body>, String, Owned),
    Many(client::conn::http2::SendRequest<Body>, String, Owned),
}

impl Client {
    pub async fn on(stream: TlsStream<TcpStream>, target: &str) -> Self {
        let target = target.to_owned();
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            let builder = client::conn::http2::Builder::new(TokioExecutor::new());
            let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
            Self::Many(sender, target, Owned(tokio::spawn(async move { drop(connection.await) })))
        } else {
            let (sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            Self::One(sender, target, Owned(tokio::spawn(async move { drop(connection.await) })))
        }
    }

    /// Sends a request for a path.
    pub async fn send(&mut self, request: http::request::Builder, body: Body) -> Response<Incoming> {
        let request = request.body(body).unwrap();
        soon("an answer", self.begin(request)).await.unwrap()
    }

    pub fn begin(
        &mut self,
        mut request: Request<Body>,
    ) -> Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>> {
        match self {
            Self::One(sender, target, _) => {
                let host = target.parse().unwrap();
                request.headers_mut().entry("host").or_insert(host);
                let sent = sender.send_request(request);
                Box::pin(sent)
            }
            Self::Many(sender, target, _) => {
                let uri = format!("https://{target}{}", request.uri());
                *request.uri_mut() = uri.parse().unwrap();
                Box::pin(sender.send_request(request))
            }
        }
    }

    /// Gets a path, as text.
    pub async fn get(&mut self, path: &str) -> (http::response::Parts, String) {
        let response = self.send(Request::get(path), empty()).await;
        all_of(response).await
    }
}

pub async fn all_of(response: Response<Incoming>) -> (http::response::Parts, String) {
    let (parts, body) = response.into_parts();
    let body = soon("the body", body.collect()).await.unwrap().to_bytes();
    (parts, String::from_utf8_lossy(&body).into_owned())
}

pub fn empty() -> Body {
    full("")
}

pub fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

/// A body whose frames a test sends.
pub fn body_of_frames() -> (mpsc::Sender<hyper::body::Frame<Bytes>>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let frames = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|frame| (Ok(frame), receiver))
    });
    (sender, http_body_util::StreamBody::new(frames).boxed_unsync())
}
