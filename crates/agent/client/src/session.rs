//! One server, the headers for it, and the layers around each request (`action-execution-client` 1 and 2).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Response, StatusCode, Url,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, UPGRADE},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{
    ClientError, ClientOptions, Failure, NativeError, Pause, Pool, Recovery, RequestLimits, StatusError, Verdict,
    call::{Call, Carry, Payload},
    retry::{self, Failures},
};
use tokio_util::sync::CancellationToken;

/// Most bytes of an answer that is an error.
pub(crate) const ERROR_BODY: usize = 1024 * 1024;

/// A server and what every request to it has in common.
pub(crate) struct Session {
    pool: Pool,
    base: Url,
    headers: HeaderMap,
    closed: AtomicBool,
    pub(crate) limits: RequestLimits,
    max_answer: usize,
    pub(crate) max_copy: u64,
    recovery: Option<Arc<dyn Recovery>>,
    pub(crate) pause: Arc<dyn Pause>,
    pub(crate) shutdown: CancellationToken,
    /// What carries the requests, if they do not go to the server itself.
    relay: Option<Arc<dyn Carry>>,
}

impl Session {
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        let given = &options.url;
        let text = if given.contains("://") { given.clone() } else { format!("http://{given}") };
        let mut base: Url = text.parse().map_err(|_| ClientError::Url { text: given.clone() })?;
        if !["http", "https"].contains(&base.scheme()) {
            return Err(ClientError::Scheme { url: given.clone() });
        }
        // Paths are appended: a server may stand behind a prefix.
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let pool = match &options.pool {
            Some(pool) => pool.clone(),
            None => Pool::shared()?,
        };
        Ok(Self {
            pool,
            base,
            headers: options.header_map()?,
            closed: AtomicBool::new(false),
            limits: options.limits,
            max_answer: options.max_answer,
            max_copy: options.max_copy,
            recovery: options.recovery.clone(),
            pause: Arc::clone(&options.pause),
            shutdown: options.shutdown.clone(),
            relay: options.relay.clone(),
        })
    }

    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// Marks the session as closed (`action-execution-client` 8).
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Sends a request through all layers and reads the whole answer.
    pub(crate) async fn request(&self, call: &Call<'_>) -> Result<Bytes, ClientError> {
        let began = Instant::now();
        let mut count = 0;
        loop {
            let error = match self.whole_answers_only(call).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let Some(recovery) = &self.recovery else { return Err(error) };
            count += 1;
            let closed = self.closed.load(Ordering::Relaxed);
            let failure = Failure { request: call.path, error: &error, count, elapsed: began.elapsed(), closed };
            match recovery.recover(failure).await {
                Verdict::Once => return self.whole_answers_only(call).await,
                Verdict::Fail => return Err(error),
                Verdict::Exhausted => {
                    return Err(ClientError::RetriesExhausted { attempts: count, last: Box::new(error) });
                }
                Verdict::Disconnected(message) => {
                    return Err(ClientError::Disconnected { message, source: Box::new(error) });
                }
                Verdict::Again { after } => tokio::select! {
                    () = self.pause.pause(after) => {}
                    () = self.shutdown.cancelled() => return Err(error),
                },
            }
        }
    }

    /// Layer B.
    async fn whole_answers_only(&self, call: &Call<'_>) -> Result<Bytes, ClientError> {
        let began = Instant::now();
        let mut failures = Failures::under(retry::INCOMPLETE);
        loop {
            match self.not_too_many(call).await {
                Err(error @ ClientError::Incomplete { .. }) => {
                    if let Some(recovery) = &self.recovery {
                        let closed = self.closed.load(Ordering::Relaxed);
                        let (count, elapsed) = (failures.count() + 1, began.elapsed());
                        let failure = Failure { request: call.path, error: &error, count, elapsed, closed };
                        if let Some(message) = recovery.lost(failure).await {
                            return Err(ClientError::Disconnected { message, source: Box::new(error) });
                        }
                    }
                    failures.wait_after(error, &*self.pause, &self.shutdown).await?;
                }
                result => return result,
            }
        }
    }

    /// Layer A.
    async fn not_too_many(&self, call: &Call<'_>) -> Result<Bytes, ClientError> {
        let mut failures = Failures::under(retry::STATUS_429);
        loop {
            match self.once(call).await {
                Err(error) if error.status().is_some_and(|status| status == 429) => {
                    failures.wait_after(error, &*self.pause, &self.shutdown).await?;
                }
                result => return result,
            }
        }
    }

    /// Sends a request one time and reads the whole answer.
    pub(crate) async fn once(&self, call: &Call<'_>) -> Result<Bytes, ClientError> {
        let mut response = self.send(call).await?;
        read(&mut response, call.limit, self.max_answer).await
    }

    /// Sends a request one time and reads the answer as JSON.
    pub(crate) async fn once_json<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, ClientError> {
        let body = self.once(call).await?;
        self.parse(call.path, &body)
    }

    /// Reads an answer as JSON.
    pub(crate) fn parse<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| self.bad_answer(path, error.to_string()))
    }

    pub(crate) fn bad_answer(&self, path: &str, reason: impl Into<String>) -> ClientError {
        ClientError::Answer { url: format!("{}{path}", self.base), reason: reason.into() }
    }

    /// Where a request goes, without its query.
    pub(crate) fn url(&self, path: &str) -> Result<Url, ClientError> {
        self.base
            .join(path)
            .map_err(|error| ClientError::Request { url: format!("{}{path}", self.base), reason: error.to_string() })
    }

    /// Sends a request one time. The answer has a status of success; its body is still to be read.
    pub(crate) async fn send(&self, call: &Call<'_>) -> Result<Response, ClientError> {
        if self.closed.swap(false, Ordering::Relaxed) {
            tracing::error!(url = %self.base, "a closed client is used; it is opened again");
        }
        if let Some(relay) = &self.relay {
            return relay.carry(call).await;
        }
        let url = self.url(call.path)?;
        let mut headers = self.headers.clone();
        headers.extend(call.headers.clone());
        let (progress, progressed) = watch::channel(Instant::now());
        let request = self.pool.http.request(call.method.clone(), url.clone()).query(&call.query);
        let request = match &call.payload {
            Payload::Empty => request,
            Payload::Json(body) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                request.body(body.clone())
            }
            Payload::Stream { content_type, length, make } => {
                let value = HeaderValue::from_str(content_type)
                    .map_err(|_| ClientError::Header { name: CONTENT_TYPE.to_string() })?;
                headers.insert(CONTENT_TYPE, value);
                if let Some(length) = length {
                    headers.insert(CONTENT_LENGTH, HeaderValue::from(*length));
                }
                request.body(make(progress))
            }
        };
        let sent = within(call.limit, Some(&progressed), request.headers(headers).send()).await;
        let response = match sent {
            Some(Ok(response)) => response,
            Some(Err(error)) => return Err(ClientError::sending(&url, error)),
            None => return Err(silent(&url, call.limit)),
        };
        let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS && call.headers.contains_key(UPGRADE);
        if response.status().is_success() || upgraded {
            return Ok(response);
        }
        Err(refusal(call, response).await)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// An answer that is no success, with what its body says. A body that breaks off is a broken connection.
