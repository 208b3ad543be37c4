//! Requests to the service, again where that helps, and which error an answer is.

use std::{fmt, time::Duration};

use gloveport_client::{Certificates, Pool, causes};
use gloveport_provider::ProviderError;
use http::{Method, StatusCode, header::RETRY_AFTER};
use reqwest::Response;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

use crate::RemoteOptions;

/// Tries of a request that the service has no time for (remote-runtime-api 1).
const TRIES: usize = 3;
/// Pause between them, if the service names none.
const PAUSE: Duration = Duration::from_secs(4);
/// Longest pause that it may name.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Most bytes of an answer: the list of all sandboxes of a key.
const ANSWER: usize = 64 * 1024 * 1024;
/// Most characters of what an error repeats of an answer.
const SHOWN: usize = 500;

/// How long an answer may take.
#[derive(Clone, Copy)]
enum Lasts {
    /// All of it comes within the limit.
    WithinLimit,
    /// The head does.
    AsItLikes,
}

/// The service.
pub(crate) struct Service {
    options: RemoteOptions,
    pool: OnceCell<Pool>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.options.url).finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(options: RemoteOptions) -> Self {
        Self { options, pool: OnceCell::new() }
    }

    /// Which service it is, for messages.
    pub(crate) fn name(&self) -> String {
        format!("the remote runtime at {}", self.options.url)
    }

    /// Asks for something; `None` if there is none.
    pub(crate) async fn get<T: DeserializeOwned>(&self, action: &str, path: &str) -> Result<Option<T>, ProviderError> {
        self.ask(action, Method::GET, path, None::<&()>).await?.map(|body| self.read(action, &body)).transpose()
    }

    /// Tells it to do something; `None` if it does not know what this is about.
    pub(crate) async fn post<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        action: &str,
        path: &str,
        body: &B,
    ) -> Result<Option<T>, ProviderError> {
        self.ask(action, Method::POST, path, Some(body)).await?.map(|body| self.read(action, &body)).transpose()
    }

    /// The same, where nobody looks at the answer: whether it knew what this is about.
    pub(crate) async fn tell<B: Serialize + Sync>(
        &self,
        action: &str,
        path: &str,
        body: &B,
    ) -> Result<bool, ProviderError> {
        Ok(self.ask(action, Method::POST, path, Some(body)).await?.is_some())
    }

    fn read<T: DeserializeOwned>(&self, action: &str, body: &[u8]) -> Result<T, ProviderError> {
        serde_json::from_slice(body)
            .map_err(|error| self.failed(action, format!("its answer is not understood: {error}")))
    }

    pub(crate) fn failed(&self, action: &str, reason: String) -> ProviderError {
        ProviderError::Engine { engine: self.name(), action: action.to_owned(), reason }
    }

    pub(crate) fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> ProviderError {
        ProviderError::Unreachable {
            engine: self.name(),
            source: causes(error).into(),
            hint: "look at sandbox.remote_runtime_api_url or GLOVEPORT_GATEWAY, and whether it runs".to_owned(),
        }
    }

    /// Removes something: whether it was there.
    pub(crate) async fn delete(&self, action: &str, path: &str) -> Result<bool, ProviderError> {
        Ok(self.ask(action, Method::DELETE, path, None::<&()>).await?.is_some())
    }

    /// Asks for something that comes as it is made; `None` if there is none.
    pub(crate) async fn stream(&self, action: &str, path: &str) -> Result<Option<Response>, ProviderError> {
        let answer = self.send(action, Method::GET, path, None::<&()>, Lasts::AsItLikes).await?;
        match answer.status() {
            status if status.is_success() => Ok(Some(answer)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.refused(action, status, &self.whole(action, answer).await?)),
        }
    }

    async fn ask<B: Serialize + Sync>(
        &self,
        action: &str,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let answer = self.send(action, method, path, body, Lasts::WithinLimit).await?;
        let status = answer.status();
        let text = self.whole(action, answer).await?;
        match status {
            status if status.is_success() => Ok(Some(text)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.refused(action, status, &text)),
        }
    }

    fn late(&self, action: &str) -> ProviderError {
        let action = format!("asking {} to {action}", self.name());
        ProviderError::Timeout { action, limit: self.options.answer_within }
    }

    /// Sends a request, again where the service has no time for it, and gives the head of the answer.
    async fn send<B: Serialize + Sync>(
        &self,
        action: &str,
        method: Method,
        path: &str,
        body: Option<&B>,
        lasts: Lasts,
    ) -> Result<Response, ProviderError> {
        let key = self.options.key.as_ref().ok_or_else(|| ProviderError::Access {
            engine: self.name(),
            reason: "no key is set".to_owned(),
            hint: "set sandbox.api_key or SANDBOX_API_KEY".to_owned(),
        })?;
        let pool = self.pool.get_or_try_init(async || Pool::new(Certificates::Checked)).await;
        let pool = pool.map_err(|error| self.failed(action, causes(&error)))?;
        let limit = self.options.answer_within;
        let mut tries = 0;
        loop {
            tries += 1;
            let request = pool.http().request(method.clone(), format!("{}{path}", self.options.url));
            let request = request.header("X-API-Key", key.expose());
            let request = match lasts {
                Lasts::WithinLimit => request.timeout(limit),
                Lasts::AsItLikes => request,
            };
            let request = match body {
                Some(body) => request.json(body),
                None => request,
            };
            let answer = match timeout(limit, request.send()).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) if !error.is_timeout() => return Err(self.unreachable(&error.without_url())),
                Ok(Err(_)) | Err(_) => return Err(self.late(action)),
            };
            if answer.status() == StatusCode::TOO_MANY_REQUESTS && tries < TRIES {
                let named = answer.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
                sleep(named.map_or(PAUSE, Duration::from_secs).min(LONGEST_PAUSE)).await;
                continue;
            }
            return Ok(answer);
        }
    }

    /// The body of an answer, if it is not too large.
    async fn whole(&self, action: &str, mut answer: Response) -> Result<Vec<u8>, ProviderError> {
        let mut text = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if text.len() + chunk.len() > ANSWER => {
                    return Err(self.failed(action, format!("its answer has more than {ANSWER} bytes")));
                }
                Ok(Some(chunk)) => text.extend_from_slice(&chunk),
                Ok(None) => return Ok(text),
                Err(error) if error.is_timeout() => return Err(self.late(action)),
                Err(error) => return Err(self.unreachable(&error.without_url())),
            }
        }
    }

    /// Which error a status is.
    fn refused(&self, action: &str, status: StatusCode, body: &[u8]) -> ProviderError {
        let told = serde_json::from_slice::<serde_json::Value>(body).ok();
        // The old form of errors, and that of the native API of our gateway.
        let in_old = told.as_ref().and_then(|told| told.get("detail")?.as_str());
        let in_native = told.as_ref().and_then(|told| told.pointer("/error/message")?.as_str());
        let detail = in_old.or(in_native).map(str::to_owned);
        let detail = detail.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
        let shown: String = detail.chars().take(SHOWN).collect();
        let reason = if shown.is_empty() { format!("status {status}") } else { format!("{shown} (status {status})") };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ProviderError::Access {
                engine: self.name(),
                reason,
                hint: "look at sandbox.api_key, SANDBOX_API_KEY or GLOVEPORT_GATEWAY_KEY".to_owned(),
            },
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => ProviderError::Unreachable {
                engine: self.name(),
                source: reason.into(),
                hint: "try it later".to_owned(),
            },
            _ => self.failed(action, reason),
        }
    }
}
