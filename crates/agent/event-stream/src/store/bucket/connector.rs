//! The HTTP client of this program for the library that speaks to buckets.

use std::{error::Error, fmt, io};

use http_body_util::BodyExt as _;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    },
};
use reqwest::{Body, Client, Request};

use crate::store::{BoxFuture, HttpLimits, StoreError, http};

/// Gives the library the HTTP client of this program, so that TLS, certificates and limits are the same everywhere.
#[derive(Clone)]
pub(crate) struct Connector {
    client: Client,
    limits: HttpLimits,
}

impl Connector {
    pub(crate) fn new(limits: HttpLimits) -> Result<Self, StoreError> {
        Ok(Self { client: http::client(limits)?, limits })
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limit = self.limits.request_with(request.body().content_length());
        let mut request = Request::try_from(request.map(Body::wrap)).map_err(failed)?;
        *request.timeout_mut() = Some(limit);
        let response = self.client.execute(request).await.map_err(failed)?;
        let (head, body) = ::http::Response::<Body>::from(response).into_parts();
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body.map_err(failed))))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Connector {
    // The trait is written for a macro; this is what the macro makes of `async fn`.
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.send(request))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// The kind decides whether the library sends the request again.
fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else {
        let mut causes = std::iter::successors(error.source(), |error| (*error).source());
        causes.find_map(kind_of).unwrap_or(HttpErrorKind::Unknown)
    };
    // The library names the URL itself where it has no secrets.
    HttpError::new(kind, error.without_url())
}

fn kind_of(error: &(dyn Error + 'static)) -> Option<HttpErrorKind> {
    if let Some(error) = error.downcast_ref::<hyper::Error>()
        && (error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted())
    {
        return Some(HttpErrorKind::Request);
    }
    let interrupted = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
    ];
    match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::TimedOut => Some(HttpErrorKind::Timeout),
        kind if interrupted.contains(&kind) => Some(HttpErrorKind::Interrupted),
        _ => None,
    }
}
