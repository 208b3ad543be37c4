//! One tunnel to a host that secrets go to.

use std::{convert::Infallible, io, sync::Arc};

use bytes::Bytes;
use http::{
    Method, Request, Response, StatusCode,
    header::{CONNECTION, UPGRADE},
};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    answer::{Answer, BodyError, covered_head},
    head::Head,
    mask::Patterns,
    secrets::Edge,
    site::Site,
    tasks::{Starter, Tasks},
    upgrade::Upgrade,
    upstream::{Lease, Upstream},
    used::Used,
};
use crate::{
    limits::EgressLimits,
    reach::Reach,
    refusal::{Refusal, refused},
    watch::{Activity, Watched},
};
use gloveport_allow_list::Target;

/// Requests of one connection at once.
const MOST_STREAMS: u32 = 128;
/// What HTTP/2 takes before it is read, for one request and for all.
const WINDOWS: (u32, u32) = (1 << 20, 4 << 20);
/// What HTTP/2 takes at once.
const FRAME: u32 = 64 * 1024;
/// What HTTP/2 keeps of one answer that the client does not take yet.
const SEND_BUFFER: usize = 256 * 1024;

type Body = UnsyncBoxBody<Bytes, BodyError>;

/// What a tunnel is served with.
pub(crate) struct Inside {
    pub(crate) edge: Edge,
    pub(crate) site: Arc<Site>,
    pub(crate) target: Target,
    pub(crate) reach: Arc<Reach>,
    pub(crate) limits: EgressLimits,
    pub(crate) activity: Activity,
}

/// Serves a tunnel until it ends. `outside` is its first connection to the target.
pub(crate) async fn serve<C>(inside: Inside, client: C, outside: Watched)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Inside { edge, site, target, reach, limits, activity } = inside;
    let tasks = Tasks::default();
    let ways = (reach, edge.outside().clone());
    let upstream = Arc::new(Upstream::new(target, ways, limits.clone(), activity, tasks.starter()));
    let begin = async {
        upstream.begin(outside).await;
        Ok(())
    };
    let accepted = tokio::try_join!(accept(&site, client, &limits), begin);
    let client = match accepted {
        Ok((client, ())) => client,
        Err(error) => {
            tracing::debug!(target = %upstream.target, %error, "a client inside does not begin TLS with the gate");
            return;
        }
    };
    // A connection becomes at most one other thing.
    let (upgrades, mut upgrade) = mpsc::channel(1);
    let tunnel = Arc::new(Tunnel { edge, site, upstream, limits, upgrades });
    if client.get_ref().1.alpn_protocol() == Some(b"h2") {
        serve_http2(&tunnel, client, tasks.starter()).await;
    } else {
        serve_http1(&tunnel, client).await;
    }
    if let Ok(upgrade) = upgrade.try_recv() {
        Upgrade::run(upgrade).await;
    }
}

async fn accept<C>(site: &Site, client: C, limits: &EgressLimits) -> io::Result<TlsStream<C>>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let acceptor = TlsAcceptor::from(Arc::clone(&site.tls));
    timeout(limits.header_time, acceptor.accept(client)).await.map_err(|_| io::ErrorKind::TimedOut)?
}

async fn serve_http1<C>(tunnel: &Arc<Tunnel>, client: TlsStream<C>)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| Arc::clone(tunnel).answer(request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // It counts the time between two requests as well, in which the client may rest.
        .header_read_timeout(tunnel.limits.idle)
        .max_buf_size(tunnel.limits.header_bytes)
        .half_close(true)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection inside failed");
    }
}

async fn serve_http2<C>(tunnel: &Arc<Tunnel>, client: TlsStream<C>, starter: Starter)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| Arc::clone(tunnel).answer(request));
    let connection = http2::Builder::new(starter)
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_frame_size(FRAME)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(tunnel.limits.header_bytes).unwrap_or(u32::MAX))
        .serve_connection(TokioIo::new(client), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection inside failed");
    }
}

/// A tunnel whose handshake is over.
struct Tunnel {
    edge: Edge,
    site: Arc<Site>,
    upstream: Arc<Upstream>,
    limits: EgressLimits,
    upgrades: mpsc::Sender<Upgrade>,
}

impl Tunnel {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let answered = self.pass_on(request).await;
        Ok(answered.unwrap_or_else(|refusal| {
            refused(&refusal).map(|text| text.map_err(|never| match never {}).boxed_unsync())
        }))
    }

    async fn pass_on(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let inside = hyper::upgrade::on(&mut request);
        let (parts, body) = request.into_parts();
        let mut head = Head::of(parts, &body, &self.upstream.target)?;
        let bound = &self.site.bound;
        let put_in = bound.put_in(&mut head, self.limits.header_bytes)?;
        for secret in bound.names(&put_in) {
            self.edge.uses().tell(&Used { secret, target: &self.upstream.target, method: &head.method });
        }
        let patterns = bound.answers(put_in);
        let (response, lease) = self.upstream.send(&head, body).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.upgrade(&head, response, (inside, lease), patterns);
        }
        self.cover(&head.method, response, Some(lease), &patterns)
    }

    /// An answer in which values are overwritten.
    fn cover(
        &self,
        method: &Method,
        mut response: Response<Incoming>,
        lease: Option<Lease>,
        patterns: &Patterns,
    ) -> Result<Response<Body>, Refusal> {
        let coding = covered_head(&mut response, method, &self.upstream.target, patterns)?;
        Ok(response.map(|body| Answer::new(body, coding, patterns, lease).boxed_unsync()))
    }

    /// The answer after which the connection is something else.
    fn upgrade(
        &self,
        head: &Head,
        mut response: Response<Incoming>,
        (inside, lease): (hyper::upgrade::OnUpgrade, Lease),
        patterns: Patterns,
    ) -> Result<Response<Body>, Refusal> {
        let failed = |reason: &str| Refusal::Answer { target: self.upstream.target.clone(), reason: reason.to_owned() };
        let became = response.headers().get(UPGRADE).cloned();
        let (Some(_), Some(became)) = (&head.upgrade, became) else {
            return Err(failed("it changes the protocol, which was not asked for"));
        };
        let outside = hyper::upgrade::on(&mut response);
        let mut answer = self.cover(&head.method, response, None, &patterns)?;
        answer.headers_mut().insert(UPGRADE, became);
        answer.headers_mut().insert(CONNECTION, http::HeaderValue::from_static("upgrade"));
        let upgrade = Upgrade { inside, outside, patterns, lease };
        self.upgrades.try_send(upgrade).map_err(|_| failed("the connection is something else already"))?;
        Ok(answer)
    }
}