async fn refusal(call: &Call<'_>, mut response: Response) -> ClientError {
    let status = response.status();
    let location = response.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let url = response.url().clone();
    let body = match read(&mut response, call.limit, ERROR_BODY).await {
        Ok(body) => serde_json::from_slice(&body).unwrap_or(Value::Null),
        Err(ClientError::TooLarge { .. }) => Value::Null,
        Err(error) => return error,
    };
    status_error(call, url, status, location, &body).into()
}

/// An answer that is no success, whose body is this.
pub(crate) fn status_error(
    call: &Call<'_>,
    url: Url,
    status: StatusCode,
    location: Option<String>,
    body: &Value,
) -> Box<StatusError> {
    Box::new(StatusError {
        method: call.method.to_string(),
        url,
        status,
        location,
        detail: body.get("detail").filter(|detail| !detail.is_null()).cloned(),
        native: body.get("error").cloned().and_then(|error| serde_json::from_value::<NativeError>(error).ok()),
    })
}

/// Reads an answer to its end.
pub(crate) async fn read(response: &mut Response, limit: Option<Duration>, most: usize) -> Result<Bytes, ClientError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = next_chunk(response, limit).await? {
        if whole.len() + chunk.len() > most {
            return Err(ClientError::TooLarge { url: response.url().to_string(), limit: most as u64 });
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// The next piece of an answer; none at its end.
pub(crate) async fn next_chunk(response: &mut Response, limit: Option<Duration>) -> Result<Option<Bytes>, ClientError> {
    match within(limit, None, response.chunk()).await {
        Some(Ok(chunk)) => Ok(chunk),
        Some(Err(error)) => Err(ClientError::sending(response.url(), error)),
        None => Err(silent(response.url(), limit)),
    }
}

fn silent(url: &Url, limit: Option<Duration>) -> ClientError {
    ClientError::Silent { url: url.to_string(), limit: limit.unwrap_or_default() }
}

/// Waits for a future while something happens at least as often as the limit; `None` if nothing did.
async fn within<T>(
    limit: Option<Duration>,
    progress: Option<&watch::Receiver<Instant>>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let Some(limit) = limit else { return Some(future.await) };
    let mut future = std::pin::pin!(future);
    let mut deadline = Instant::now() + limit;
    loop {
        tokio::select! {
            result = &mut future => return Some(result),
            () = tokio::time::sleep_until(deadline) => {
                let moved = progress.map(|progress| *progress.borrow() + limit);
                match moved.filter(|moved| *moved > deadline) {
                    Some(moved) => deadline = moved,
                    None => return None,
                }
            }
        }
    }
}
