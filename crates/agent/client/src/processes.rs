//! Processes of a server: programs with pipes, with what they write as it comes.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gloveport_protocol::processes::{
    ProcessEnd, ProcessEvent, ProcessFrom, ProcessList, ProcessRequest, ProcessSignal, ProcessStatus, ProcessStream,
};
use reqwest::Method;
use serde::Deserialize;

use crate::{
    ActionExecutionClient, ClientError, call::Call, exec::segment, files::Upload, session::Session, sse::Events,
};

const PATH: &str = "v1/processes";

/// The processes of a server. Every request is sent one time.
#[derive(Debug, Clone)]
pub struct Processes {
    session: Arc<Session>,
}

/// What a process does. Dropping it does not end the process. A stream that breaks is not taken up again.
#[derive(Debug)]
pub struct ProcessOutput {
    url: String,
    events: Events,
    ended: bool,
}

#[derive(Deserialize)]
struct Output {
    stream: ProcessStream,
    text: Option<String>,
    base64: Option<String>,
}

#[derive(Deserialize)]
struct Lost {
    bytes: u64,
}

impl ActionExecutionClient {
    /// The processes of the server.
    pub fn processes(&self) -> Processes {
        Processes { session: Arc::clone(&self.shared.session) }
    }
}

impl Processes {
    /// Starts a process.
    pub async fn start(&self, request: &ProcessRequest) -> Result<ProcessStatus, ClientError> {
        self.session.once_json(&Call::post(PATH, request, Some(self.session.limits.other))?).await
    }

    /// The processes that the server knows, and as whom they work.
    pub async fn list(&self) -> Result<ProcessList, ClientError> {
        self.session.once_json(&Call::get(PATH, self.session.limits.other)).await
    }

    /// Ends a process with everything that it started, and answers with how it ended.
    pub async fn remove(&self, id: &str) -> Result<ProcessStatus, ClientError> {
        let path = path(id);
        self.session.once_json(&Call { method: Method::DELETE, ..Call::get(&path, self.session.limits.other) }).await
    }

    /// Follows what a process does.
    pub async fn follow(&self, id: &str, from: ProcessFrom) -> Result<ProcessOutput, ClientError> {
        let from = match from {
            ProcessFrom::Start => "start",
            ProcessFrom::Now => "now",
        };
        let (path, limit) = (format!("{}/output", path(id)), self.session.limits.stream);
        let call = Call { query: vec![("from", from.to_owned())], ..Call::get(&path, limit) };
        let response = self.session.send(&call).await?;
        let url = response.url().to_string();
        Ok(ProcessOutput { url, events: Events::new(response, limit), ended: false })
    }

    /// Gives input to a process.
    pub async fn write(&self, id: &str, bytes: impl Into<Bytes>) -> Result<(), ClientError> {
        let path = format!("{}/input", path(id));
        let payload = Upload::from(bytes.into()).payload("application/octet-stream");
        let call = Call { method: Method::POST, payload, ..Call::get(&path, self.session.limits.other) };
        self.session.once(&call).await.map(drop)
    }

    /// Ends the input of a process.
    pub async fn close_input(&self, id: &str) -> Result<(), ClientError> {
        let path = format!("{}/input", path(id));
        let call = Call { method: Method::DELETE, ..Call::get(&path, self.session.limits.other) };
        self.session.once(&call).await.map(drop)
    }

    /// Sends a signal, by its name without `SIG`, to a process, or to all of its process group.
    pub async fn signal(&self, id: &str, name: &str, group: bool) -> Result<(), ClientError> {
        let path = format!("{}/signal", path(id));
        let signal = ProcessSignal { name: name.to_owned(), group };
        self.session.once(&Call::post(&path, &signal, Some(self.session.limits.other))?).await.map(drop)
    }
}

impl ProcessOutput {
    /// What the process does next; none behind its end.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, ClientError> {
        while !self.ended {
            let Some(event) = self.events.next().await? else {
                let reason = "the stream ended before the process did".to_owned();
                return Err(ClientError::Answer { url: self.url.clone(), reason });
            };
            match event.name.as_str() {
                "output" => {
                    let Output { stream, text, base64 } = event.json(&self.url)?;
                    let bytes = match (text, base64) {
                        (Some(text), _) => text.into_bytes(),
                        (None, encoded) => STANDARD.decode(encoded.unwrap_or_default()).map_err(|error| {
                            ClientError::Answer { url: self.url.clone(), reason: error.to_string() }
                        })?,
                    };
                    return Ok(Some(ProcessEvent::Output { stream, bytes }));
                }
                "lost" => return Ok(Some(ProcessEvent::Lost(event.json::<Lost>(&self.url)?.bytes))),
                "exit" => {
                    self.ended = true;
                    return Ok(Some(ProcessEvent::Ended(event.json::<ProcessEnd>(&self.url)?)));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

fn path(id: &str) -> String {
    format!("{PATH}/{}", segment(id))
}
