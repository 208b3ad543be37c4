//! The way out: an HTTP proxy for the sandbox.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Empty, Full, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    client, server,
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{io::copy_bidirectional_with_sizes, net::TcpStream, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    egress::EgressLimits,
    headers::{drop_hop_by_hop, target_of, to_target},
    reach::{Reach, ready},
    refusal::Refusal,
    watch::{Activity, Watched},
};
use gloveport_allow_list::Target;

/// What a tunnel holds in each direction.
const BUFFER: usize = 16 * 1024;
/// Lines about refusals in one [`WINDOW`]; what is inside can ask as often as it likes.
const MOST_LINES: u32 = 20;
/// Time in which lines are counted.
const WINDOW: Duration = Duration::from_secs(10);

type Body = BoxBody<Bytes, hyper::Error>;

/// A proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) reach: Reach,
    /// The only one who is served; `None` is everybody.
    pub(crate) client: Option<IpAddr>,
    pub(crate) limits: EgressLimits,
    pub(crate) log: RefusalLog,
}

/// A tunnel that begins when its answer is out.
struct Tunnel {
    client: OnUpgrade,
    target: Watched,
}

impl Proxy {
    /// Serves one connection until it ends or nothing goes through it.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream) {
        ready(&stream);
        let activity = Activity::new();
        let limit = self.limits.idle;
        let requests = self.requests(Watched::new(stream, &activity), &activity);
        tokio::select! {
            () = requests => {}
            () = activity.idle(limit) => tracing::debug!("a connection through the proxy is idle, and ends"),
        }
    }

    async fn requests(self: &Arc<Self>, stream: Watched, activity: &Activity) {
        // A connection becomes at most one tunnel.
        let (tunnels, mut tunnel) = mpsc::channel(1);
        let service = service_fn(|request| {
            let (proxy, activity, tunnels) = (Arc::clone(self), activity.clone(), tunnels.clone());
            async move { Ok::<_, Infallible>(proxy.answer(request, &activity, &tunnels).await) }
        });
        let connection = server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_time)
            .max_buf_size(self.limits.header_bytes)
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the proxy failed");
            return;
        }
        let Ok(Tunnel { client, mut target }) = tunnel.try_recv() else { return };
        match client.await {
            Ok(client) => {
                let mut client = TokioIo::new(client);
                if let Err(error) = copy_bidirectional_with_sizes(&mut client, &mut target, BUFFER, BUFFER).await {
                    tracing::debug!(%error, "a tunnel broke");
                }
            }
            Err(error) => tracing::debug!(%error, "a tunnel did not begin"),
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        activity: &Activity,
        tunnels: &mpsc::Sender<Tunnel>,
    ) -> Response<Body> {
        let answered = match target_of(&request) {
            Ok(target) if request.method() == Method::CONNECT => self.tunnel(request, &target, activity, tunnels).await,
            Ok(target) => self.pass_on(request, &target, activity).await,
            Err(refusal) => Err(refusal),
        };
        answered.unwrap_or_else(|refusal| {
            if let Some(target) = refusal.denied() {
                self.log.tell(target);
            }
            refused(&refusal)
        })
    }

    async fn tunnel(
        &self,
        mut request: Request<Incoming>,
        target: &Target,
        activity: &Activity,
        tunnels: &mpsc::Sender<Tunnel>,
    ) -> Result<Response<Body>, Refusal> {
        let stream = self.reach.connect(target).await?;
        let tunnel = Tunnel { client: hyper::upgrade::on(&mut request), target: Watched::new(stream, activity) };
        tunnels.try_send(tunnel).map_err(|_| Refusal::Request("this connection is a tunnel already"))?;
        Ok(Response::new(Empty::new().map_err(|never| match never {}).boxed()))
    }

    async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        target: &Target,
        activity: &Activity,
    ) -> Result<Response<Body>, Refusal> {
        to_target(&mut request, target)?;
        let stream = self.reach.connect(target).await?;
        let failed = |error: hyper::Error| Refusal::Answer { target: target.clone(), reason: causes(&error) };
        let (mut sender, connection) = client::conn::http1::Builder::new()
            .max_buf_size(self.limits.header_bytes)
            .handshake(TokioIo::new(Watched::new(stream, activity)))
            .await
            .map_err(failed)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection));
        let mut response = sender.send_request(request).await.map_err(failed)?;
        drop_hop_by_hop(response.headers_mut());
        Ok(response.map(|body| Answer { body, _connection: connection }.boxed()))
    }
}

/// The body of an answer, with the connection that it comes from.
struct Answer {
    body: Incoming,
    _connection: AbortOnDropHandle<Result<(), hyper::Error>>,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An error with what led to it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let text = format!("gloveport: {refusal}\n");
    let mut response = Response::new(Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed());
    *response.status_mut() = refusal.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if let Ok(value) = format!("gloveport; error={}", refusal.kind()).parse() {
        headers.insert("proxy-status", value);
    }
    response
}

/// Writes down what was refused, host and port only, and not more than a log can bear.
#[derive(Debug)]
pub(crate) struct RefusalLog(Mutex<Window>);

#[derive(Debug)]
struct Window {
    begun: Instant,
    lines: u32,
    unsaid: u64,
}

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Window { begun: Instant::now(), lines: 0, unsaid: 0 }))
    }

    fn tell(&self, target: &Target) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.begun.elapsed() >= WINDOW {
            if window.unsaid > 0 {
                tracing::warn!(count = window.unsaid, "more was refused");
            }
            *window = Window { begun: Instant::now(), lines: 0, unsaid: 0 };
        }
        if window.lines < MOST_LINES {
            window.lines += 1;
            tracing::warn!(%target, "refused: no rule lets it through");
        } else {
            window.unsaid += 1;
        }
    }
}
