//! Events as they come, and commands through a WebSocket (`agent-server-workspace-api` 4.4).

use serde_json::{Value, json};

use super::calls::{EVENTS, execute, ok, same, shapes, text};
use crate::{
    Check,
    bench::Bench,
    check::Problem,
    server::Request,
    socket::{Opened, Socket, open},
};

const SPEC: &str = "agent-server-workspace-api 4.4";

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new("followers/command", "a command through the WebSocket is told, with its output", SPEC)
            .code(|bench| Box::pin(command(bench))),
        Check::new("followers/request", "everybody sees the commands of requests", SPEC)
            .code(|bench| Box::pin(request(bench))),
        Check::new("followers/stored", "what is told is what is stored", SPEC).code(|bench| Box::pin(stored(bench))),
        Check::new("followers/chunks", "the pieces of a large output come one by one", SPEC)
            .code(|bench| Box::pin(chunks(bench))),
        Check::new("followers/errors", "what is no command is told as an error, and the WebSocket stays", SPEC)
            .code(|bench| Box::pin(errors(bench))),
        Check::new("followers/errors-of-one", "errors are told to one only, and not stored", SPEC)
            .code(|bench| Box::pin(errors_of_one(bench))),
        Check::new("followers/resend", "all that is stored is sent first where that is wanted", SPEC)
            .code(|bench| Box::pin(resend(bench))),
        Check::new("followers/no-resend", "nothing that was before is sent otherwise", SPEC)
            .code(|bench| Box::pin(no_resend(bench))),
    ]
}

async fn follow(bench: &Bench, query: &[(&'static str, &str)]) -> Result<Box<Socket>, Problem> {
    let request = Request::get("/sockets/bash-events");
    let request = query.iter().fold(request, |request, (name, value)| request.query(name, *value));
    match open(bench.server(), &request).await? {
        Opened::Socket(socket) => Ok(socket),
        Opened::Refused(status) => Err(Problem::new("a WebSocket", "an open one", format!("status {status}"))),
    }
}

/// A command that no other check has.
fn own(bench: &Bench, command: &str) -> String {
    format!("{command} # {}", bench.session())
}

/// The events of one command up to its end, and no others.
async fn events_of(socket: &mut Socket, command: &str) -> Result<Vec<Value>, Problem> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let event = socket.event().await?;
        let is_first = event["command"] == command;
        let is_next = events.first().is_some_and(|first| first["id"] == event["command_id"]);
        if is_first || is_next {
            let is_last = !event["exit_code"].is_null();
            events.push(event);
            if is_last {
                return Ok(events);
            }
        }
    }
}

async fn ran(socket: &mut Socket, command: &str) -> Result<Vec<Value>, Problem> {
    socket.send(&json!({"command": command, "timeout": 30}).to_string()).await?;
    events_of(socket, command).await
}

fn kinds(events: &[Value]) -> Value {
    events.iter().map(|event| event["kind"].clone()).collect()
}

async fn command(bench: &Bench) -> Result<(), Problem> {
    let mut socket = follow(bench, &[]).await?;
    let events = ran(&mut socket, &own(bench, "echo hi; echo err >&2; exit 2")).await?;
    same("the events", &json!(["BashCommand", "BashOutput"]), &kinds(&events))?;
    let last = events.last().cloned().unwrap_or_default();
    let got = json!([last["stdout"], last["stderr"], last["exit_code"], last["order"]]);
    same("the output", &json!(["hi\n", "err\n", 2, 0]), &got)
}

async fn request(bench: &Bench) -> Result<(), Problem> {
    let (mut one, mut other) = (follow(bench, &[]).await?, follow(bench, &[]).await?);
    let command = own(bench, "echo of a request");
    let output = ok(bench, &execute(&command)).await?;
    for socket in [&mut one, &mut other] {
        let events = events_of(socket, &command).await?;
        same("the events", &json!(["BashCommand", "BashOutput"]), &kinds(&events))?;
        same("the output", &output, &events[1])?;
    }
    Ok(())
}

