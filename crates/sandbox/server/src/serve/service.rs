//! The router as one connection sees it: it tells the connection's activity when a request begins and when its answer
//! has ended.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use axum::{Router, body::Body, response::Response, routing::future::RouteFuture};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header::CONNECTION};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::task::JoinHandle;
use tower::Service as _;

use super::{activity::Activity, strangers::Stranger};
use crate::{
    answer,
    app::App,
    auth,
    occupancy::{Occupancy, Occupied},
    plugins,
    viewer::{self, Peer},
};

/// Answers that a stranger gets on one connection.
const ANSWERS: usize = 32;
/// Length of a head that a stranger does not get another answer after on the same connection: the memory for it would
/// stay.
const LONG_HEAD: usize = 8 * 1024;

/// The service of one connection.
#[derive(Debug)]
pub(super) struct ConnectionService {
    router: Router,
    activity: Arc<Activity>,
    occupancy: Arc<Occupancy>,
    entrance: Option<Entrance>,
    requests: AtomicUsize,
}

/// What tells whether a connection may be here.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) app: Arc<App>,
    pub(super) stranger: Arc<Stranger>,
    pub(super) peer: SocketAddr,
}

impl ConnectionService {
    pub(super) fn new(
        router: Router,
        activity: Arc<Activity>,
        occupancy: Arc<Occupancy>,
        entrance: Option<Entrance>,
    ) -> Self {
        Self { router, activity, occupancy, entrance, requests: AtomicUsize::new(0) }
    }

    /// What is to be seen about in the answer, if the connection is still a stranger's.
    fn receive(&self, request: &Request<Incoming>) -> Option<Reception> {
        let Entrance { app, stranger, peer: _ } = self.entrance.as_ref()?;
        if stranger.is_known() {
            return None;
        }
        let length = stranger.heard();
        if auth::is_known(&app.current().options, request) {
            stranger.admit();
            return None;
        }
        let is_last = length > LONG_HEAD || self.requests.fetch_add(1, Relaxed) + 1 >= ANSWERS;
        let asks_plugin = plugins::owns(request.uri().path());
        Some(Reception { stranger: Arc::clone(stranger), asks_plugin, is_last })
    }
}

/// A request of a stranger.
#[derive(Debug)]
struct Reception {
    stranger: Arc<Stranger>,
    /// The gate of a plugin lets in by itself.
    asks_plugin: bool,
    is_last: bool,
}

impl Reception {
    fn see_off(&self, response: &mut Response) {
        if self.asks_plugin && response.status() != StatusCode::FORBIDDEN {
            self.stranger.admit();
        } else if self.is_last || response.status() == StatusCode::FORBIDDEN {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, mut request: Request<Incoming>) -> Answering {
        self.activity.busy();
        let reception = self.receive(&request);
        // Who may not be here does not keep a sandbox from resting.
        let is_use = reception.as_ref().is_none_or(|reception| reception.asks_plugin);
        let occupied = is_use.then(|| self.occupancy.occupy_for(request.uri().path())).flatten();
        if let Some(entrance) = self.entrance.as_ref().filter(|_| viewer::owns(request.uri().path())) {
            request.extensions_mut().insert(Peer(entrance.peer));
        }
        let goes_on = reception.is_none() && request.method() == Method::POST;
        let future = self.router.clone().call(request.map(Body::new));
        let tasks = self.entrance.as_ref().filter(|_| goes_on).and_then(|entrance| entrance.app.room_apart());
        let future = match tasks {
            Some(tasks) => Work::Apart(tasks.spawn(future)),
            None => Work::Here(future),
        };
        Answering { future, activity: Arc::clone(&self.activity), occupied, reception }
    }
}

/// What makes an answer.
#[expect(clippy::large_enum_variant, reason = "most are of the larger one")]
enum Work {
    /// It ends with the connection.
    Here(RouteFuture<Infallible>),
    /// It goes on without its client, even if that went before the request was looked at.
    Apart(JoinHandle<Result<Response, Infallible>>),
}

impl Future for Work {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let result = match self.get_mut() {
            Self::Here(future) => ready!(Pin::new(future).poll(context)),
            // It fails when it panics, which the router has caught, and when everything ends.
            Self::Apart(task) => ready!(Pin::new(task).poll(context)).unwrap_or_else(|_ended| Ok(answer::unexpected())),
        };
        let Ok(response) = result;
        Poll::Ready(response)
    }
}

/// A request that is worked on.
pub(super) struct Answering {
    future: Work,
    activity: Arc<Activity>,
    occupied: Option<Occupied>,
    reception: Option<Reception>,
}

impl Future for Answering {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = ready!(Pin::new(&mut self.future).poll(context));
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.activity.upgraded();
        }
        if let Some(reception) = &self.reception {
            reception.see_off(&mut response);
        }
        let (activity, occupied) = (Arc::clone(&self.activity), self.occupied.take());
        Poll::Ready(Ok(response.map(|body| Answer { body, activity, _occupied: occupied })))
    }
}

/// The body of an answer. The connection is idle when it is dropped, which is as soon as its last piece is taken.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    activity: Arc<Activity>,
    _occupied: Option<Occupied>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.activity.idle();
    }
}
