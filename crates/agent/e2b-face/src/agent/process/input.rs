//! What is typed into processes.

use std::time::Duration;

use axum::extract::Request;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gloveport_client::{AttachOptions, AttachedTerminal};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    agent::{
        handle::Agent,
        target::{Selector, Target},
    },
    connect::{self, Code, ConnectError, Envelopes},
};

/// How long a stream of input may be silent; clients send a sign of life before that.
const SILENCE: Duration = Duration::from_mins(5);
/// How long a terminal may take to take what is typed.
const TYPING: Duration = Duration::from_secs(30);

/// What is typed, and where.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    stdin: Option<String>,
    pty: Option<String>,
}

#[derive(Debug, Deserialize)]
struct SendRequest {
    process: Option<Selector>,
    #[serde(default)]
    input: Input,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamRequest {
    start: Option<SendStart>,
    data: Option<SendData>,
}

#[derive(Debug, Deserialize)]
struct SendStart {
    process: Option<Selector>,
}

#[derive(Debug, Deserialize)]
struct SendData {
    #[serde(default)]
    input: Input,
}

/// Where input goes.
enum Sink<'a> {
    Pipe(&'a Agent, String),
    Terminal(Box<AttachedTerminal>),
}

impl Agent {
    async fn sink(&self, selector: Option<&Selector>) -> Result<Sink<'_>, ConnectError> {
        Ok(match self.target(selector).await? {
            Target::Pipes(process) => Sink::Pipe(self, process.id),
            Target::Terminal(terminal) => {
                let options = AttachOptions { offset: Some(terminal.end), ..AttachOptions::default() };
                Sink::Terminal(Box::new(self.place.client.terminals().attach(&terminal.id, options).await?))
            }
        })
    }
}

impl Sink<'_> {
    async fn write(&self, input: &Input) -> Result<(), ConnectError> {
        let decode = |text: &Option<String>| {
            let decoded = text.as_ref().map(|text| STANDARD.decode(text)).transpose();
            decoded.map_err(|_| ConnectError::wrong("the input is not in base64"))
        };
        match (self, decode(&input.stdin)?, decode(&input.pty)?) {
            (Self::Pipe(agent, id), Some(bytes), None) => Ok(agent.place.client.processes().write(id, bytes).await?),
            (Self::Terminal(terminal), None, Some(bytes)) => {
                let typing = terminal.input();
                match timeout(TYPING, typing.send(Bytes::from(bytes))).await {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(ConnectError::new(Code::NotFound, "the process on the terminal has ended")),
                    Err(_) => {
                        Err(ConnectError::new(Code::DeadlineExceeded, "the programs on the terminal read nothing"))
                    }
                }
            }
            (Self::Pipe(..), _, Some(_)) => {
                Err(ConnectError::new(Code::FailedPrecondition, "the process is not on a terminal; send stdin"))
            }
            (Self::Terminal(_), Some(_), _) => {
                Err(ConnectError::new(Code::FailedPrecondition, "the process is on a terminal; send pty"))
            }
            (_, None, None) => Err(ConnectError::wrong("there is no input")),
        }
    }

    /// Waits until what was typed has left.
    async fn close(self) {
        if let Self::Terminal(terminal) = self {
            terminal.detach().await;
        }
    }
}

/// Types once.
pub(super) async fn send(agent: &Agent, request: Request) -> Result<Value, ConnectError> {
    let SendRequest { process, input } = connect::message(request).await?;
    let sink = agent.sink(process.as_ref()).await?;
    sink.write(&input).await?;
    sink.close().await;
    Ok(json!({}))
}

/// Types what comes, as it comes: the first message names the process.
pub(super) async fn stream(agent: &Agent, request: Request) -> Result<Value, ConnectError> {
    let mut envelopes = Envelopes::new(request.into_body());
    let mut sink = None;
    loop {
        let read = timeout(SILENCE, envelopes.next()).await;
        let silent = |_| ConnectError::new(Code::DeadlineExceeded, "the stream of input was silent for too long");
        let Some(message) = read.map_err(silent)?? else { break };
        let message: StreamRequest = connect::parse(&message)?;
        match (&sink, message) {
            (None, StreamRequest { start: Some(start), .. }) => sink = Some(agent.sink(start.process.as_ref()).await?),
            (Some(_), StreamRequest { start: Some(_), .. }) => {
                return Err(ConnectError::wrong("the stream names a process twice"));
            }
            (Some(sink), StreamRequest { data: Some(data), .. }) => sink.write(&data.input).await?,
            (None, StreamRequest { data: Some(_), .. }) => {
                return Err(ConnectError::wrong("the first message of the stream must name a process"));
            }
            (_, StreamRequest { start: None, data: None }) => {}
        }
    }
    if let Some(sink) = sink {
        sink.close().await;
    }
    Ok(json!({}))
}
