//! The forms of answers that are no success, and what a query says.

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

    /// A boolean, or what to answer.
    pub(super) fn boolean(&self, name: &str, default: bool) -> Result<bool, Value> {
        let Some(text) = self.get(name) else { return Ok(default) };
        crate::form::boolean(text).ok_or_else(|| {
            let what = "Input should be a valid boolean, unable to interpret input";
            wrong("bool_parsing", "query", name, what, &text.into())
        })
    }

    /// A whole number between bounds, or what to answer.
    pub(super) fn number(&self, name: &str, default: i64, least: i64, most: i64) -> Result<i64, Value> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number: i64 = text.trim().parse().map_err(|_| {
            let what = "Input should be a valid integer, unable to parse string as an integer";
            wrong("int_parsing", "query", name, what, &text.into())
        })?;
        if number < least {
            let what = format!("Input should be greater than {}", least.saturating_sub(1));
            return Err(wrong("greater_than", "query", name, &what, &text.into()));
        }
        if number > most {
            let what = format!("Input should be less than or equal to {most}");
            return Err(wrong("less_than_equal", "query", name, &what, &text.into()));
        }
        Ok(number)
    }
}
