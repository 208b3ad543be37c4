//! Tokens that a web server keeps valid (runtime-interface 11.3).

use std::time::Duration;

use gloveport_client::Pool;
use gloveport_protocol::{SESSION_KEY_HEADER, Secret};
use reqwest::{Method, Request, Url, header::HeaderValue};
use serde::Deserialize;

use super::{GitProviderError, ProviderType};
use crate::http_answer;

/// How long the server may take to answer.
const LIMIT: Duration = Duration::from_secs(15);
/// Most bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024;

/// Where the newest tokens of a session come from.
#[derive(Debug, Clone)]
pub struct Refresh {
    pool: Pool,
    url: Url,
    sid: String,
    session_key: Option<Secret>,
    limit: Duration,
}

#[derive(Deserialize)]
struct Answer {
    token: Secret,
}

impl Refresh {
    /// The server at this address.
    pub fn new(mut base: Url, sid: &str, session_key: Option<Secret>) -> Result<Self, GitProviderError> {
        base.set_path("/api/refresh-tokens");
        Ok(Self { pool: Pool::shared()?, url: base, sid: sid.to_owned(), session_key, limit: LIMIT })
    }

    /// With another limit for each answer than 15 s.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The newest token of a service. A failure is logged and gives none.
    pub async fn token(&self, provider: ProviderType) -> Option<Secret> {
        match tokio::time::timeout(self.limit, self.fetch(provider)).await {
            Ok(Ok(token)) => Some(token).filter(|token| !token.is_empty()),
            Ok(Err(reason)) => {
                tracing::error!(%provider, sid = self.sid, reason, "the newest token cannot be fetched");
                None
            }
            Err(_) => {
                let seconds = self.limit.as_secs();
                tracing::error!(%provider, sid = self.sid, seconds, "no answer to the request for the newest token");
                None
            }
        }
    }

    /// The reason of a failure holds nothing of the answer, which may hold a token.
    async fn fetch(&self, provider: ProviderType) -> Result<Secret, String> {
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("provider", provider.as_str()).append_pair("sid", &self.sid);
        let mut request = Request::new(Method::GET, url);
        if let Some(key) = &self.session_key {
            let mut value = HeaderValue::from_str(key.expose())
                .map_err(|_| "the key of the session has characters that cannot be sent".to_owned())?;
            value.set_sensitive(true);
            request.headers_mut().insert(SESSION_KEY_HEADER, value);
        }
        let response = self.pool.http().execute(request).await.map_err(http_answer::causes)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!("the server answered with status {}", response.status().as_u16()));
        }
        let body = http_answer::body(response, MAX_ANSWER).await.map_err(|error| error.to_string())?;
        serde_json::from_slice::<Answer>(&body)
            .map(|answer| answer.token)
            .map_err(|_| "the answer has no text `token`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shows_the_key() {
        let refresh =
            Refresh::new(Url::parse("https://app.example.com").unwrap(), "s1", Some("hunter2".into())).unwrap();
        assert!(!format!("{refresh:?}").contains("hunter2"));
    }
}
