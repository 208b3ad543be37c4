//! What checks stand on: a directory, commands and files in the sandbox, by the protocol that is checked.

mod sdk;
mod swerex;
mod v0;

use std::time::Duration;

use serde_json::Value;

pub(crate) use self::{sdk::upload as sdk_upload, swerex::upload as swerex_upload};
use crate::{
    ConformanceError, Server, Wire,
    server::{Request, shown},
};

/// Makes a directory, and answers with that which the server was started in.
pub(crate) async fn begin(server: &Server, base: &str, pause: Duration) -> Result<String, ConformanceError> {
    let workspace = match server.wire() {
        Wire::V0 => v0::begin(server, base, pause).await?,
        Wire::Sdk | Wire::Swerex => {
            let (exit, output) = shell(server, &format!("mkdir -p '{base}' && pwd")).await?;
            if exit != 0 {
                return Err(server.no_scratch(format!("`mkdir` ended with exit code {exit}: {output}")));
            }
            output.trim_end_matches('\n').to_owned()
        }
    };
    if workspace.starts_with('/') {
        Ok(workspace)
    } else {
        Err(server.no_scratch(format!("`pwd` printed {workspace:?}")))
    }
}

/// Runs a command that removes what checks left, whatever still runs.
pub(crate) async fn clear(server: &Server, command: &str) -> Result<(), ConformanceError> {
    match server.wire() {
        Wire::V0 => v0::run_apart(server, command).await.map(drop),
        Wire::Sdk | Wire::Swerex => shell(server, command).await.map(drop),
    }
}

/// Ends what a failed check may have left running.
pub(crate) async fn recover(server: &Server, pause: Duration) -> Result<(), ConformanceError> {
    match server.wire() {
        Wire::V0 => v0::recover(server, pause).await,
        // Their commands have limits of their own, and sessions end with the check that made them.
        Wire::Sdk | Wire::Swerex => Ok(()),
    }
}

/// Ends the sessions of a check, if it has any.
pub(crate) async fn leave(server: &Server, sessions: &[String]) -> Result<(), ConformanceError> {
    match server.wire() {
        Wire::V0 | Wire::Sdk => {}
        Wire::Swerex => {
            for session in sessions {
                server.send(&swerex::close(session)).await?;
            }
        }
    }
    Ok(())
}

/// Runs a command, to see or to prepare something, and gives its exit code and output.
pub(crate) async fn shell(server: &Server, command: &str) -> Result<(i64, String), ConformanceError> {
    let request = match server.wire() {
        Wire::V0 => return v0::shell(server, command).await,
        Wire::Sdk => sdk::command(command),
        Wire::Swerex => swerex::command(command),
    };
    let answer = server.send(&request).await?;
    let ended = answer.value();
    let text = |name: &str| ended.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match ended.get("exit_code").and_then(Value::as_i64).filter(|_| answer.status == 200) {
        Some(0) => Ok((0, text("stdout"))),
        Some(exit) => Ok((exit, text("stdout") + &text("stderr"))),
        None => {
            let body = ended.to_string();
            Err(server.no_scratch(format!("a command got status {}: {}", answer.status, shown(&body))))
        }
    }
}

/// The request that stores a file in a directory that is there.
pub(crate) fn upload(wire: Wire, directory: &str, name: &str, content: &[u8]) -> Request {
    match wire {
        Wire::V0 => Request::upload(directory, "file", name, content),
        Wire::Sdk => sdk::upload(&format!("{directory}/{name}"), content),
        Wire::Swerex => swerex::upload(&format!("{directory}/{name}"), content, false),
    }
}
