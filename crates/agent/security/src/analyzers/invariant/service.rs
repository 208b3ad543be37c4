//! The HTTP interface of the server (security 3.2).

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{error::AnalyzerError, http};

/// How often a session is asked for while the server does not answer at all, as it does until it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// How often in all.
    pub attempts: u32,
    /// The wait between two attempts.
    pub pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 120, pause: Duration::from_secs(1) }
    }
}

/// A server without a session.
#[derive(Debug, Clone)]
pub(super) struct Service {
    client: Client,
    base: String,
    limit: Duration,
}

/// A monitor in a session.
#[derive(Debug)]
pub(super) struct Monitor {
    service: Service,
    session: String,
    id: String,
}

impl Service {
    pub(super) fn new(client: Client, url: &str, limit: Duration) -> Self {
        Self { client, base: url.trim_end_matches('/').to_owned(), limit }
    }

    /// Makes a session and a monitor in it. Without a policy the template of the server is used, and without that an
    /// empty one.
    pub(super) async fn monitor(self, policy: Option<&str>, retries: Retries) -> Result<Monitor, AnalyzerError> {
        let session = self.session(retries).await?;
        let policy = match policy {
            Some(policy) => policy.to_owned(),
            None => self.template().await,
        };
        let request = self.request(Method::POST, "monitor/new", &session).json(&json!({"rule": policy}));
        let answer = self.send(request, "monitor/new").await?;
        let id = self.text(&answer, "monitor_id", "monitor/new")?;
        Ok(Monitor { service: self, session, id })
    }

    async fn session(&self, retries: Retries) -> Result<String, AnalyzerError> {
        let wanted = gloveport_ids::uuid().map_err(|_| AnalyzerError::Interrupted { analyzer: "invariant" })?;
        let mut attempt = 1;
        loop {
            let request = self.request(Method::GET, "session/new", &wanted);
            match self.send(request, "session/new").await {
                Ok(answer) => {
                    return self
                        .text(&answer, "id", "session/new")
                        .map_err(|error| AnalyzerError::Session(error.into()));
                }
                Err(error) if !error.is_network() => return Err(AnalyzerError::Session(error.into())),
                Err(error) if attempt >= retries.attempts => {
                    return Err(AnalyzerError::SessionTimedOut { attempts: attempt, last: error.into() });
                }
                Err(_) => tokio::time::sleep(retries.pause).await,
            }
            attempt += 1;
        }
    }

    async fn template(&self) -> String {
        let request = self.client.get(format!("{}/policy/template", self.base));
        match self.send(request, "policy/template").await {
            Ok(Value::String(policy)) => policy,
            Ok(_) => String::new(),
            Err(error) => {
                tracing::warn!(%error, "the server has no template of a policy; an empty one is used");
                String::new()
            }
        }
    }

    fn request(&self, method: Method, path: &str, session: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/{path}", self.base)).query(&[("session_id", session)])
    }

    async fn send(&self, request: RequestBuilder, path: &str) -> Result<Value, AnalyzerError> {
        http::json(request, &self.endpoint(path), self.limit).await
    }

    fn text(&self, answer: &Value, member: &str, path: &str) -> Result<String, AnalyzerError> {
        let text = answer.get(member).and_then(Value::as_str).filter(|text| is_path_segment(text));
        text.map(str::to_owned).ok_or_else(|| AnalyzerError::answer(&self.endpoint(path), "it has no usable id"))
    }

    fn endpoint(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }
}

impl Monitor {
    /// What the pending elements violate after the past ones.
    pub(super) async fn check(&self, past: &[Value], pending: &[Value]) -> Result<Vec<String>, AnalyzerError> {
        let path = format!("monitor/{}/check", self.id);
        let body = json!({"past_events": past, "pending_events": pending});
        let request = self.service.request(Method::POST, &path, &self.session).json(&body);
        let answer = self.service.send(request, "monitor/check").await?;
        let wrong = || AnalyzerError::answer(&self.service.endpoint("monitor/check"), "it is not a list of texts");
        let violations = answer.as_array().ok_or_else(wrong)?.iter();
        violations.map(|one| one.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
    }

    /// Ends the session. A failure only leaves it to the server.
    pub(super) async fn end_session(&self) {
        let request = self.service.request(Method::DELETE, "session/", &self.session);
        if let Err(error) = self.service.send(request, "session/").await {
            tracing::debug!(%error, "the session was not ended");
        }
    }
}

/// Whether an id can stand in a path as it is.
fn is_path_segment(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.chars().all(|one| one.is_ascii_alphanumeric() || "-_".contains(one))
}
