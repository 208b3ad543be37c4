//! Commands that are only started, and stopped (`agent-server-workspace-api` 4.2 and 4.3).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::calls::{found, ok, outputs, same, start, started, stop, text};
use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Text, Want},
};

const SPEC: &str = "agent-server-workspace-api 4.2";

pub(super) fn checks() -> Vec<Check> {
    let asked = |command: &str, cwd: Value, timeout: u32| {
        Expect::status(200)
            .at("/kind", "BashCommand")
            .at("/command", command)
            .at("/cwd", cwd)
            .at("/timeout", timeout)
            .want(Want::Text("/id", Text::Has(String::new())))
            .want(Want::Text("/timestamp", Text::Ends("Z".to_owned())))
    };
    let plain = crate::server::Request::json("/api/bash/start_bash_command", &json!({"command": "true"}));
    vec![
        Check::new("start/answer", "the answer is the command, with what was left out", SPEC)
            .send(plain, asked("true", Value::Null, 300))
            .send(start("pwd", &json!({"cwd": "{dir}", "timeout": 7})), asked("pwd", json!("{dir}"), 7)),
        Check::new("start/at-once", "the answer does not wait for the command", SPEC)
            .code(|bench| Box::pin(at_once(bench))),
        Check::new("start/output", "the output is found by the id of the command", SPEC)
            .code(|bench| Box::pin(output(bench))),
        Check::new(
            "start/not-early",
            "nothing of a small output is seen before the end",
            "agent-server-workspace-api 4.3",
        )
        .code(|bench| Box::pin(not_early(bench))),
        Check::new("stop/running", "a command that runs is stopped", SPEC)
            .code(|bench| Box::pin(stopped(bench, "echo a; sleep 100", json!([[0, "a\n", -15]])))),
        Check::new("stop/deaf", "a command that does not hear the first signal is killed", SPEC).code(|bench| {
            Box::pin(stopped(bench, "trap '' TERM; echo a; sleep 100; sleep 100", json!([[0, "a\n", -9]])))
        }),
        Check::new("stop/tidy", "a command that hears the first signal can tidy up", SPEC).code(|bench| {
            Box::pin(stopped(bench, "trap 'echo tidied; exit 6' TERM; sleep 100 & wait", json!([[0, "tidied\n", 6]])))
        }),
        Check::new("stop/at-once", "a command can be stopped before it has begun", SPEC)
            .code(|bench| Box::pin(stop_at_once(bench))),
        Check::new("stop/ended", "stopping a command that has ended is no error", SPEC)
            .code(|bench| Box::pin(stop_ended(bench))),
        Check::new("stop/unknown", "an unknown command cannot be stopped", SPEC)
            .send(stop("00000000000000000000000000000007"), Expect::status(404))
            .send(stop("no-id"), Expect::status(422)),
    ]
}

async fn at_once(bench: &Bench) -> Result<(), Problem> {
    let began = Instant::now();
    let id = started(bench, "sleep 3").await?;
    let took = began.elapsed().as_secs_f64();
    ok(bench, &stop(&id)).await?;
    Problem::unless(took < 2.5, "a command of 3 s", "an answer within 2.5 s", &format!("{took:.1} s"))
}

async fn output(bench: &Bench) -> Result<(), Problem> {
    let id = started(bench, "echo out; echo err >&2; exit 3").await?;
    let events = outputs(bench, &id).await?;
    let [event] = events.as_slice() else {
        return Err(Problem::new("the outputs", "one", events.len().to_string()));
    };
    let got = json!([event["command_id"], event["order"], event["stdout"], event["stderr"], event["exit_code"]]);
    same("the output", &json!([id, 0, "out\n", "err\n", 3]), &got)
}

async fn not_early(bench: &Bench) -> Result<(), Problem> {
    let id = started(bench, "echo a; sleep 1.5; echo b").await?;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let (early, _) = found(bench, &[("command_id__eq", &id)]).await?;
    same("a search while the command runs", &json!([]), &Value::from(early))?;
    let events = outputs(bench, &id).await?;
    same("the outputs", &json!(["a\nb\n"]), &events.iter().map(|event| event["stdout"].clone()).collect())
}

/// Of each output its order, its text and the exit code.
fn plain(events: &[Value]) -> Value {
    events.iter().map(|event| json!([event["order"], event["stdout"], event["exit_code"]])).collect()
}

async fn stopped(bench: &Bench, command: &str, expected: Value) -> Result<(), Problem> {
    let id = started(bench, command).await?;
    // Nothing tells that it has begun.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let answer = ok(bench, &stop(&id)).await?;
    same("POST …/stop", &json!({"success": true}), &answer)?;
    let events = outputs(bench, &id).await?;
    same("the outputs of a stopped command", &expected, &plain(&events))
}

async fn stop_at_once(bench: &Bench) -> Result<(), Problem> {
    let id = started(bench, "sleep 100; echo later").await?;
    let answer = ok(bench, &stop(&id)).await?;
    same("POST …/stop", &json!({"success": true}), &answer)?;
    let events = outputs(bench, &id).await?;
    let is_ended = events.iter().all(|event| text(event, "stdout").is_empty());
    Problem::unless(is_ended, "the outputs of a stopped command", "none", &plain(&events).to_string())
}

async fn stop_ended(bench: &Bench) -> Result<(), Problem> {
    let id = started(bench, "true").await?;
    outputs(bench, &id).await?;
    for form in [id.clone(), hyphens(&id)] {
        let answer = ok(bench, &stop(&form)).await?;
        same("POST …/stop", &json!({"success": true}), &answer)?;
    }
    Ok(())
}

/// The other form of an id.
fn hyphens(id: &str) -> String {
    let part = |from: usize, to: usize| id.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
