//! IPython kernels of a server: cells, with what they show as it comes.

use std::{sync::Arc, time::Duration};

use gloveport_protocol::kernels::{CellRequest, CellResult, KernelStatus};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{ActionExecutionClient, ClientError, call::Call, exec::segment, session::Session, sse::Events};

const PATH: &str = "v1/kernels";

/// The kernels of a server.
#[derive(Debug, Clone)]
pub struct Kernels {
    session: Arc<Session>,
}

/// Something that a cell does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellEvent {
    /// It showed text, which may have colours.
    Text(String),
    /// It showed a picture.
    Image {
        /// Its type, such as `image/png`.
        media_type: String,
        /// Its bytes in base64.
        base64: String,
    },
    /// It ended. Text and images of the result are empty. Nothing follows.
    Ended(CellResult),
}

/// Something that a cell does, with standard output, standard error, results and exceptions apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellDetail {
    /// It wrote text.
    Stream {
        /// To standard error.
        is_error: bool,
        /// What, which may have colours.
        text: String,
    },
    /// It showed something.
    Display {
        /// All of its forms, by type.
        data: Map<String, Value>,
        /// It is the value of the last expression.
        is_result: bool,
    },
    /// It ended with an exception.
    Raised {
        /// Its class.
        name: String,
        /// What it says.
        value: String,
        /// How it came about, with colours.
        traceback: Vec<String>,
    },
    /// It ended. Text and images of the result are empty. Nothing follows.
    Ended(CellResult),
}

/// A running cell, in detail. What is said of [`CellStream`] holds.
#[derive(Debug)]
pub struct CellDetails(CellStream);

/// A running cell. Dropping it does not end the cell. A stream that breaks is not taken up again: a cell that was sent
/// once more would run once more.
#[derive(Debug)]
pub struct CellStream {
    url: String,
    events: Events,
    ended: bool,
}

#[derive(Deserialize)]
struct List {
    kernels: Vec<KernelStatus>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Image {
    media_type: String,
    base64: String,
}

#[derive(Deserialize)]
struct Stream {
    stream: String,
    text: String,
}

#[derive(Deserialize)]
struct Display {
    data: Map<String, Value>,
    is_result: bool,
}

#[derive(Deserialize)]
struct Raised {
    name: String,
    value: String,
    traceback: Vec<String>,
}

#[derive(Deserialize)]
struct Failed {
    message: String,
}

impl ActionExecutionClient {
    /// The IPython kernels of the server.
    pub fn kernels(&self) -> Kernels {
        Kernels { session: Arc::clone(&self.shared.session) }
    }
}

impl Kernels {
    /// The kernels that there are.
    pub async fn list(&self) -> Result<Vec<KernelStatus>, ClientError> {
        let answer: List = self.session.once_json(&Call::get(PATH, self.session.limits.other)).await?;
        Ok(answer.kernels)
    }

    /// Runs a cell to its end in the kernel of this name, which is started if there is none.
    pub async fn execute(&self, name: &str, request: &CellRequest) -> Result<CellResult, ClientError> {
        let path = format!("{}/execute", path(name));
        // The server knows the time limit of the cell; other cells may come first.
        self.session.once_json(&Call::post(&path, request, None)?).await
    }

    /// Runs a cell, and tells what it shows as it comes.
    pub async fn start(&self, name: &str, request: &CellRequest) -> Result<CellStream, ClientError> {
        self.followed(name, request, false).await
    }

    /// Runs a cell, and tells in detail what it shows as it comes.
    pub async fn start_in_detail(&self, name: &str, request: &CellRequest) -> Result<CellDetails, ClientError> {
        self.followed(name, request, true).await.map(CellDetails)
    }

    async fn followed(&self, name: &str, request: &CellRequest, detail: bool) -> Result<CellStream, ClientError> {
        let path = format!("{}/execute?follow=true&detail={detail}", path(name));
        let limit: Duration = self.session.limits.stream;
        let response = self.session.send(&Call::post(&path, request, Some(limit))?).await?;
        let url = response.url().to_string();
        Ok(CellStream { url, events: Events::new(response, limit), ended: false })
    }

    /// Interrupts the cell that runs.
    pub async fn interrupt(&self, name: &str) -> Result<KernelStatus, ClientError> {
        self.change(Method::POST, &format!("{}/interrupt", path(name))).await
    }

    /// Ends the kernel and starts another one of this name.
    pub async fn restart(&self, name: &str) -> Result<KernelStatus, ClientError> {
        self.change(Method::POST, &format!("{}/restart", path(name))).await
    }

    /// Ends the kernel.
    pub async fn remove(&self, name: &str) -> Result<KernelStatus, ClientError> {
        self.change(Method::DELETE, &path(name)).await
    }

    async fn change(&self, method: Method, path: &str) -> Result<KernelStatus, ClientError> {
        self.session.once_json(&Call { method, ..Call::get(path, self.session.limits.other) }).await
    }
}

impl CellStream {
    /// The next event; none after the end.
    pub async fn next(&mut self) -> Result<Option<CellEvent>, ClientError> {
        while !self.ended {
            let Some(event) = self.events.next().await? else {
                let reason = "the stream ended before the cell did".to_owned();
                return Err(ClientError::Answer { url: self.url.clone(), reason });
            };
            match event.name.as_str() {
                "text" => return Ok(Some(CellEvent::Text(event.json::<Text>(&self.url)?.text))),
                "image" => {
                    let Image { media_type, base64 } = event.json(&self.url)?;
                    return Ok(Some(CellEvent::Image { media_type, base64 }));
                }
                "end" => {
                    self.ended = true;
                    return Ok(Some(CellEvent::Ended(event.json(&self.url)?)));
                }
                "failed" => {
                    let reason = event.json::<Failed>(&self.url)?.message;
                    return Err(ClientError::Answer { url: self.url.clone(), reason });
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

impl CellDetails {
    /// The next event; none after the end.
    pub async fn next(&mut self) -> Result<Option<CellDetail>, ClientError> {
        let CellStream { url, events, ended } = &mut self.0;
        while !*ended {
            let Some(event) = events.next().await? else {
                let reason = "the stream ended before the cell did".to_owned();
                return Err(ClientError::Answer { url: url.clone(), reason });
            };
            return Ok(Some(match event.name.as_str() {
                "stream" => {
                    let Stream { stream, text } = event.json(url)?;
                    CellDetail::Stream { is_error: stream == "stderr", text }
                }
                "display" => {
                    let Display { data, is_result } = event.json(url)?;
                    CellDetail::Display { data, is_result }
                }
                "raised" => {
                    let Raised { name, value, traceback } = event.json(url)?;
                    CellDetail::Raised { name, value, traceback }
                }
                "end" => {
                    *ended = true;
                    CellDetail::Ended(event.json(url)?)
                }
                "failed" => {
                    let reason = event.json::<Failed>(url)?.message;
                    return Err(ClientError::Answer { url: url.clone(), reason });
                }
                _ => continue,
            }));
        }
        Ok(None)
    }
}

fn path(name: &str) -> String {
    format!("{PATH}/{}", segment(name))
}
