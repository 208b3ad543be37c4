//! The router as one connection sees it: it tells the connection's activity when a request begins and when its answer
//! has ended.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{Router, body::Body, response::Response, routing::future::RouteFuture};
use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tower::Service as _;

use super::activity::Activity;
use crate::occupancy::{Occupancy, Occupied};

/// The service of one connection.
#[derive(Debug)]
pub(super) struct ConnectionService {
    router: Router,
    activity: Arc<Activity>,
    occupancy: Arc<Occupancy>,
}

impl ConnectionService {
    pub(super) fn new(router: Router, activity: Arc<Activity>, occupancy: Arc<Occupancy>) -> Self {
        Self { router, activity, occupancy }
    }
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        self.activity.busy();
        let occupied = self.occupancy.occupy_for(request.uri().path());
        let future = self.router.clone().call(request.map(Body::new));
        Answering { future, activity: Arc::clone(&self.activity), occupied }
    }
}

/// A request that is worked on.
pub(super) struct Answering {
    future: RouteFuture<Infallible>,
    activity: Arc<Activity>,
    occupied: Option<Occupied>,
}

impl Future for Answering {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = match ready!(Pin::new(&mut self.future).poll(context)) {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.activity.upgraded();
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