async fn stored(bench: &Bench) -> Result<(), Problem> {
    let mut socket = follow(bench, &[]).await?;
    for event in ran(&mut socket, &own(bench, "echo hi")).await? {
        let stored = ok(bench, &Request::get(&format!("{EVENTS}/{}", text(&event, "id")))).await?;
        same("GET …/bash_events/{id}", &event, &stored)?;
    }
    Ok(())
}

async fn chunks(bench: &Bench) -> Result<(), Problem> {
    let mut socket = follow(bench, &[]).await?;
    let events = ran(&mut socket, &own(bench, "head -c 1100000 /dev/zero | tr '\\0' a")).await?;
    let expected = json!([[0, 1_048_576, 0, null], [1, 51_424, 0, 0]]);
    same("the outputs", &expected, &shapes(events.get(1..).unwrap_or_default()))
}

const WRONG: [&str; 6] = ["hello", "[]", "{}", r#"{"command":7}"#, r#"{"command":"true","timeout":1.5}"#, "null"];

/// The next error; commands of others may be told meanwhile.
async fn error(socket: &mut Socket) -> Result<Value, Problem> {
    loop {
        let event = socket.event().await?;
        if event["kind"] == "BashError" {
            return Ok(event);
        }
    }
}

async fn errors(bench: &Bench) -> Result<(), Problem> {
    let mut socket = follow(bench, &[]).await?;
    for wrong in WRONG {
        socket.send(wrong).await?;
        let error = error(&mut socket).await?;
        let mut members: Vec<&String> = error.as_object().map(|members| members.keys().collect()).unwrap_or_default();
        members.sort_unstable();
        let expected = ["code", "detail", "id", "kind", "timestamp"];
        Problem::unless(members == expected, wrong, &format!("an error with {expected:?}"), &error.to_string())?;
    }
    ran(&mut socket, &own(bench, "true")).await.map(drop)
}

async fn errors_of_one(bench: &Bench) -> Result<(), Problem> {
    let (mut one, mut other) = (follow(bench, &[]).await?, follow(bench, &[]).await?);
    one.send("hello").await?;
    let id = text(&error(&mut one).await?, "id").to_owned();
    let command = own(bench, "true");
    one.send(&json!({ "command": command }).to_string()).await?;
    loop {
        let event = other.event().await?;
        Problem::unless(event["id"] != id.as_str(), "another WebSocket", "no error", &event.to_string())?;
        if event["command"] == command.as_str() {
            break;
        }
    }
    let answer = bench.send(&Request::get(&format!("{EVENTS}/{id}"))).await?;
    Problem::unless(answer.status == 404, "the error by its id", "status 404", &format!("status {}", answer.status))
}

async fn resend(bench: &Bench) -> Result<(), Problem> {
    for (attempt, query) in [("resend_mode", "all"), ("resend_all", "true")].into_iter().enumerate() {
        let command = own(bench, &format!("echo {attempt}"));
        let output = ok(bench, &execute(&command)).await?;
        let mut socket = follow(bench, &[query]).await?;
        let events = events_of(&mut socket, &command).await?;
        same("the stored output", &output, events.last().unwrap_or(&Value::Null))?;
    }
    Ok(())
}

async fn no_resend(bench: &Bench) -> Result<(), Problem> {
    let before = own(bench, "echo before");
    ok(bench, &execute(&before)).await?;
    let mut socket = follow(bench, &[]).await?;
    let after = own(bench, "echo after");
    socket.send(&json!({ "command": after }).to_string()).await?;
    loop {
        let event = socket.event().await?;
        let is_old = event["command"] == before.as_str();
        Problem::unless(!is_old, "a new WebSocket", "only new events", &event.to_string())?;
        if event["command"] == after.as_str() {
            return Ok(());
        }
    }
}
