//! `/api/bash` (`agent-server-workspace-api` §4).

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, State},
    response::Response,
};
use bytes::Bytes;
use gloveport_bash_events::{Bash, BashError, Request, Search, bash::TIMEOUT, event::Kind};
use http::{StatusCode, Uri};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Map, Value, json};
use tokio::{task::spawn_blocking, time::timeout};
use uuid::Uuid;

use super::answers::{Parameters, failed, invalid, missing, no_object, understood, wrong};
use crate::{
    answer,
    app::App,
    body::{self, BodyError},
    route::Route,
    transfer::{self, Busy},
};

/// How long a search waits for output of a command that runs: clients ask again after a tenth of a second.
const HOLD: Duration = Duration::from_millis(100);
/// Answers up to this many bytes are made at once; larger ones are written piece by piece.
const AT_ONCE: u64 = 1024 * 1024;
/// Most ids of one request.
const IDS: usize = 1000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/bash/start_bash_command", start),
        Route::post("/api/bash/execute_bash_command", execute),
        Route::get("/api/bash/bash_events/search", search),
        Route::get("/api/bash/bash_events/", several),
        Route::get("/api/bash/bash_events/{event_id}", one),
        Route::delete("/api/bash/bash_events", clear),
        Route::post("/api/bash/bash_commands/{command_id}/stop", stop),
    ]
}

async fn start(State(app): State<Arc<App>>, body: Body) -> Response {
    match begin(&app, body).await {
        Ok((_, _, json)) => answer::with_type(StatusCode::OK, "application/json", json),
        Err(refusal) => *refusal,
    }
}

async fn execute(State(app): State<Arc<App>>, body: Body) -> Response {
    let (bash, id) = match begin(&app, body).await {
        Ok((bash, id, _)) => (bash, id),
        Err(refusal) => return *refusal,
    };
    bash.wait(id).await;
    let bytes = bash.log().bytes_of(id);
    written(&app, bytes, move |to| bash.log().write_joined(id, to)).await
}

async fn begin(app: &App, body: Body) -> Result<(Arc<Bash>, Uuid, Vec<u8>), Box<Response>> {
    app.action_arrived();
    let bash = bash(app)?;
    let limits = &app.options.limits;
    let bytes = body::text_of_json(limits.json_body, body, limits).await.map_err(|error| Box::new(error.answer()))?;
    if std::str::from_utf8(&bytes).is_err() {
        return Err(Box::new(answer::detail(StatusCode::BAD_REQUEST, "There was an error parsing the body")));
    }
    let request = request_of(&bytes).map_err(|wrong| Box::new(invalid(&wrong)))?;
    match bash.start(request).await {
        Ok((id, json)) => Ok((bash, id, json)),
        Err(error) => {
            let status = match error {
                BashError::TooLong(_) => {
                    return Err(Box::new(answer::detail(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())));
                }
                BashError::TooMany | BashError::Closed => StatusCode::SERVICE_UNAVAILABLE,
                BashError::Log(_) => StatusCode::INSUFFICIENT_STORAGE,
            };
            Err(Box::new(failed(status, &error.to_string())))
        }
    }
}

fn bash(app: &App) -> Result<Arc<Bash>, Box<Response>> {
    match &app.agent_server {
        Some(face) => Ok(Arc::clone(&face.bash)),
        None => Err(Box::new(answer::unexpected())),
    }
}

/// What a body asks for, or all that is wrong with it.
pub(super) fn request_of(bytes: &[u8]) -> Result<Request, Vec<Value>> {
    let value = understood(bytes).map_err(|wrong| vec![wrong])?;
    let Value::Object(fields) = &value else { return Err(vec![no_object(&value)]) };
    let mut errors = Vec::new();
    let mut keep = |error: Value| errors.push(error);
    let command = match fields.get("command") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => {
            keep(wrong("string_type", "body", "command", "Input should be a valid string", other));
            String::new()
        }
        None => {
            keep(missing("body", "command"));
            String::new()
        }
    };
    let cwd = match fields.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            keep(wrong("string_type", "body", "cwd", "Input should be a valid string", other));
            None
        }
    };
    let timeout = seconds(fields).unwrap_or_else(|error| {
        keep(error);
        0
    });
    if errors.is_empty() { Ok(Request { command, cwd, timeout }) } else { Err(errors) }
}

