//! One request, and what carries it where it does not go to the server itself.

use std::{fmt, time::Duration};

use bytes::Bytes;
use gloveport_protocol::BoxFuture;
use reqwest::{Body, Method, Response, header::HeaderMap};
use tokio::{sync::watch, time::Instant};

use crate::ClientError;

/// What carries requests into a sandbox. [`Relay`](crate::Relay) is one.
pub trait Carry: fmt::Debug + Send + Sync {
    /// Sends a request one time. The answer has a status of success; its body is still to be read.
    fn carry<'a>(&'a self, call: &'a Call<'_>) -> BoxFuture<'a, Result<Response, ClientError>>;
}

/// One request, which can be sent any number of times.
pub struct Call<'a> {
    pub(crate) method: Method,
    /// Without a slash in front.
    pub(crate) path: &'a str,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload,
    /// How long nothing may happen; none is no limit.
    pub(crate) limit: Option<Duration>,
}

/// The body of a request.
pub(crate) enum Payload {
    Empty,
    Json(Bytes),
    /// A body that is made anew for each attempt, with its type and its length, if known.
    Stream {
        content_type: String,
        length: Option<u64>,
        make: Box<dyn Fn(Progress) -> Body + Send + Sync>,
    },
}

/// Tells a waiting request that a part of its body was taken.
pub(crate) type Progress = watch::Sender<Instant>;

impl fmt::Debug for Call<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Call").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'a> Call<'a> {
    pub(crate) fn get(path: &'a str, limit: Duration) -> Self {
        Self {
            method: Method::GET,
            path,
            query: Vec::new(),
            headers: HeaderMap::new(),
            payload: Payload::Empty,
            limit: Some(limit),
        }
    }

    pub(crate) fn post(
        path: &'a str,
        body: &impl serde::Serialize,
        limit: Option<Duration>,
    ) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| ClientError::Request { url: path.to_owned(), reason: error.to_string() })?;
        let payload = Payload::Json(body.into());
        Ok(Self { method: Method::POST, payload, limit, ..Self::get(path, Duration::ZERO) })
    }
}
