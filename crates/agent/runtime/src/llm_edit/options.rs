//! What an editor can be told.

use std::{fmt, sync::Arc, time::Duration};

use gloveport_client::{Clock, Pause};
use gloveport_protocol::Secret;
use reqwest::Url;

/// A model, how it is reached, and how often it is asked (the configuration `draft_editor`).
#[derive(Clone)]
pub struct LlmOptions {
    /// The endpoint up to `/chat/completions`, such as `https://api.openai.com/v1`.
    pub base_url: Url,
    /// The key, sent as a bearer token.
    pub api_key: Option<Secret>,
    /// The model, as the endpoint calls it.
    pub model: String,
    /// How much the answers vary; nothing leaves it to the endpoint.
    pub temperature: Option<f64>,
    /// Most tokens of an answer; nothing leaves it to the endpoint.
    pub max_output_tokens: Option<u32>,
    /// How many tokens the model can read, for the metrics; 0 if that is not known.
    pub context_window: u64,
    /// What a token that is sent costs, in the currency of the metrics.
    pub input_cost_per_token: Option<f64>,
    /// What a token of an answer costs.
    pub output_cost_per_token: Option<f64>,
    /// Time for one answer.
    pub timeout: Duration,
    /// What happens when the endpoint fails in a way that may pass.
    pub retries: Retries,
    /// How often the model may correct what a linter finds wrong with one edit.
    pub correct_num: u32,
    /// More headers, as names and values.
    pub headers: Vec<(String, Secret)>,
    /// How it waits before a request is sent again.
    pub pause: Arc<dyn Pause>,
}

/// How often a request is sent again, and after what waits. The wait doubles each time; an endpoint that says how long
/// to wait is heard up to the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Most repetitions.
    pub count: u32,
    /// Shortest wait.
    pub least: Duration,
    /// Longest wait.
    pub most: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { count: 5, least: Duration::from_secs(8), most: Duration::from_secs(64) }
    }
}

impl Retries {
    /// The wait after so many failures.
    pub(super) fn wait(&self, failures: u32, asked_for: Option<Duration>) -> Duration {
        let doubled = self.least.saturating_mul(1 << failures.saturating_sub(1).min(16));
        asked_for.unwrap_or(doubled).max(self.least).min(self.most)
    }
}

impl LlmOptions {
    /// The defaults for a model at an endpoint.
    pub fn new(base_url: Url, model: impl Into<String>) -> Self {
        Self {
            base_url,
            api_key: None,
            model: model.into(),
            temperature: None,
            max_output_tokens: None,
            context_window: 0,
            input_cost_per_token: None,
            output_cost_per_token: None,
            timeout: Duration::from_mins(5),
            retries: Retries::default(),
            correct_num: 5,
            headers: Vec::new(),
            pause: Arc::new(Clock),
        }
    }
}

impl fmt::Debug for LlmOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("LlmOptions")
            .field("host", &self.base_url.host_str())
            .field("model", &self.model)
            .field("headers", &names)
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .field("correct_num", &self.correct_num)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_within_their_bounds() {
        let retries = Retries { count: 9, least: Duration::from_secs(8), most: Duration::from_secs(64) };
        let seconds = Duration::from_secs;
        for (failures, asked_for, expected) in [
            (1, None, 8),
            (2, None, 16),
            (4, None, 64),
            (40, None, 64),
            (1, Some(seconds(20)), 20),
            (1, Some(seconds(1)), 8),
            (1, Some(seconds(3600)), 64),
        ] {
            assert_eq!(retries.wait(failures, asked_for), seconds(expected), "{failures} {asked_for:?}");
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        let url = Url::parse("https://user:hunter2@llm.example.com/v1").unwrap();
        let headers = vec![("X-Key".to_owned(), Secret::from("hunter2"))];
        let options = LlmOptions { api_key: Some("hunter2".into()), headers, ..LlmOptions::new(url, "m") };
        let shown = format!("{options:?}");
        assert!(!shown.contains("hunter2") && shown.contains("X-Key"), "{shown}");
    }
}
