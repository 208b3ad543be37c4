//! Which of the configured services has a repository (runtime-interface 11.2).

use std::{collections::BTreeMap, time::Duration};

use gloveport_client::Pool;
use gloveport_protocol::Secret;
use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::{
    GitProviderError, ProviderFailure, ProviderToken, ProviderTokens, ProviderType, RepositoryName, api, clone_url,
};
use crate::http_answer;

/// How long a service may take to answer.
const LIMIT: Duration = Duration::from_secs(15);
/// Most bytes of an answer. Those of GitHub have some ten thousand.
const MAX_ANSWER: usize = 1024 * 1024;

/// A repository that a service has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The service.
    pub provider: ProviderType,
    /// Its canonical name there.
    pub full_name: RepositoryName,
}

/// How much somebody wants a repository; says how loudly its absence is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It was asked for: a failure is an error in the log.
    Required,
    /// It may not exist: a failure is for debugging only.
    Optional,
}

/// The services that a user has configured.
#[derive(Debug, Clone)]
pub struct GitProviders {
    tokens: ProviderTokens,
    pool: Pool,
    bases: BTreeMap<ProviderType, Url>,
    limit: Duration,
}

impl GitProviders {
    /// The services of these tokens, on the connections of the process.
    pub fn new(tokens: ProviderTokens) -> Result<Self, GitProviderError> {
        Ok(Self { tokens, pool: Pool::shared()?, bases: BTreeMap::new(), limit: LIMIT })
    }

    /// With another address of a service's interface, up to the part that differs for each request.
    #[must_use]
    pub fn with_api_base(mut self, provider: ProviderType, base: Url) -> Self {
        self.bases.insert(provider, base);
        self
    }

    /// With another limit for each answer than 15 s.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The tokens.
    pub const fn tokens(&self) -> &ProviderTokens {
        &self.tokens
    }

    /// The first service in order that has a repository.
    ///
    /// Only services that have an entry are asked. One without a token is asked without one, so it finds what is public.
    pub async fn resolve(&self, repository: &str, wanted: Wanted) -> Result<Repository, GitProviderError> {
        let name = RepositoryName::parse(repository)?;
        let mut failures = Vec::new();
        for (provider, token) in self.tokens.iter() {
            match self.ask(provider, token, &name).await {
                Ok(full_name) => return Ok(Repository { provider, full_name }),
                Err(failure) => failures.push((provider, failure)),
            }
        }
        let reasons: Vec<_> = failures.iter().map(|(provider, failure)| format!("{provider}: {failure}")).collect();
        let reasons = if reasons.is_empty() { "no provider is configured".to_owned() } else { reasons.join("; ") };
        match wanted {
            Wanted::Required => tracing::error!(repository, reasons, "no provider gives access to the repository"),
            Wanted::Optional => tracing::debug!(repository, reasons, "no provider gives access to the repository"),
        }
        Err(GitProviderError::Inaccessible { repository: repository.to_owned(), failures })
    }

    /// The URL that a repository is cloned from, with the token in it if there is one.
    pub async fn authenticated_url(&self, repository: &str, wanted: Wanted) -> Result<Secret, GitProviderError> {
        let repository = self.resolve(repository, wanted).await?;
        let provider = repository.provider;
        clone_url(&repository, self.tokens.get(provider))
            .map_err(|failure| GitProviderError::Provider { provider, failure })
    }

    async fn ask(
        &self,
        provider: ProviderType,
        token: &ProviderToken,
        name: &RepositoryName,
    ) -> Result<RepositoryName, ProviderFailure> {
        let request = api::request(provider, token, name, self.bases.get(&provider))?;
        let answer = tokio::time::timeout(self.limit, self.answer(request)).await;
        let answer = answer.map_err(|_| ProviderFailure::Silent(self.limit.as_secs()))??;
        api::full_name(provider, name, &answer)
    }

    async fn answer(&self, request: reqwest::Request) -> Result<Value, ProviderFailure> {
        let unreachable = |error| ProviderFailure::Unreachable(http_answer::causes(error));
        // The pool follows no redirects.
        let response = self.pool.http().execute(request).await.map_err(unreachable)?;
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(ProviderFailure::Refused(status.as_u16())),
            StatusCode::NOT_FOUND => return Err(ProviderFailure::NotFound),
            StatusCode::TOO_MANY_REQUESTS => return Err(ProviderFailure::RateLimit),
            _ if status.is_redirection() => return Err(ProviderFailure::Redirect(status.as_u16())),
            _ if status != StatusCode::OK => return Err(ProviderFailure::Status(status.as_u16())),
            _ => {}
        }
        let body = http_answer::body(response, MAX_ANSWER).await;
        let body = body.map_err(|error| ProviderFailure::Answer(error.to_string()))?;
        serde_json::from_slice(&body).map_err(|error| ProviderFailure::Answer(error.to_string()))
    }
}
