//! Events as messages of a chat with tools (security 3.3).

use gloveport_protocol::{Action, ActionEvent, Event, EventSource, ObservationEvent};
use serde_json::{Map, Value, json};

/// The messages of a conversation, oldest first. Events that are no part of the chat are left out.
pub(super) fn convert(events: &[Event]) -> Vec<Value> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Action(event) => action(event),
            Event::Observation(event) => observation(event),
        })
        .collect()
}

fn action(event: &ActionEvent) -> Option<Value> {
    match &event.action {
        Action::ChangeAgentState(_) | Action::Recall(_) | Action::TaskTracking(_) => None,
        Action::System(system) => Some(json!({"role": "system", "content": system.content})),
        Action::Message(message) => {
            let role = match event.source? {
                EventSource::User => "user",
                EventSource::Agent => "assistant",
                EventSource::Environment => return None,
            };
            Some(json!({"role": role, "content": message.content}))
        }
        _ if event.source == Some(EventSource::Agent) => tool_calls(event.tool_call_metadata.as_ref()?),
        _ => None,
    }
}

/// What the model said when it called the tools.
fn tool_calls(metadata: &Value) -> Option<Value> {
    let message = metadata.get("model_response")?.get("choices")?.get(0)?.get("message")?;
    let calls: Vec<Value> = message.get("tool_calls")?.as_array()?.iter().map(tool_call).collect();
    if calls.is_empty() {
        return None;
    }
    let content = message.get("content").cloned().unwrap_or_default();
    Some(json!({"role": "assistant", "content": content, "tool_calls": calls}))
}

fn tool_call(call: &Value) -> Value {
    let function = call.get("function");
    let member = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
    let arguments = match member(function, "arguments") {
        Some(Value::String(text)) => Value::from(without_risk(text)),
        other => other.unwrap_or_default(),
    };
    json!({
        "id": member(Some(call), "id").unwrap_or_default(),
        "type": member(Some(call), "type").unwrap_or_else(|| Value::from("function")),
        "function": {"name": member(function, "name").unwrap_or_default(), "arguments": arguments},
    })
}

/// The arguments of a tool call without the rating that the model gave. What is no JSON object stays as it is.
fn without_risk(arguments: String) -> String {
    let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(&arguments) else { return arguments };
    match members.shift_remove("security_risk") {
        Some(_risk) => Value::Object(members).to_string(),
        None => arguments,
    }
}

/// The kinds of observation that are results of tools.
const RESULTS: [&str; 8] = ["read", "write", "edit", "run", "run_ipython", "browse", "mcp", "download"];

fn observation(event: &ObservationEvent) -> Option<Value> {
    let kind = event.observation.kind();
    if !RESULTS.contains(&kind) || event.source == Some(EventSource::Environment) {
        return None;
    }
    let id = event.tool_call_metadata.as_ref().and_then(|metadata| metadata.get("tool_call_id")?.as_str());
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        tracing::warn!(kind, "an observation without the id of a tool call is not rated");
        return None;
    };
    Some(json!({"role": "tool", "content": event.observation.content(), "tool_call_id": id}))
}
