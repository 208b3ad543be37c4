//! The way out: an HTTP proxy for the sandbox.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Empty, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    client, server,
    service::service_fn,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{io::copy_bidirectional_with_sizes, net::TcpStream, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    edge::{self, Edge, Inside},
    headers::{drop_hop_by_hop, target_of, to_target},
    limits::EgressLimits,
    log::Lines,
    policy::Way,
    reach::{Reach, ready},
    refusal::{Refusal, causes, refused},
    watch::{Activity, Watched},
};
use gloveport_allow_list::{Rules, Target};

/// What a tunnel holds in each direction.
const BUFFER: usize = 16 * 1024;

type Body = BoxBody<Bytes, hyper::Error>;

/// What is put in on the way.
#[derive(Debug)]
pub(crate) struct Secrets {
    /// `None` is nothing.
    pub(crate) edge: Option<Edge>,
    /// Whom secrets are for that are not there any more.
    pub(crate) lost: Rules,
}

/// A proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    reach: Arc<Reach>,
    secrets: Secrets,
    /// The only one who is served; `None` is everybody.
    pub(crate) client: Option<IpAddr>,
    limits: EgressLimits,
    /// Lines about refusals.
    lines: Lines,
}

/// A tunnel that begins when its answer is out.
struct Tunnel {
    client: OnUpgrade,
    target: Watched,
    /// What it is read with; `None` if it passes unread.
    inside: Option<Inside>,
}

impl Tunnel {
    async fn run(self) {
        let Self { client, mut target, inside } = self;
        let client = match client.await {
            Ok(client) => TokioIo::new(client),
            Err(error) => return tracing::debug!(%error, "a tunnel did not begin"),
        };
        match inside {
            // It is large, and most connections do not need it.
            Some(inside) => Box::pin(edge::serve(inside, client, target)).await,
            None => copy(client, &mut target).await,
        }
    }
}

async fn copy(mut client: TokioIo<Upgraded>, target: &mut Watched) {
    if let Err(error) = copy_bidirectional_with_sizes(&mut client, target, BUFFER, BUFFER).await {
        tracing::debug!(%error, "a tunnel broke");
    }
}

impl Proxy {
    pub(crate) fn new(reach: Reach, secrets: Secrets, client: Option<IpAddr>, limits: EgressLimits) -> Self {
        Self { reach: Arc::new(reach), secrets, client, limits, lines: Lines::new() }
    }

    /// Serves one connection until it ends or nothing goes through it.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream) {
        ready(&stream);
        let activity = Activity::new();
        let limit = self.limits.idle;
        let way = Way::default();
        let requests = self.requests(Watched::new(stream, &activity), &activity, &way);
        tokio::select! {
            () = requests => {}
            () = way.closed(&self.reach.policy) => tracing::debug!("a connection leads where it may not any more, and ends"),
            () = activity.idle(limit) => tracing::debug!("a connection through the proxy is idle, and ends"),
        }
    }

    async fn requests(self: &Arc<Self>, stream: Watched, activity: &Activity, way: &Way) {
        // A connection becomes at most one tunnel.
        let (tunnels, mut tunnel) = mpsc::channel(1);
        let service = service_fn(|request| {
            let (proxy, activity, way, tunnels) = (Arc::clone(self), activity.clone(), way.clone(), tunnels.clone());
            async move { Ok::<_, Infallible>(proxy.answer(request, (&activity, &way), &tunnels).await) }
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
        if let Ok(tunnel) = tunnel.try_recv() {
            Tunnel::run(tunnel).await;
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: (&Activity, &Way),
        tunnels: &mpsc::Sender<Tunnel>,
    ) -> Response<Body> {
        let answered = match target_of(&request) {
            Ok(target) if edge::names(&self.secrets.lost, &target) => Err(Refusal::Lost { target }),
            Ok(target) if request.method() == Method::CONNECT => {
                self.tunnel(request, &target, connection, tunnels).await
            }
            Ok(target) => self.pass_on(request, &target, connection).await,
            Err(refusal) => Err(refusal),
        };
        answered.unwrap_or_else(|refusal| {
            if let Some(target) = refusal.denied() {
                self.tell(target);
            }
            refused(&refusal).map(|text| text.map_err(|never| match never {}).boxed())
        })
    }

    /// Writes down what was refused, host and port only.
    fn tell(&self, target: &Target) {
        let Some(unsaid) = self.lines.next() else { return };
        if unsaid > 0 {
            tracing::warn!(count = unsaid, "more was refused");
        }
        tracing::warn!(%target, "refused: no rule lets it through");
    }

    async fn tunnel(
        &self,
        mut request: Request<Incoming>,
        target: &Target,
        (activity, way): (&Activity, &Way),
        tunnels: &mpsc::Sender<Tunnel>,
    ) -> Result<Response<Body>, Refusal> {
        let stream = self.reach.lead(way, target).await?;
        let inside = self.inside(target, activity)?;
        let client = hyper::upgrade::on(&mut request);
        let tunnel = Tunnel { client, target: Watched::new(stream, activity), inside };
        tunnels.try_send(tunnel).map_err(|_| Refusal::Request("this connection is a tunnel already"))?;
        Ok(Response::new(Empty::new().map_err(|never| match never {}).boxed()))
    }

    /// What a tunnel is read with, if a secret goes to its target.
    fn inside(&self, target: &Target, activity: &Activity) -> Result<Option<Inside>, Refusal> {
        let Some(edge) = &self.secrets.edge else { return Ok(None) };
        let failed = |error: edge::EdgeError| Refusal::Edge { target: target.clone(), reason: error.to_string() };
        let site = edge.site(target).map_err(failed)?;
        Ok(site.map(|site| Inside {
            edge: edge.clone(),
            site,
            target: target.clone(),
            reach: Arc::clone(&self.reach),
            limits: self.limits.clone(),
            activity: activity.clone(),
        }))
    }

    async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        target: &Target,
        (activity, way): (&Activity, &Way),
    ) -> Result<Response<Body>, Refusal> {
        to_target(&mut request, target)?;
        let stream = self.reach.lead(way, target).await?;
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
