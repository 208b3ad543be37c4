//! Programs and files in sandboxes.

use std::{fs, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Method},
    response::Response,
};
use futures_util::stream;
use serde_json::{Value, json};

use super::{
    life,
    state::{Call, Runloop},
};
use crate::{
    Execution, Machine, Output, Program, Shared, World,
    answers::{bytes, form, refusal, told},
    lock, milliseconds,
};

/// Longest wait of one request.
const WAIT: f64 = 25.0;
/// Lines of output that an answer has if nobody says how many.
const LINES: usize = 100;

/// The end of a text, and whether there is more.
fn last(text: &[u8], lines: usize) -> (String, bool) {
    let text = String::from_utf8_lossy(text);
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    (all[all.len().saturating_sub(lines)..].concat(), all.len() > lines)
}

fn view(call: &Call, id: &str, name: &str, output: &Output) -> Value {
    let mut view = json!({"devbox_id": id, "execution_id": name, "status": "running"});
    if let Some(code) = output.exit {
        let lines = call.of("last_n").and_then(|lines| lines.parse().ok()).unwrap_or(LINES);
        let ((stdout, cut), (stderr, cut_too)) = (last(&output.stdout, lines), last(&output.stderr, lines));
        view["status"] = json!("completed");
        view["exit_status"] = json!(code);
        (view["stdout"], view["stdout_truncated"]) = (json!(stdout), json!(cut));
        (view["stderr"], view["stderr_truncated"]) = (json!(stderr), json!(cut_too));
    }
    view
}

/// Waits for the end of a program for so many seconds.
async fn wait(execution: &Execution, seconds: f64) -> Output {
    let mut follow = execution.follow();
    let limit = Duration::from_secs_f64(seconds.clamp(0.0, WAIT));
    let _in_time = tokio::time::timeout(limit, follow.wait_for(|output| output.exit.is_some())).await;
    execution.output()
}

#[expect(clippy::result_large_err, reason = "an answer is what is wanted")]
fn machine(world: &Shared<Runloop>, id: &str) -> Result<Arc<Machine>, Response> {
    let world = lock(world);
    let devbox = world.sandboxes.get(id).ok_or_else(|| refusal(404, "Devbox not found"))?;
    match &devbox.machine {
        Some(machine) if devbox.state == "running" => Ok(Arc::clone(machine)),
        _ => Err(refusal(400, &format!("Devbox is not running, it is {}", devbox.state))),
    }
}

pub(super) async fn start(call: &Call, id: &str, how: &str) -> Response {
    let Some(command) = call.json["command"].as_str() else { return refusal(400, "command is missing") };
    if how == "execute" && !call.json["command_id"].is_string() {
        return refusal(400, "command_id is missing");
    }
    let machine = match machine(&call.world, id) {
        Ok(machine) => machine,
        Err(refused) => return refused,
    };
    let (execution, name) = {
        let mut world = lock(&call.world);
        let now = world.now();
        let Some(devbox) = world.sandboxes.get_mut(id) else { return refusal(404, "Devbox not found") };
        let environment = serde_json::from_value(devbox.more.wish["environment_variables"].clone());
        let stdin = call.json["attach_stdin"] == true;
        let program = Program { stdin, ..Program::shell(command, environment.unwrap_or_default()) };
        let started = match Execution::start(&machine, &program) {
            Ok(started) => Arc::new(started),
            Err(error) => return refusal(500, &error),
        };
        devbox.more.used = Some(now);
        let name = World::<Runloop>::next("exec_");
        devbox.more.logs.push(json!({
            "level": "info", "source": "exec", "timestamp_ms": milliseconds(now), "cmd": command, "cmd_id": name,
        }));
        devbox.more.executions.insert(name.clone(), Arc::clone(&started));
        if how == "execute_async" {
            let running = view(call, id, &name, &Output::default());
            return call.made(&mut world, running);
        }
        (started, name)
    };
    let seconds = call.json["optimistic_timeout"].as_f64().unwrap_or(WAIT);
    let answer = view(call, id, &name, &wait(&execution, seconds).await);
    call.made(&mut lock(&call.world), answer)
}