/// The time limit: a whole number, or a text or a fraction that is one.
fn seconds(fields: &Map<String, Value>) -> Result<i64, Value> {
    let Some(value) = fields.get("timeout") else { return Ok(TIMEOUT) };
    let error = |kind: &str, text: &str| wrong(kind, "body", "timeout", text, value);
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_i64() {
                return Ok(whole);
            }
            let fraction = number.as_f64().unwrap_or_default();
            if fraction.fract() != 0.0 {
                return Err(error(
                    "int_from_float",
                    "Input should be a valid integer, got a number with a fractional part",
                ));
            }
            // What is beyond the end of time is no limit.
            Ok(if fraction > 0.0 { i64::MAX } else { 0 }.min(whole_of(fraction)))
        }
        Value::String(text) => text
            .trim()
            .parse()
            .map_err(|_| error("int_parsing", "Input should be a valid integer, unable to parse string as an integer")),
        Value::Bool(is_one) => Ok(i64::from(*is_one)),
        _ => Err(error("int_type", "Input should be a valid integer")),
    }
}

/// A fraction without a fractional part; the largest number for what is larger.
fn whole_of(fraction: f64) -> i64 {
    format!("{fraction:.0}").parse().unwrap_or(i64::MAX)
}

async fn search(State(app): State<Arc<App>>, uri: Uri) -> Response {
    app.action_arrived();
    let bash = match bash(&app) {
        Ok(bash) => bash,
        Err(refusal) => return *refusal,
    };
    let search = match search_of(&Parameters::of(&uri)) {
        Ok(search) => search,
        Err(wrong) => return invalid(&wrong),
    };
    let (log, mut changes) = (Arc::clone(bash.log()), bash.log().changes());
    let mut page = log.search(&search);
    if let Some(command) = search.command.filter(|command| page.keys.is_empty() && bash.is_running(*command)) {
        let found = async {
            while page.keys.is_empty() && bash.is_running(command) && changes.changed().await.is_ok() {
                page = log.search(&search);
            }
        };
        let _in_time = timeout(HOLD, found).await;
        if page.keys.is_empty() {
            page = log.search(&search);
        }
    }
    written(&app, page.bytes, move |to| log.write_page(&page, to)).await
}

fn search_of(parameters: &Parameters) -> Result<Search, Vec<Value>> {
    let mut errors = Vec::new();
    let kind = kept(&mut errors, choice(parameters, "kind__eq", "literal_error", ["BashCommand", "BashOutput"]));
    let order = kept(&mut errors, choice(parameters, "sort_order", "enum", ["TIMESTAMP", "TIMESTAMP_DESC"]));
    let command = kept(&mut errors, id(parameters, "command_id__eq"));
    let from = kept(&mut errors, time(parameters, "timestamp__gte"));
    let before = kept(&mut errors, time(parameters, "timestamp__lt"));
    let above = parameters.get("order__gt").map(|_| parameters.number("order__gt", 0, (i64::MIN, i64::MAX), ""));
    let order_above = kept(&mut errors, above.transpose());
    let limit = kept(&mut errors, parameters.number("limit", 100, (1, 100), "greater_than").map(Some));
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Search {
        kind: kind.map(|kind| if kind == "BashCommand" { Kind::BashCommand } else { Kind::BashOutput }),
        command,
        from,
        before,
        order_above,
        descending: order == Some("TIMESTAMP_DESC"),
        page: parameters.get("page_id").and_then(|text| Uuid::parse_str(text).ok()),
        limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1),
    })
}

/// A value, or nothing and one error more.
fn kept<T>(errors: &mut Vec<Value>, value: Result<Option<T>, Value>) -> Option<T> {
    value.unwrap_or_else(|error| {
        errors.push(error);
        None
    })
}

/// One of the words that are possible; `kind` is what another one is called.
fn choice(
    parameters: &Parameters,
    name: &str,
    kind: &str,
    known: [&'static str; 2],
) -> Result<Option<&'static str>, Value> {
    let Some(text) = parameters.get(name) else { return Ok(None) };
    known.into_iter().find(|known| *known == text).map(Some).ok_or_else(|| {
        let what = format!("Input should be '{}' or '{}'", known[0], known[1]);
        wrong(kind, "query", name, &what, &text.into())
    })
}

fn id(parameters: &Parameters, name: &str) -> Result<Option<Uuid>, Value> {
    let parsed = parameters.get(name).map(|text| {
        Uuid::parse_str(text)
            .map_err(|_| wrong("uuid_parsing", "query", name, "Input should be a valid UUID", &text.into()))
    });
    parsed.transpose()
}

fn time(parameters: &Parameters, name: &str) -> Result<Option<i64>, Value> {
    let parsed = parameters.get(name).map(|text| {
        let what = "Input should be a valid datetime or date";
        micros_of(text).ok_or_else(|| wrong("datetime_from_date_parsing", "query", name, what, &text.into()))
    });
    parsed.transpose()
}

