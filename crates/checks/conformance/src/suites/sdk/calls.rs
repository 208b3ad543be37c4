//! What is asked of an agent-server, and what it answers.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    check::{Expect, Problem},
    server::{Answer, Request},
};

pub(super) const EXECUTE: &str = "/api/bash/execute_bash_command";
pub(super) const START: &str = "/api/bash/start_bash_command";
pub(super) const EVENTS: &str = "/api/bash/bash_events";
pub(super) const SEARCH: &str = "/api/bash/bash_events/search";

/// The body that asks for a command, with more members.
fn command(text: &str, more: &Value) -> Value {
    let mut body = json!({"command": text, "timeout": 30});
    if let (Some(members), Some(more)) = (body.as_object_mut(), more.as_object()) {
        members.extend(more.clone());
    }
    body
}

/// A command whose end is waited for.
pub(super) fn execute(text: &str) -> Request {
    execute_with(text, &json!({}))
}

/// A command whose end is waited for, with more members of the request.
pub(super) fn execute_with(text: &str, more: &Value) -> Request {
    Request::json(EXECUTE, &command(text, more))
}

/// A command that is only started, with more members of the request.
pub(super) fn start(text: &str, more: &Value) -> Request {
    Request::json(START, &command(text, more))
}

/// What came of a command; an empty output is none.
pub(super) fn printed(stdout: &str, stderr: &str, exit: i64) -> Expect {
    let stream = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
    ended(exit).at("/stdout", stream(stdout)).at("/stderr", stream(stderr))
}

/// What came of a command with any output.
pub(super) fn ended(exit: i64) -> Expect {
    Expect::status(200).at("/kind", "BashOutput").at("/exit_code", exit)
}

/// An answer that must be one with status 200, as JSON.
pub(super) async fn ok(bench: &Bench, request: &Request) -> Result<Value, Problem> {
    let answer = bench.send(request).await?;
    let step = format!("{} {}", request.method, request.path);
    Problem::unless(answer.status == 200, &step, "status 200", &format!("status {}", answer.status))?;
    Ok(answer.value())
}

/// Sends a request and compares the answer.
pub(super) async fn judged(bench: &Bench, request: &Request, expect: &Expect) -> Result<Answer, Problem> {
    let answer = bench.send(request).await?;
    expect.judge(&format!("{} {}", request.method, request.path), &answer, bench)?;
    Ok(answer)
}

/// The text of a member, empty if there is none.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Starts a command and answers with its id.
pub(super) async fn started(bench: &Bench, command: &str) -> Result<String, Problem> {
    Ok(text(&ok(bench, &start(command, &json!({}))).await?, "id").to_owned())
}

/// What a search finds: its events, and where the next page begins.
pub(super) async fn found(
    bench: &Bench,
    query: &[(&'static str, &str)],
) -> Result<(Vec<Value>, Option<String>), Problem> {
    let request = query.iter().fold(Request::get(SEARCH), |request, (name, value)| request.query(name, *value));
    let mut page = ok(bench, &request).await?;
    let next = page.get("next_page_id").and_then(Value::as_str).map(str::to_owned);
    match page.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok((items, next)),
        other => Err(Problem::new("a search", "a list of items", format!("{other:?}"))),
    }
}

/// The outputs of a command, once it has ended. Each check has a time limit.
pub(super) async fn outputs(bench: &Bench, id: &str) -> Result<Vec<Value>, Problem> {
    loop {
        let (events, _) = found(bench, &[("kind__eq", "BashOutput"), ("command_id__eq", id)]).await?;
        if events.last().is_some_and(|last| !last["exit_code"].is_null()) {
            return Ok(events);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The request that stops a command.
pub(super) fn stop(id: &str) -> Request {
    Request::new(Method::POST, &format!("/api/bash/bash_commands/{id}/stop"))
}

/// Of outputs what a client reads: order, both lengths in characters, and the exit code.
pub(super) fn shapes(events: &[Value]) -> Value {
    let length = |event: &Value, name: &str| text(event, name).chars().count();
    events
        .iter()
        .map(|event| json!([event["order"], length(event, "stdout"), length(event, "stderr"), event["exit_code"]]))
        .collect()
}

/// An error unless both are the same.
pub(super) fn same(step: &str, expected: &Value, got: &Value) -> Result<(), Problem> {
    Problem::unless(expected == got, step, &expected.to_string(), &got.to_string())
}
