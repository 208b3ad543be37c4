//! The endpoint: OpenAI's chat completions, one whole answer for each request.

use std::time::{Duration, Instant};

use gloveport_client::Pool;
use gloveport_protocol::Secret;
use reqwest::{
    Method, Request, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde_json::{Map, Value, json};

use super::{LlmError, LlmOptions};
use crate::http_answer;

/// Most bytes of an answer.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// Most bytes of an answer that is no success, and most characters of what is told from it.
const MAX_ERROR: usize = 64 * 1024;
const MAX_MESSAGE: usize = 300;

/// An endpoint with a model.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) options: LlmOptions,
    pool: Pool,
    url: Url,
    headers: HeaderMap,
}

/// A failure, and how long the endpoint wants to be left alone.
struct Failure {
    error: LlmError,
    wait: Option<Duration>,
}

impl From<LlmError> for Failure {
    fn from(error: LlmError) -> Self {
        Self { error, wait: None }
    }
}

impl Chat {
    pub(super) fn new(options: LlmOptions) -> Result<Self, LlmError> {
        let mut url = options.base_url.clone();
        if !(matches!(url.scheme(), "http" | "https") && url.has_host()) {
            return Err(LlmError::Url);
        }
        url.path_segments_mut().map_err(|()| LlmError::Url)?.pop_if_empty().extend(["chat", "completions"]);
        Ok(Self { headers: headers(&options)?, pool: Pool::shared()?, url, options })
    }

    /// The answer to messages, and the time it took. Failures that may pass are met with patience.
    pub(super) async fn complete(
        &self,
        messages: &Value,
        tools: Option<&Value>,
    ) -> Result<(Value, Duration), LlmError> {
        let body = self.body(messages, tools).to_string();
        let mut failures = 0;
        loop {
            let started = Instant::now();
            let limit = self.options.timeout;
            let answer = tokio::time::timeout(limit, self.send(body.clone())).await;
            let Failure { error, wait } = match answer.unwrap_or_else(|_| Err(LlmError::Silent(limit.as_secs()).into()))
            {
                Ok(completion) => return Ok((completion, started.elapsed())),
                Err(failure) => failure,
            };
            failures += 1;
            if !error.may_pass() {
                return Err(error);
            }
            if failures > self.options.retries.count {
                return Err(LlmError::Exhausted { attempts: failures, last: Box::new(error) });
            }
            let wait = self.options.retries.wait(failures, wait);
            tracing::warn!(%error, ?wait, model = self.options.model, "the draft editor is asked again");
            self.options.pause.pause(wait).await;
        }
    }

    fn body(&self, messages: &Value, tools: Option<&Value>) -> Value {
        let options = &self.options;
        let optional = [
            ("temperature", options.temperature.map(|value| json!(value))),
            ("max_completion_tokens", options.max_output_tokens.map(|value| json!(value))),
            ("tools", tools.cloned()),
        ];
        let mut body =
            Map::from_iter([("model".to_owned(), json!(options.model)), ("messages".to_owned(), messages.clone())]);
        body.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Value::Object(body)
    }

    async fn send(&self, body: String) -> Result<Value, Failure> {
        let mut request = Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(body.into());
        let unreachable = |error| LlmError::Unreachable(http_answer::causes(error));
        let response = self.pool.http().execute(request).await.map_err(unreachable)?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(self.failure(status, response).await);
        }
        let body = http_answer::body(response, MAX_ANSWER).await.map_err(|error| match error {
            http_answer::AnswerError::Broken(reason) => LlmError::Unreachable(reason),
            http_answer::AnswerError::TooLarge(_) => LlmError::Answer(error.to_string()),
        })?;
        Ok(serde_json::from_slice(&body).map_err(|error| LlmError::Answer(error.to_string()))?)
    }

    async fn failure(&self, status: StatusCode, response: Response) -> Failure {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            // What endpoints say here often repeats a part of the key.
            return LlmError::Refused(status.as_u16()).into();
        }
        let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let message = http_answer::body(response, MAX_ERROR).await.ok().and_then(|body| self.message(&body));
        Failure { error: LlmError::Status { status: status.as_u16(), message }, wait: wait.map(Duration::from_secs) }
    }

    /// What an endpoint says is wrong, in one line and without the secrets that it was sent.
    fn message(&self, body: &[u8]) -> Option<String> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let message = ["/error/message", "/error", "/message", "/detail"]
            .into_iter()
            .find_map(|pointer| body.pointer(pointer).and_then(Value::as_str))?;
        let secrets = self.options.api_key.iter().chain(self.options.headers.iter().map(|(_, value)| value));
        let message = secrets
            .filter(|secret| !secret.is_empty())
            .fold(message.to_owned(), |message, secret| message.replace(secret.expose(), "**********"));
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(line.chars().filter(|sign| !sign.is_control()).take(MAX_MESSAGE).collect())
    }
}

fn headers(options: &LlmOptions) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let secret = |name: &HeaderName, value: &str| {
        let mut value = HeaderValue::from_str(value).map_err(|_| LlmError::Header(name.to_string()))?;
        value.set_sensitive(true);
        Ok::<_, LlmError>(value)
    };
    if let Some(key) = options.api_key.as_ref().map(Secret::expose).filter(|key| !key.is_empty()) {
        headers.insert(AUTHORIZATION, secret(&AUTHORIZATION, &format!("Bearer {key}"))?);
    }
    for (name, value) in &options.headers {
        let parsed = HeaderName::try_from(name).map_err(|_| LlmError::Header(name.escape_debug().to_string()))?;
        let value = secret(&parsed, value.expose())?;
        headers.insert(parsed, value);
    }
    Ok(headers)
}
