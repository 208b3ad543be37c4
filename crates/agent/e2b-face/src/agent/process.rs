//! The service `process.Process`.

mod events;
mod input;
mod start;

use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use gloveport_protocol::terminals::TerminalSize;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    handle::Agent,
    target::{Selector, Target},
};
use crate::connect::{self, Code, ConnectError, Kind};

/// Size of a terminal.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Size {
    cols: u16,
    rows: u16,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Pty {
    size: Option<Size>,
}

impl Pty {
    /// The size, where one is said.
    fn size(self) -> Option<TerminalSize> {
        let size = self.size.filter(|size| size.cols > 0 && size.rows > 0)?;
        Some(TerminalSize { columns: size.cols, rows: size.rows })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Empty {}

#[derive(Debug, Deserialize)]
struct SelectRequest {
    process: Option<Selector>,
}

#[derive(Debug, Deserialize)]
struct SignalRequest {
    process: Option<Selector>,
    #[serde(default)]
    signal: Value,
}

#[derive(Debug, Deserialize)]
struct UpdateRequest {
    process: Option<Selector>,
    #[serde(default)]
    pty: Option<Pty>,
}

/// Answers a call.
pub(super) async fn answer(agent: Agent, method: &str, request: Request) -> Response {
    let kind = if ["Start", "Connect", "StreamInput"].contains(&method) { Kind::Stream } else { Kind::Unary };
    if let Err(refused) = connect::check(&request, kind) {
        return refused;
    }
    let outcome = match method {
        "Start" => return start::start(agent, request).await,
        "Connect" => return start::connect(agent, request).await,
        "StreamInput" => return connect::answer_one(input::stream(&agent, request).await),
        "List" => agent.list(request).await,
        "SendInput" => input::send(&agent, request).await,
        "CloseStdin" => agent.close_input(request).await,
        "SendSignal" => agent.signal(request).await,
        "Update" => agent.update(request).await,
        other => {
            let message = format!("process.Process has no method {other}");
            return ConnectError::new(Code::Unimplemented, message).into_response();
        }
    };
    connect::unary(outcome)
}

impl Agent {
    async fn list(&self, request: Request) -> Result<Value, ConnectError> {
        let Empty {} = connect::message(request).await?;
        let told = self.running().await?.into_iter().filter_map(|target| {
            let (cmd, args) = target.argv().split_first()?;
            // Variables may be secrets, and are not told again.
            let config = json!({"cmd": cmd, "args": args, "envs": {}, "cwd": target.directory()});
            let mut told = json!({"config": config, "pid": target.pid()?});
            if let Some(tag) = target.tag() {
                told["tag"] = tag.into();
            }
            Some(told)
        });
        Ok(json!({"processes": told.collect::<Vec<_>>()}))
    }

    async fn close_input(&self, request: Request) -> Result<Value, ConnectError> {
        let SelectRequest { process } = connect::message(request).await?;
        match self.target(process.as_ref()).await? {
            Target::Pipes(process) => self.place.client.processes().close_input(&process.id).await?,
            Target::Terminal(_) => {
                let message = "the input of a terminal cannot be closed; type C-d (\\u0004) instead";
                return Err(ConnectError::new(Code::FailedPrecondition, message));
            }
        }
        Ok(json!({}))
    }

    async fn signal(&self, request: Request) -> Result<Value, ConnectError> {
        let SignalRequest { process, signal } = connect::message(request).await?;
        // Enumerations may be sent as their numbers.
        let name = match (signal.as_str(), signal.as_u64()) {
            (Some("SIGNAL_SIGTERM"), _) | (_, Some(15)) => "TERM",
            (Some("SIGNAL_SIGKILL"), _) | (_, Some(9)) => "KILL",
            _ => return Err(ConnectError::wrong("the signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL")),
        };
        match self.target(process.as_ref()).await? {
            Target::Pipes(process) => self.place.client.processes().signal(&process.id, name, true).await?,
            // A shell on a terminal does not listen to SIGTERM: the terminal goes, and with it all that is on it.
            Target::Terminal(terminal) => drop(self.place.client.terminals().remove(&terminal.id).await?),
        }
        Ok(json!({}))
    }

    async fn update(&self, request: Request) -> Result<Value, ConnectError> {
        let UpdateRequest { process, pty } = connect::message(request).await?;
        match (self.target(process.as_ref()).await?, pty.and_then(Pty::size)) {
            (Target::Terminal(terminal), Some(size)) => {
                self.place.client.terminals().resize(&terminal.id, size).await?;
            }
            (Target::Pipes(_), Some(_)) => {
                return Err(ConnectError::new(Code::FailedPrecondition, "the process is not on a terminal"));
            }
            (_, None) => {}
        }
        Ok(json!({}))
    }
}