/// A time in microseconds since 1970; one without a zone is UTC, and a number is in seconds.
fn micros_of(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok().and_then(|time| i64::try_from(time.as_micros()).ok());
    }
    // A plus that was not encoded is a blank.
    let text = text.replace(' ', "+");
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    Some(time.as_microsecond())
}

async fn one(State(app): State<Arc<App>>, Path(text): Path<String>) -> Response {
    let bash = match bash(&app) {
        Ok(bash) => bash,
        Err(refusal) => return *refusal,
    };
    let log = Arc::clone(bash.log());
    let key = Uuid::parse_str(&text).ok().and_then(|id| log.find(id));
    let read = spawn_blocking(move || key.and_then(|key| log.read(key))).await;
    match read {
        Ok(Some(json)) => answer::with_type(StatusCode::OK, "application/json", json),
        Ok(None) => answer::detail(StatusCode::NOT_FOUND, "Not Found"),
        Err(error) => {
            tracing::error!(%error, "an event could not be read");
            answer::unexpected()
        }
    }
}

async fn several(State(app): State<Arc<App>>, body: Body) -> Response {
    let bash = match bash(&app) {
        Ok(bash) => bash,
        Err(refusal) => return *refusal,
    };
    let limits = &app.options.limits;
    let bytes = match body::text_of_json(limits.json_body, body, limits).await {
        Ok(bytes) => bytes,
        Err(error) => return error.answer(),
    };
    let ids = match understood(&bytes).map_err(|wrong| vec![wrong]).and_then(ids_of) {
        Ok(ids) if ids.len() <= IDS => ids,
        Ok(_) => return BodyError::TooManyValues.answer(),
        Err(wrong) => return invalid(&wrong),
    };
    let log = Arc::clone(bash.log());
    let keys: Vec<_> = ids.iter().map(|id| Uuid::parse_str(id).ok().and_then(|id| log.find(id))).collect();
    let write = move |to: &mut dyn std::io::Write| {
        for (at, key) in keys.iter().enumerate() {
            to.write_all(if at == 0 { b"[" } else { b"," })?;
            let json = key.and_then(|key| log.read(key));
            to.write_all(json.as_deref().unwrap_or(b"null"))?;
        }
        to.write_all(if keys.is_empty() { b"[]" } else { b"]" })
    };
    written(&app, AT_ONCE + 1, write).await
}

/// The texts of a list, or all that is wrong with it.
fn ids_of(value: Value) -> Result<Vec<String>, Vec<Value>> {
    let Value::Array(values) = value else {
        return Err(vec![
            json!({"type": "list_type", "loc": ["body"], "msg": "Input should be a valid list", "input": value}),
        ]);
    };
    let is_wrong = |(at, value): (usize, &Value)| json!({"type": "string_type", "loc": ["body", at], "msg": "Input should be a valid string", "input": value});
    let wrong: Vec<Value> = values.iter().enumerate().filter(|(_, value)| !value.is_string()).map(is_wrong).collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

async fn stop(State(app): State<Arc<App>>, Path(text): Path<String>) -> Response {
    app.action_arrived();
    let Ok(id) = Uuid::parse_str(&text) else {
        return invalid(&[wrong("uuid_parsing", "path", "command_id", "Input should be a valid UUID", &text.into())]);
    };
    match bash(&app) {
        Ok(bash) if bash.stop(id) => answer::json(StatusCode::OK, &json!({"success": true})),
        Ok(_) => answer::detail(StatusCode::NOT_FOUND, "Not Found"),
        Err(refusal) => *refusal,
    }
}

async fn clear(State(app): State<Arc<App>>) -> Response {
    app.action_arrived();
    let bash = match bash(&app) {
        Ok(bash) => bash,
        Err(refusal) => return *refusal,
    };
    match spawn_blocking(move || bash.log().clear()).await {
        Ok(count) => answer::json(StatusCode::OK, &json!({"cleared_count": count})),
        Err(error) => {
            tracing::error!(%error, "events could not be removed");
            answer::unexpected()
        }
    }
}

/// An answer that a thread writes: at once if it is small, and else piece by piece.
async fn written<F>(app: &App, bytes: u64, write: F) -> Response
where
    F: FnOnce(&mut dyn std::io::Write) -> std::io::Result<()> + Send + 'static,
{
    let made = if bytes <= AT_ONCE {
        let whole = spawn_blocking(move || {
            let mut whole = Vec::new();
            write(&mut whole).map(|()| whole)
        });
        let whole = whole.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        whole.map(|whole| Body::from(Bytes::from(whole)))
    } else {
        match app.transfers.turn().await {
            Ok(turn) => transfer::stream(turn, move |sink| write(sink)).await,
            Err(error @ Busy) => return failed(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        }
    };
    match made {
        Ok(body) => answer::with_type(StatusCode::OK, "application/json", body),
        Err(error) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}
