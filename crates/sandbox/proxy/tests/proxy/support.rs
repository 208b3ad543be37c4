//! Real services and a real front, each on its own socket, for the tests of the proxy.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use gloveport_plugin::Endpoint;
use gloveport_proxy::{Answer, Forwarding, Mount, ProxyLimits, answer::request_body, error_page, forward};
use http::{Request, Response};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixListener},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// A limit for whatever must come in the end.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The body of a service's answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A body that is there.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    http_body_util::Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Serves HTTP with this handler on a port of its own.
pub(crate) async fn http_service<F, R>(handler: F) -> Endpoint
where
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = Endpoint::Port(listener.local_addr().unwrap().port());
    let handler = Arc::new(handler);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(converse(stream, Arc::clone(&handler)));
        }
    });
    endpoint
}

/// The same at a Unix socket.
pub(crate) async fn http_service_at<F, R>(listener: UnixListener, handler: F)
where
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let handler = Arc::new(handler);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(converse(stream, Arc::clone(&handler)));
    }
}

async fn converse<S, F, R>(stream: S, handler: Arc<F>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler(request).await) }
    });
    // The proxy may give up a connection, which is what some tests are about.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

/// Serves bytes with this handler on a port of its own.
pub(crate) async fn raw_service<F, R>(handler: F) -> Endpoint
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = Endpoint::Port(listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(handler(stream));
        }
    });
    endpoint
}

/// A front that passes everything on, and how many uses of the service it holds.
pub(crate) struct Front {
    pub(crate) port: u16,
    pub(crate) stop: CancellationToken,
    uses: Arc<AtomicUsize>,
}

/// A use of the service.
struct Use(Arc<AtomicUsize>);

impl Drop for Use {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Front {
    /// Starts a front for a service under a path.
    pub(crate) async fn start(endpoint: Endpoint, public: &str, limits: ProxyLimits) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, uses) = (CancellationToken::new(), Arc::<AtomicUsize>::default());
        let (mount, handed_stop, handed_uses) = (Mount::new(public, ""), stop.clone(), Arc::clone(&uses));
        tokio::spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                let (endpoint, mount, limits) = (endpoint.clone(), mount.clone(), limits.clone());
                let (stop, uses) = (handed_stop.clone(), Arc::clone(&handed_uses));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (endpoint, mount, limits) = (endpoint.clone(), mount.clone(), limits.clone());
                    let (stop, uses) = (stop.clone(), Arc::clone(&uses));
                    async move {
                        uses.fetch_add(1, SeqCst);
                        Ok::<_, Infallible>(
                            pass(request, peer.ip(), &endpoint, &mount, &limits, &stop, Use(uses)).await,
                        )
                    }
                });
                tokio::spawn(async move {
                    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    let _ended = connection.with_upgrades().await;
                });
            }
        });
        Self { port, stop, uses }
    }

    /// Waits until no use is held.
    pub(crate) async fn unused(&self) {
        until(|| self.uses.load(SeqCst) == 0).await;
    }

    /// Uses that are held.
    pub(crate) fn uses(&self) -> usize {
        self.uses.load(SeqCst)
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap()
    }

    /// Sends bytes and gives everything that comes until the end.
    pub(crate) async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        read_all(&mut stream).await
    }
}

async fn pass(
    request: Request<Incoming>,
    client: IpAddr,
    endpoint: &Endpoint,
    mount: &Mount,
    limits: &ProxyLimits,
    stop: &CancellationToken,
    held: Use,
) -> Response<Answer> {
    let headers = request.headers().clone();
    let target = mount.inward(request.uri()).unwrap();
    let forwarding = Forwarding { endpoint, mount, client: Some(client), session_key: None, limits, stop };
    let answered = forward(request.map(request_body), target, forwarding, Box::new(held)).await;
    answered.unwrap_or_else(|error| error_page(error.status(), &headers, &error.to_string()))
}

/// Everything until the end, as text.
pub(crate) async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the answer does not end").unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Everything up to and with a text.
pub(crate) async fn read_to(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(stream.read_u8().await.unwrap());
        }
    };
    timeout(LONG, read).await.expect("the text does not come");
    String::from_utf8(bytes).unwrap()
}

/// Waits for a condition.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < end, "the condition does not come true");
        sleep(Duration::from_millis(5)).await;
    }
}
