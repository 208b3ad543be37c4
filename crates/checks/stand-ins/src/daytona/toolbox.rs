//! Programs and files in sandboxes.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    http::{Method, StatusCode, request::Parts},
    response::Response,
};
use serde_json::{Value, json};

use super::state::{Call, Daytona, header};
use crate::{
    Execution, Machine, Output, Program, World,
    answers::{bytes, form, refusal, told},
    lock,
};

/// How long a command may take if nobody says so.
const LIMIT: u64 = 10;

/// Sessions of processes, with their commands.
type Sessions = BTreeMap<String, Vec<(String, Arc<Execution>)>>;
/// Variables.
type Environment = BTreeMap<String, String>;

/// The machine of a sandbox that runs, which is of use from now on, with its variables.
fn machine(call: &Call, id: &str) -> Result<(Arc<Machine>, Environment), Box<Response>> {
    let mut world = lock(&call.world);
    let now = world.now();
    let Some(sandbox) = world.sandboxes.get_mut(id) else { return Err(Box::new(refusal(404, "Sandbox not found"))) };
    let machine = match &sandbox.machine {
        Some(machine) if sandbox.state == "started" => Arc::clone(machine),
        _ => return Err(Box::new(refusal(400, "failed to proxy request: the sandbox is not started"))),
    };
    sandbox.more.used = now;
    let environment = serde_json::from_value(sandbox.more.wish["env"].clone()).unwrap_or_default();
    Ok((machine, environment))
}

pub(super) async fn answer(call: &Call, parts: &Parts, id: &str, rest: &[&str], body: Bytes) -> Response {
    let (machine, environment) = match machine(call, id) {
        Ok(machine) => machine,
        Err(refused) => return *refused,
    };
    let is_old = lock(&call.world).face.is_old;
    match (&parts.method, rest) {
        (&Method::POST, ["files", "upload-v2"]) if !is_old => {
            let Some(path) = call.of("path") else { return refusal(400, "path is missing") };
            if header(&parts.headers, "content-type").is_some_and(|kind| kind.starts_with("multipart/")) {
                let Some(parts) = form(&parts.headers, body).await else { return refusal(400, "no form") };
                return match parts.iter().find(|part| part.name == "file") {
                    Some(part) => write(&machine, path, &part.content),
                    None => refusal(400, "file is missing"),
                };
            }
            write(&machine, path, &body)
        }
        (&Method::POST, ["files", "bulk-upload"]) => {
            let Some(parts) = form(&parts.headers, body).await else { return refusal(400, "no form") };
            let named = |name: &str| parts.iter().find(|part| part.name == name);
            for number in 0.. {
                let path = named(&format!("files[{number}].path"));
                let Some((path, file)) = path.zip(named(&format!("files[{number}].file"))) else { break };
                let answer = write(&machine, &String::from_utf8_lossy(&path.content), &file.content);
                if !answer.status().is_success() {
                    return answer;
                }
            }
            told(200, &json!({}))
        }
        (&Method::POST, ["files", "permissions"]) => {
            let (path, mode) = (call.of("path").unwrap_or_default(), call.of("mode").unwrap_or_default());
            let Ok(mode) = u32::from_str_radix(mode, 8) else { return refusal(400, "mode is no number") };
            match fs::set_permissions(machine.path(path), fs::Permissions::from_mode(mode)) {
                Ok(()) => told(200, &Value::Null),
                Err(_) => missing(),
            }
        }
        (&Method::GET, ["files", "download"]) => match fs::read(machine.path(call.of("path").unwrap_or_default())) {
            Ok(content) => bytes(content),
            Err(_) => missing(),
        },
        (&Method::DELETE, ["files"]) => match fs::remove_file(machine.path(call.of("path").unwrap_or_default())) {
            Ok(()) => told(200, &Value::Null),
            Err(_) => missing(),
        },
        (&Method::GET, ["user-home-dir" | "work-dir"]) => told(200, &json!({"dir": machine.home()})),
        (&Method::GET, ["version"]) => told(200, &json!({"version": "0.226.1"})),
        (&Method::POST, ["process", "execute"]) => execute(call, &machine, environment).await,
        (method, ["process", "session", rest @ ..]) => session(call, id, &machine, environment, method, rest).await,
        _ => refusal(404, "no such path"),
    }
}

