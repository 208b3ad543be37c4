//! Which service, with which key.

use std::time::Duration;

use gloveport_config::Config;
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderContext, ProviderError};
use http::Uri;

/// Which service, with which key.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// URL of the service, without a slash at the end.
    pub url: String,
    /// The key that it is sent as `X-API-Key`. Without one, nothing is asked.
    pub key: Option<Secret>,
    /// Time for each answer.
    pub answer_within: Duration,
}

impl RemoteOptions {
    /// As configured: `sandbox.remote_runtime_api_url`, `sandbox.api_key`, `sandbox.remote_runtime_api_timeout`.
    ///
    /// # Errors
    ///
    /// There is no URL, or none that can be used (remote-runtime-api 1).
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let sandbox = &context.config.sandbox;
        let wrong = |reason: &str, hint: &str| ProviderError::Access {
            engine: "the remote runtime".to_owned(),
            reason: reason.to_owned(),
            hint: hint.to_owned(),
        };
        let url = sandbox.remote_runtime_api_url.as_deref().unwrap_or_default().trim_end_matches('/');
        if url.is_empty() {
            let hint = "set sandbox.remote_runtime_api_url";
            return Err(wrong("remote_runtime_api_url is required in the remote runtime.", hint));
        }
        let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
        if !url.parse::<Uri>().is_ok_and(|uri| is_http(&uri)) {
            let hint = "set sandbox.remote_runtime_api_url to one like https://sandboxes.example.org";
            return Err(wrong("its URL is none", hint));
        }
        let key = sandbox.api_key.clone().filter(|key| !key.is_empty());
        let answer_within = u64::try_from(sandbox.remote_runtime_api_timeout).ok().filter(|seconds| *seconds > 0);
        let answer_within = Duration::from_secs(answer_within.unwrap_or(180));
        Ok(Self { url: url.to_owned(), key, answer_within })
    }

    /// Whether a service is named: only then is there a key.
    pub(crate) fn is_expected(config: &Config) -> bool {
        config.sandbox.api_key.as_ref().is_some_and(|key| !key.is_empty())
    }
}
