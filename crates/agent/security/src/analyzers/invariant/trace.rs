//! Events as elements of a trace (security 3.2.1).

use std::collections::VecDeque;

use gloveport_protocol::{Action, Event, EventSource, Observation};
use serde_json::{Value, json};

/// Most elements that are sent as the past. Older ones are forgotten.
const MAX_ELEMENTS: usize = 4096;
/// Most bytes of them, roughly.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What was checked so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    past: VecDeque<(Value, usize)>,
    bytes: usize,
    /// Number of the last tool call.
    last_call: u64,
}

impl Trace {
    /// The elements of an event. A call of a tool has the next number, which is taken once the elements are part of the
    /// trace.
    pub(super) fn elements(&self, event: &Event) -> Vec<Value> {
        match event {
            Event::Action(event) => match &event.action {
                Action::Null | Action::ChangeAgentState(_) => Vec::new(),
                Action::Message(message) => {
                    let role = if event.source == Some(EventSource::User) { "user" } else { "assistant" };
                    vec![json!({"metadata": {}, "role": role, "content": message.content})]
                }
                _ => self.call(event.to_value()),
            },
            Event::Observation(event) => match &event.observation {
                Observation::Null | Observation::AgentStateChanged(_) => Vec::new(),
                observation => {
                    let mut element = json!({"metadata": {}, "role": "tool", "content": observation.content()});
                    if self.last_call > 0 {
                        element["tool_call_id"] = Value::from(self.last_call.to_string());
                    }
                    vec![element]
                }
            },
        }
    }

    fn call(&self, mut event: Value) -> Vec<Value> {
        let mut elements = Vec::new();
        let mut arguments = event["args"].take();
        if let Some(thought) = arguments.as_object_mut().and_then(|members| members.shift_remove("thought")) {
            elements.push(json!({"metadata": {}, "role": "assistant", "content": thought}));
        }
        elements.push(json!({
            "metadata": {},
            "id": (self.last_call + 1).to_string(),
            "type": "function",
            "function": {"name": event["action"].take(), "arguments": arguments},
        }));
        elements
    }

    /// What was checked so far, oldest first.
    pub(super) fn past(&self) -> Vec<Value> {
        self.past.iter().map(|(element, _)| element.clone()).collect()
    }

    /// Adds what was checked.
    pub(super) fn append(&mut self, elements: Vec<Value>) {
        for element in elements {
            let size = element.to_string().len();
            let call = element.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
            self.last_call = call.unwrap_or(self.last_call);
            self.past.push_back((element, size));
            self.bytes += size;
        }
        while self.past.len() > MAX_ELEMENTS || self.bytes > MAX_BYTES {
            let Some((_, size)) = self.past.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(size);
        }
    }
}
