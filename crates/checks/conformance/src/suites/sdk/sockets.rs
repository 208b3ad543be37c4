//! The key of a WebSocket (`agent-server-workspace-api` 4.4).

use serde_json::json;

use crate::{
    Check,
    bench::Bench,
    check::Problem,
    server::Request,
    socket::{Frame, Opened, Socket, open},
};

const SPEC: &str = "agent-server-workspace-api 4.4";
const PATH: &str = "/sockets/bash-events";

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new("sockets/header", "the key can be a header", SPEC)
            .code(|bench| Box::pin(async move { usable(bench, &Request::get(PATH), None).await })),
        Check::new("sockets/query", "the key can be a part of the query", SPEC)
            .with_key()
            .code(|bench| Box::pin(query(bench))),
        Check::new("sockets/frame", "the key can be the first message", SPEC)
            .with_key()
            .code(|bench| Box::pin(frame(bench))),
        Check::new("sockets/query-first", "the key of the query counts, whatever the header says", SPEC)
            .with_key()
            .code(|bench| Box::pin(query_first(bench))),
        Check::new("sockets/wrong", "a wrong key is refused with status 403", SPEC)
            .with_key()
            .code(|bench| Box::pin(wrong(bench))),
        Check::new("sockets/wrong-frame", "a first message that is no right key closes with code 4001", SPEC)
            .with_key()
            .code(|bench| Box::pin(wrong_frames(bench))),
        Check::new("sockets/frame-again", "a message with a key does nothing where there was one", SPEC)
            .with_key()
            .code(|bench| Box::pin(frame_again(bench))),
        Check::new("sockets/unknown", "there is no WebSocket at another path", SPEC)
            .code(|bench| Box::pin(unknown(bench))),
    ]
}

/// A WebSocket that must be open.
async fn opened(bench: &Bench, request: &Request) -> Result<Box<Socket>, Problem> {
    match open(bench.server(), request).await? {
        Opened::Socket(socket) => Ok(socket),
        Opened::Refused(status) => Err(Problem::new("a WebSocket", "an open one", format!("status {status}"))),
    }
}

/// The message that holds a key.
fn auth(key: &str) -> String {
    json!({"type": "auth", "session_api_key": key}).to_string()
}

/// A WebSocket that must do its work, with this first message.
async fn usable(bench: &Bench, request: &Request, first: Option<&str>) -> Result<(), Problem> {
    let mut socket = opened(bench, request).await?;
    if let Some(first) = first {
        socket.send(first).await?;
    }
    let command = format!("true # {}", bench.session());
    socket.send(&json!({ "command": command, "timeout": 30 }).to_string()).await?;
    loop {
        let event = socket.event().await?;
        if event["command"] == command.as_str() {
            return Ok(());
        }
        let is_error = event["kind"] == "BashError";
        Problem::unless(!is_error, "a command through the WebSocket", "its event", &event.to_string())?;
    }
}

fn key(bench: &Bench) -> &str {
    bench.server().key().unwrap_or_default()
}

async fn query(bench: &Bench) -> Result<(), Problem> {
    usable(bench, &Request::get(PATH).without_key().query("session_api_key", key(bench)), None).await
}

async fn frame(bench: &Bench) -> Result<(), Problem> {
    usable(bench, &Request::get(PATH).without_key(), Some(&auth(key(bench)))).await
}

async fn query_first(bench: &Bench) -> Result<(), Problem> {
    let plain = || Request::get(PATH).without_key();
    let right = plain().query("session_api_key", key(bench)).header("x-session-api-key", "wrong");
    usable(bench, &right, None).await?;
    refused(bench, &Request::get(PATH).query("session_api_key", "wrong")).await
}

async fn refused(bench: &Bench, request: &Request) -> Result<(), Problem> {
    match open(bench.server(), request).await? {
        Opened::Refused(403) => Ok(()),
        Opened::Refused(status) => Err(Problem::new("a WebSocket", "status 403", format!("status {status}"))),
        Opened::Socket(_) => Err(Problem::new("a WebSocket", "status 403", "an open WebSocket")),
    }
}

async fn wrong(bench: &Bench) -> Result<(), Problem> {
    let plain = || Request::get(PATH).without_key();
    refused(bench, &plain().header("x-session-api-key", "wrong")).await?;
    refused(bench, &plain().query("session_api_key", "wrong")).await
}

async fn wrong_frames(bench: &Bench) -> Result<(), Problem> {
    let frames = [
        auth("wrong"),
        r#"{"type":"auth"}"#.to_owned(),
        r#"{"type":"auth","session_api_key":7}"#.to_owned(),
        r#"{"command":"true"}"#.to_owned(),
        "[1]".to_owned(),
        "hello".to_owned(),
    ];
    for text in frames {
        let mut socket = opened(bench, &Request::get(PATH).without_key()).await?;
        socket.send(&text).await?;
        let got = socket.next().await?;
        Problem::unless(got == Frame::Closed(Some(4001)), &text, "a close with code 4001", &format!("{got:?}"))?;
    }
    Ok(())
}

async fn frame_again(bench: &Bench) -> Result<(), Problem> {
    usable(bench, &Request::get(PATH), Some(&auth("wrong"))).await
}

async fn unknown(bench: &Bench) -> Result<(), Problem> {
    match open(bench.server(), &Request::get("/sockets/no-such")).await? {
        Opened::Refused(_) => Ok(()),
        Opened::Socket(_) => Err(Problem::new("a WebSocket at /sockets/no-such", "a refusal", "an open WebSocket")),
    }
}
