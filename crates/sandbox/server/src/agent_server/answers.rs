//! The forms of answers that are no success, and what a query says.

use std::{io, path::Path};

use axum::{extract::Query, response::Response};
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use crate::answer;

/// The answer to a request that does not have its form: what is wrong, each with its place.
pub(super) fn invalid(wrong: &[Value]) -> Response {
    answer::json(StatusCode::UNPROCESSABLE_ENTITY, &json!({"detail": wrong}))
}

/// Something required that is not there; `place` is `query`, `path` or `body`.
pub(super) fn missing(place: &str, name: &str) -> Value {
    json!({"type": "missing", "loc": [place, name], "msg": "Field required", "input": null})
}

/// Something that is not what it should be; `kind` is the name that validators of Python have for it.
pub(super) fn wrong(kind: &str, place: &str, name: &str, text: &str, input: &Value) -> Value {
    json!({"type": kind, "loc": [place, name], "msg": text, "input": input})
}

/// A failure of the server, as this API tells of one.
pub(super) fn failed(status: StatusCode, text: &str) -> Response {
    let exception = format!("{}: {text}", status.as_u16());
    answer::json(status, &json!({"detail": "Internal Server Error", "exception": exception}))
}

/// An error of the system at a path, as Python tells it.
pub(super) fn os_text(error: &io::Error, path: &Path) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    match error.raw_os_error() {
        Some(number) => format!("[Errno {number}] {text}: '{}'", path.display()),
        None => text.to_owned(),
    }
}

/// JSON of a body, or what is wrong with it.
pub(super) fn understood(bytes: &[u8]) -> Result<Value, Value> {
    if bytes.is_empty() {
        return Err(json!({"type": "missing", "loc": ["body"], "msg": "Field required", "input": null}));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        json!({"type": "json_invalid", "loc": ["body", error.column()], "msg": "JSON decode error", "input": {},
            "ctx": {"error": error.to_string()}})
    })
}

/// A body that is no object.
pub(super) fn no_object(value: &Value) -> Value {
    json!({"type": "model_attributes_type", "loc": ["body"],
        "msg": "Input should be a valid dictionary or object to extract fields from", "input": value})
}

/// The parameters of a query, decoded, in their order.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn of(uri: &Uri) -> Self {
        Self(Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default())
    }

    /// The last of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }

    /// All of this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A boolean, or what to answer.
    pub(super) fn boolean(&self, name: &str, default: bool) -> Result<bool, Value> {
        let Some(text) = self.get(name) else { return Ok(default) };
        crate::form::boolean(text).ok_or_else(|| {
            let what = "Input should be a valid boolean, unable to interpret input";
            wrong("bool_parsing", "query", name, what, &text.into())
        })
    }

    /// A whole number between bounds, or what to answer; `below` is the kind of the error of one that is too small.
    pub(super) fn number(&self, name: &str, default: i64, bounds: (i64, i64), below: &str) -> Result<i64, Value> {
        let (least, most) = bounds;
        let Some(text) = self.get(name) else { return Ok(default) };
        let plain = text.trim().trim_end_matches('0').strip_suffix('.').unwrap_or(text.trim());
        let number: i64 = plain.parse().map_err(|_| {
            let what = "Input should be a valid integer, unable to parse string as an integer";
            wrong("int_parsing", "query", name, what, &text.into())
        })?;
        if number < least {
            let what = format!("Input should be greater than or equal to {least}");
            return Err(wrong(below, "query", name, &what, &text.into()));
        }
        if number > most {
            let what = format!("Input should be less than or equal to {most}");
            return Err(wrong("less_than_equal", "query", name, &what, &text.into()));
        }
        Ok(number)
    }
}
