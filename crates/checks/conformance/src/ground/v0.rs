//! OpenHands 0.62: one shell for all commands, and static commands beside it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    ConformanceError, Server,
    server::{Answer, run_action, shown},
};

pub(super) async fn begin(server: &Server, base: &str, pause: Duration) -> Result<String, ConformanceError> {
    // The reference may answer the first commands after its start with the result of the one before.
    for _ in 0..2 {
        shell(server, "true").await?;
        Server::rest(pause.max(Duration::from_millis(100))).await;
    }
    let workspace = run_apart(server, "pwd").await?.value();
    let workspace = workspace.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !workspace.starts_with('/') {
        return Ok(workspace);
    }
    let made = run_apart(server, &format!("mkdir -p {base}")).await?.value();
    if made.pointer("/extras/metadata/exit_code") == Some(&json!(0)) {
        Ok(workspace)
    } else {
        Err(server.no_scratch(shown(&made.to_string()).to_owned()))
    }
}

/// A static command: nothing that runs in the shell holds it up.
pub(super) async fn run_apart(server: &Server, command: &str) -> Result<Answer, ConformanceError> {
    server.execute(&run_action(command, &json!({ "is_static": true }))).await
}

pub(super) async fn shell(server: &Server, command: &str) -> Result<(i64, String), ConformanceError> {
    let answer = server.execute(&run_action(command, &json!({ "hidden": true }))).await?.value();
    let exit = answer.pointer("/extras/metadata/exit_code").and_then(Value::as_i64).unwrap_or(-1);
    Ok((exit, answer.get("content").and_then(Value::as_str).unwrap_or_default().to_owned()))
}

/// Interrupts what a failed check may have left running in the shell.
pub(super) async fn recover(server: &Server, pause: Duration) -> Result<(), ConformanceError> {
    // Nothing may run at all; the next check tells whether the shell works.
    server.execute(&run_action("C-c", &json!({ "is_input": true }))).await?;
    Server::rest(pause.max(Duration::from_millis(100))).await;
    shell(server, "true").await?;
    Server::rest(pause).await;
    Ok(())
}
