//! What the answers of a model cost, in the form that events carry (actions-and-observations 2.3).

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::Value;

use super::LlmOptions;

/// Most entries of each list; older ones are in the sums alone.
const MAX_ENTRIES: usize = 100;

/// All that an editor has asked for.
#[derive(Debug, Serialize)]
pub(super) struct Metrics {
    accumulated_cost: f64,
    max_budget_per_task: Option<f64>,
    accumulated_token_usage: TokenUsage,
    costs: VecDeque<Cost>,
    response_latencies: VecDeque<Latency>,
    token_usages: VecDeque<TokenUsage>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct TokenUsage {
    model: String,
    prompt_tokens: u64,
    completion_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    context_window: u64,
    per_turn_token: u64,
    response_id: String,
}

#[derive(Debug, Serialize)]
struct Cost {
    model: String,
    #[serde(rename = "cost")]
    amount: f64,
    /// Seconds since 1970.
    timestamp: f64,
}

#[derive(Debug, Serialize)]
struct Latency {
    model: String,
    #[serde(rename = "latency")]
    seconds: f64,
    response_id: String,
}

impl Metrics {
    pub(super) fn new(model: &str) -> Self {
        Self {
            accumulated_cost: 0.0,
            max_budget_per_task: None,
            accumulated_token_usage: TokenUsage { model: model.to_owned(), ..TokenUsage::default() },
            costs: VecDeque::new(),
            response_latencies: VecDeque::new(),
            token_usages: VecDeque::new(),
        }
    }

    /// Adds a completion.
    pub(super) fn add(&mut self, options: &LlmOptions, completion: &Value, latency: Duration) {
        let count = |pointer: &str| completion.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let response_id = completion.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let prompt_tokens = count("/usage/prompt_tokens");
        let completion_tokens = count("/usage/completion_tokens");
        let usage = TokenUsage {
            model: options.model.clone(),
            prompt_tokens,
            completion_tokens,
            cache_read_tokens: count("/usage/prompt_tokens_details/cached_tokens"),
            cache_write_tokens: count("/usage/cache_creation_input_tokens"),
            context_window: options.context_window,
            per_turn_token: prompt_tokens.saturating_add(completion_tokens),
            response_id: response_id.clone(),
        };
        self.accumulated_token_usage.add(&usage);
        push(&mut self.token_usages, usage);
        let latency = Latency { model: options.model.clone(), seconds: latency.as_secs_f64(), response_id };
        push(&mut self.response_latencies, latency);
        if let Some(cost) = cost(options, prompt_tokens, completion_tokens) {
            let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            self.accumulated_cost += cost;
            push(&mut self.costs, Cost { model: options.model.clone(), amount: cost, timestamp });
        }
    }

    pub(super) fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).inspect_err(|error| tracing::error!(%error, "metrics have no JSON form")).ok()
    }
}

impl TokenUsage {
    fn add(&mut self, other: &Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.context_window = self.context_window.max(other.context_window);
        self.per_turn_token = other.per_turn_token;
    }
}

/// Nothing if no price is known.
#[expect(clippy::cast_precision_loss, reason = "a price is rounded anyway")]
fn cost(options: &LlmOptions, prompt: u64, completion: u64) -> Option<f64> {
    let (input, output) = (options.input_cost_per_token, options.output_cost_per_token);
    (input.is_some() || output.is_some())
        .then(|| prompt as f64 * input.unwrap_or(0.0) + completion as f64 * output.unwrap_or(0.0))
}

fn push<T>(list: &mut VecDeque<T>, entry: T) {
    if list.len() == MAX_ENTRIES {
        list.pop_front();
    }
    list.push_back(entry);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metrics_have_the_form_of_the_wire() {
        let url = "http://127.0.0.1/".parse().unwrap();
        let options = LlmOptions {
            context_window: 1000,
            input_cost_per_token: Some(0.5),
            output_cost_per_token: Some(2.0),
            ..LlmOptions::new(url, "m")
        };
        let mut metrics = Metrics::new("m");
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}});
        metrics.add(&options, &json!({"id": "r1", "usage": usage}), Duration::from_millis(250));
        metrics.add(&options, &json!({"usage": {"prompt_tokens": 1}}), Duration::from_secs(1));
        let mut value = metrics.to_value().unwrap();
        for index in 0..2 {
            let timestamp = value["costs"][index]["timestamp"].take();
            assert!(timestamp.as_f64().unwrap() > 1.7e9);
        }
        let usage = |prompt: u64, completion: u64, cached: u64, turn: u64, id: &str| {
            json!({
                "model": "m", "prompt_tokens": prompt, "completion_tokens": completion, "cache_read_tokens": cached,
                "cache_write_tokens": 0, "context_window": 1000, "per_turn_token": turn, "response_id": id,
            })
        };
        let expected = json!({
            "accumulated_cost": 13.5,
            "max_budget_per_task": null,
            "accumulated_token_usage": usage(11, 4, 3, 1, ""),
            "costs": [{"model": "m", "cost": 13.0, "timestamp": null}, {"model": "m", "cost": 0.5, "timestamp": null}],
            "response_latencies": [
                {"model": "m", "latency": 0.25, "response_id": "r1"},
                {"model": "m", "latency": 1.0, "response_id": ""},
            ],
            "token_usages": [usage(10, 4, 3, 14, "r1"), usage(1, 0, 0, 1, "")],
        });
        assert_eq!(value.to_string(), expected.to_string());
    }

    #[test]
    fn lists_have_an_end_and_sums_go_on() {
        let options = LlmOptions::new("http://127.0.0.1/".parse().unwrap(), "m");
        let mut metrics = Metrics::new("m");
        for _ in 0..=MAX_ENTRIES {
            metrics.add(&options, &json!({"usage": {"prompt_tokens": 1}}), Duration::ZERO);
        }
        assert_eq!((metrics.token_usages.len(), metrics.costs.len()), (MAX_ENTRIES, 0));
        assert_eq!(metrics.accumulated_token_usage.prompt_tokens, MAX_ENTRIES as u64 + 1);
    }
}
