//! The top-level keys that actions and observations share (actions-and-observations 2.1, 2.2).

use serde_json::{Map, Value};

use crate::error::{EnvelopeError, FREE_TEXT_LIMIT, describe};
use crate::python;
use crate::values::EventSource;

/// The shared keys, parsed.
pub(crate) struct Envelope {
    pub(crate) id: Option<i64>,
    pub(crate) timestamp: Option<String>,
    pub(crate) source: Option<EventSource>,
    pub(crate) cause: Option<i64>,
    pub(crate) tool_call_metadata: Option<Value>,
    pub(crate) llm_metrics: Option<Value>,
}

impl Envelope {
    /// Takes the shared keys out of an event. The two metadata objects are never looked into.
    ///
    /// A timestamp that an older form gave counts only without a key of today's form.
    pub(crate) fn take(event: &mut Map<String, Value>, old_timestamp: Option<String>) -> Result<Self, EnvelopeError> {
        Ok(Self {
            id: integer(event, "id")?.filter(|id| *id != -1),
            timestamp: match event.shift_remove("timestamp") {
                None => old_timestamp,
                Some(Value::String(text)) => Some(text),
                Some(_) => None,
            },
            source: event.shift_remove("source").map(|value| source(&value)).transpose()?,
            cause: integer(event, "cause")?,
            tool_call_metadata: event.shift_remove("tool_call_metadata").filter(|value| !value.is_null()),
            llm_metrics: event.shift_remove("llm_metrics").filter(|value| !value.is_null()),
        })
    }
}

fn integer(event: &Map<String, Value>, field: &'static str) -> Result<Option<i64>, EnvelopeError> {
    match event.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| EnvelopeError::WrongType {
            field,
            expected: "an integer or null",
            found: describe(value),
        }),
    }
}

fn source(value: &Value) -> Result<EventSource, EnvelopeError> {
    value
        .as_str()
        .and_then(EventSource::parse)
        .ok_or_else(|| EnvelopeError::UnknownSource { value: python::repr_bounded(value, FREE_TEXT_LIMIT) })
}

/// The hard timeout in seconds: a number, or a text that is one.
pub(crate) fn timeout(value: Option<&Value>) -> Result<Option<f64>, EnvelopeError> {
    let seconds = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => python::parse_float(text),
        Some(value) => value.as_f64(),
    };
    seconds.filter(|seconds| seconds.is_finite()).map(Some).ok_or_else(|| EnvelopeError::WrongType {
        field: "timeout",
        expected: "a number or null",
        found: value.map(describe).unwrap_or_default(),
    })
}

/// Adds a key if there is a value for it.
pub(crate) fn put(event: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        event.insert(key.to_owned(), value.into());
    }
}
