//! `grayswan`: the hosted monitor of Gray Swan (security 3.3).

mod messages;
#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use gloveport_protocol::{ActionEvent, BoxFuture, Event, Secret, SecurityRisk};
use reqwest::{
    Client,
    header::{AUTHORIZATION, HeaderValue},
};
use serde_json::{Value, json};

use crate::{
    analyzer::{Assessment, History, SecurityAnalyzer},
    error::AnalyzerError,
    http,
    options::AnalyzerOptions,
};

/// Where the monitor is.
const ENDPOINT: &str = "https://api.grayswan.ai/cygnal/monitor";
/// The policy that is used when none is configured.
const POLICY: &str = "689ca4885af3538a39b2ba04";
/// The variable with the key.
const KEY_VARIABLE: &str = "GRAYSWAN_API_KEY";
/// How many events of the conversation are sent with an action.
const HISTORY: usize = 20;
/// Time for a whole request.
const LIMIT: Duration = Duration::from_secs(30);

/// Up to which score a risk is the lower one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Up to here the risk is LOW.
    pub low: f64,
    /// Up to here the risk is MEDIUM; above it is HIGH.
    pub medium: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { low: 0.3, medium: 0.7 }
    }
}

/// Asks the hosted monitor. The last events of the conversation and the action leave this machine.
pub struct GraySwan {
    client: Client,
    endpoint: String,
    key: Secret,
    policy: String,
    thresholds: Thresholds,
    limit: Duration,
}

impl fmt::Debug for GraySwan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GraySwan")
            .field("endpoint", &self.endpoint)
            .field("policy", &self.policy)
            .field("thresholds", &self.thresholds)
            .finish_non_exhaustive()
    }
}

impl GraySwan {
    /// Takes key and policy from the environment.
    pub fn new(options: &AnalyzerOptions) -> Result<Self, AnalyzerError> {
        let set = |name: &str| options.environment.get(name).filter(|value| !value.is_empty());
        let key = set(KEY_VARIABLE).ok_or(AnalyzerError::MissingVariable { name: KEY_VARIABLE })?.clone();
        let policy = set("GRAYSWAN_POLICY_ID").map_or(POLICY, Secret::expose).to_owned();
        let client = options.http.clone().map_or_else(http::client, Ok)?;
        let endpoint = options.grayswan_endpoint.clone().unwrap_or_else(|| ENDPOINT.to_owned());
        Ok(Self { client, endpoint, key, policy, thresholds: Thresholds::default(), limit: LIMIT })
    }

    /// With another time for a whole request.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    async fn rate(&self, events: &[Event]) -> Result<SecurityRisk, AnalyzerError> {
        let messages = messages::convert(events);
        if messages.is_empty() {
            return Err(AnalyzerError::NoMessages);
        }
        let header = |text: &str| {
            let mut value =
                HeaderValue::from_str(text).map_err(|_| AnalyzerError::InvalidVariable { name: KEY_VARIABLE })?;
            value.set_sensitive(true);
            Ok::<_, AnalyzerError>(value)
        };
        let request = self
            .client
            .post(&self.endpoint)
            .header(AUTHORIZATION, header(&format!("Bearer {}", self.key.expose()))?)
            .header("x-grayswan-api-key", header(self.key.expose())?)
            .json(&json!({"messages": messages, "policy_id": self.policy}));
        let answer = http::json(request, &self.endpoint, self.limit).await?;
        self.risk_of(&answer)
    }

    fn risk_of(&self, answer: &Value) -> Result<SecurityRisk, AnalyzerError> {
        let wrong = |reason| Err(AnalyzerError::answer(&self.endpoint, reason));
        if !answer.is_object() {
            return wrong("it is no object");
        }
        let score = match answer.get("output") {
            None => 0.0,
            Some(Value::Object(output)) => match output.get("data") {
                None => 0.0,
                Some(Value::Object(data)) => match data.get("violation").map(Value::as_f64) {
                    None => 0.0,
                    Some(Some(score)) => score,
                    Some(None) => return wrong("its violation is not a number"),
                },
                Some(_) => return wrong("its data is no object"),
            },
            Some(_) => return wrong("its output is no object"),
        };
        // An indirect prompt injection was found.
        if answer.get("ipi").is_some_and(is_truthy) {
            return Ok(SecurityRisk::High);
        }
        Ok(match score {
            score if score <= self.thresholds.low => SecurityRisk::Low,
            score if score <= self.thresholds.medium => SecurityRisk::Medium,
            _ => SecurityRisk::High,
        })
    }
}

/// As Python understands it.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

impl SecurityAnalyzer for GraySwan {
    fn name(&self) -> &'static str {
        "grayswan"
    }

    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
        Box::pin(async move {
            let mut events = history.latest(HISTORY).await;
            events.push(Event::Action(action.clone()));
            self.rate(&events).await.map(Assessment::of)
        })
    }
}