pub(super) async fn one(call: &Call, method: &Method, id: &str, rest: &[&str]) -> Response {
    let [name, rest @ ..] = rest else { return refusal(404, "no such path") };
    let found = lock(&call.world).sandboxes.get(id).and_then(|devbox| devbox.more.executions.get(*name).cloned());
    let Some(execution) = found else { return refusal(404, "Execution not found") };
    match (method, rest) {
        (&Method::GET, []) => told(200, &view(call, id, name, &execution.output())),
        (&Method::POST, ["wait_for_status"]) => {
            let output = wait(&execution, call.json["timeout_seconds"].as_f64().unwrap_or(WAIT)).await;
            if output.exit.is_some() {
                told(200, &view(call, id, name, &output))
            } else {
                refusal(408, "the execution has not ended in time")
            }
        }
        (&Method::POST, ["kill"]) => {
            execution.kill();
            told(200, &view(call, id, name, &wait(&execution, WAIT).await))
        }
        (&Method::POST, ["send_std_in"]) => {
            let mut open = true;
            if let Some(text) = call.json["text"].as_str() {
                open = execution.tell(text.as_bytes());
            }
            if call.json["signal"] == "EOF" {
                execution.close_input();
            }
            told(200, &json!({"devbox_id": id, "execution_id": name, "success": open}))
        }
        (&Method::GET, ["stream_stdout_updates"]) => updates(call, &execution, |output| &output.stdout),
        (&Method::GET, ["stream_stderr_updates"]) => updates(call, &execution, |output| &output.stderr),
        _ => refusal(404, "no such path"),
    }
}

/// What a program writes, as it comes, as events.
fn updates(call: &Call, execution: &Arc<Execution>, of: fn(&Output) -> &Vec<u8>) -> Response {
    let offset: usize = call.of("offset").and_then(|offset| offset.parse().ok()).unwrap_or_default();
    let state = (execution.follow(), offset);
    let events = stream::unfold(state, move |(mut follow, offset)| async move {
        let output = follow.wait_for(|output| of(output).len() > offset || output.exit.is_some()).await.ok()?.clone();
        let new = of(&output).get(offset..).filter(|new| !new.is_empty())?;
        let next = offset + new.len();
        // The offset is where to go on.
        let event = json!({"output": String::from_utf8_lossy(new), "offset": next});
        Some((Ok::<_, std::io::Error>(Bytes::from(format!("data: {event}\n\n"))), (follow, next)))
    });
    Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(events)).unwrap()
}

pub(super) fn file(call: &Call, id: &str, how: &str) -> Response {
    let machine = match machine(&call.world, id) {
        Ok(machine) => machine,
        Err(refused) => return refused,
    };
    let name = if how == "download_file" { "path" } else { "file_path" };
    let Some(path) = call.json[name].as_str() else { return refusal(400, &format!("{name} is missing")) };
    if how == "write_file_contents" {
        let Some(contents) = call.json["contents"].as_str() else { return refusal(400, "contents is missing") };
        return match life::put(&machine, path, contents.as_bytes()) {
            Ok(()) => told(200, &json!({"devbox_id": id, "exit_status": 0, "stdout": "", "stderr": ""})),
            Err(error) => refusal(400, &format!("{path}: {error}")),
        };
    }
    match fs::read(machine.path(path)) {
        Ok(content) => bytes(content),
        Err(error) => refusal(404, &format!("{path}: {error}")),
    }
}

pub(super) async fn upload(world: &Shared<Runloop>, id: &str, headers: &HeaderMap, body: Bytes) -> Response {
    let machine = match machine(world, id) {
        Ok(machine) => machine,
        Err(refused) => return refused,
    };
    let Some(parts) = form(headers, body).await else { return refusal(400, "the body is no form") };
    let part = |name: &str| parts.iter().find(|part| part.name == name);
    let (Some(path), Some(file)) = (part("path"), part("file")) else {
        return refusal(400, "path and file are needed");
    };
    let path = String::from_utf8_lossy(&path.content).into_owned();
    match life::put(&machine, &path, &file.content) {
        Ok(()) => told(200, &json!({})),
        Err(error) => refusal(400, &format!("{path}: {error}")),
    }
}