fn missing() -> Response {
    let mut answer = refusal(404, "file not found");
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

fn write(machine: &Machine, path: &str, content: &[u8]) -> Response {
    let path = machine.path(path);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
    match written {
        Ok(()) => told(200, &json!({})),
        Err(error) => refusal(400, &error.to_string()),
    }
}

fn text(output: &Output) -> String {
    [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat()
}

async fn execute(call: &Call, machine: &Arc<Machine>, mut environment: Environment) -> Response {
    let Some(command) = call.json["command"].as_str() else { return refusal(400, "command is missing") };
    environment
        .extend(serde_json::from_value::<BTreeMap<String, String>>(call.json["envs"].clone()).unwrap_or_default());
    let cwd = call.json["cwd"].as_str().map(str::to_owned);
    let program = Program { cwd, ..Program::shell(command, environment) };
    let execution = match Execution::start(machine, &program) {
        Ok(execution) => execution,
        Err(error) => return refusal(400, &error),
    };
    let limit = Duration::from_secs(call.json["timeout"].as_u64().unwrap_or(LIMIT));
    let mut follow = execution.follow();
    let in_time = tokio::time::timeout(limit, follow.wait_for(|output| output.exit.is_some())).await.is_ok();
    if !in_time {
        execution.kill();
        return refusal(408, "command execution timeout");
    }
    let output = execution.output();
    told(200, &json!({"exitCode": output.exit, "result": text(&output)}))
}

/// Does something with the sessions of processes of a sandbox.
fn with<T>(call: &Call, id: &str, work: impl FnOnce(&mut Sessions) -> T) -> Option<T> {
    lock(&call.world).sandboxes.get_mut(id).map(|sandbox| work(&mut sandbox.more.sessions))
}

async fn session(
    call: &Call,
    id: &str,
    machine: &Arc<Machine>,
    environment: Environment,
    method: &Method,
    rest: &[&str],
) -> Response {
    let command = |session: &str, name: &str| {
        let found = with(call, id, |sessions| {
            sessions.get(session)?.iter().find(|(other, _)| other == name).map(|(_, command)| Arc::clone(command))
        });
        found.flatten()
    };
    match (method, rest) {
        (&Method::POST, []) => {
            let name = call.json["sessionId"].as_str().unwrap_or_default().to_owned();
            let is_new =
                with(call, id, |sessions| !sessions.contains_key(&name) && sessions.insert(name, Vec::new()).is_none());
            if is_new == Some(true) { told(201, &Value::Null) } else { refusal(409, "session already exists") }
        }
        (&Method::DELETE, [name]) => match with(call, id, |sessions| sessions.remove(*name)).flatten() {
            Some(commands) => {
                for (_, command) in commands {
                    command.kill();
                }
                told(200, &Value::Null)
            }
            None => refusal(404, "session not found"),
        },
        (&Method::POST, [name, "exec"]) => {
            let Some(text_) = call.json["command"].as_str() else { return refusal(400, "command is missing") };
            if with(call, id, |sessions| sessions.contains_key(*name)) != Some(true) {
                return refusal(404, "session not found");
            }
            let execution = match Execution::start(machine, &Program::shell(text_, environment)) {
                Ok(execution) => Arc::new(execution),
                Err(error) => return refusal(400, &error),
            };
            let command = World::<Daytona>::next("command-");
            with(call, id, |sessions| {
                sessions.entry((*name).to_owned()).or_default().push((command.clone(), Arc::clone(&execution)));
            });
            // Older releases of the SDK have another word for it.
            if call.json["runAsync"] == true || call.json["async"] == true {
                return told(202, &json!({"cmdId": command}));
            }
            let mut follow = execution.follow();
            let _ended = follow.wait_for(|output| output.exit.is_some()).await;
            let output = execution.output();
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            told(
                200,
                &json!({"cmdId": command, "exitCode": output.exit, "output": text(&output), "stdout": out, "stderr": err}),
            )
        }
        (&Method::GET, [session, "command", name, rest @ ..]) => {
            let Some(command) = command(session, name) else { return refusal(404, "command not found") };
            let output = command.output();
            if rest == ["logs"] {
                let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                return told(200, &json!({"output": text(&output), "stdout": out, "stderr": err}));
            }
            told(200, &json!({"id": name, "command": "", "exitCode": output.exit}))
        }
        _ => refusal(404, "no such path"),
    }
}
