//! Native commands: output as it comes, and a lost stream is taken up again where it ended.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use base64::Engine as _;
use gloveport_protocol::exec::{ExecEnd, ExecEvent, ExecInput, ExecRequest, ExecStatus};
use reqwest::header::{ACCEPT, HeaderValue};
use serde::Deserialize;

use crate::{
    ActionExecutionClient, ClientError,
    call::Call,
    session::Session,
    sse::{Event, Events},
};

/// How often a lost stream is taken up again, without an event between, before we give up.
const RECONNECTIONS: u32 = 10;
/// The wait before the first of them; each is longer by this.
const RECONNECTION_PAUSE: Duration = Duration::from_millis(200);
const PATH: &str = "v1/exec";

/// A running native command. Dropping it does not end the command.
#[derive(Debug)]
pub struct ExecStream {
    session: Arc<Session>,
    asked: Asked,
    id: String,
    events: Option<Events>,
    last_id: Option<String>,
    /// Attempts since the last event.
    attempts: u32,
    ready: VecDeque<ExecEvent>,
    ended: bool,
}

/// How a command is followed.
#[derive(Debug)]
enum Asked {
    /// With the request that starts it, however often it is sent.
    Start(ExecRequest),
    /// One that was started before, from this offset on.
    Known(u64),
}

#[derive(Deserialize)]
struct Output {
    offset: u64,
    text: Option<String>,
    base64: Option<String>,
}

#[derive(Deserialize)]
struct Gap {
    from: u64,
    to: u64,
}

#[derive(Deserialize)]
struct Waiting {
    waiting_for_input: bool,
    #[serde(default)]
    hides_input: bool,
}

#[derive(Deserialize)]
struct Execs {
    execs: Vec<ExecStatus>,
}

impl ActionExecutionClient {
    /// Starts a native command and follows it. The command has an id, one that is made up if the request has none, so
    /// it runs once however often the connection is lost.
    pub async fn exec(&self, mut request: ExecRequest) -> Result<ExecStream, ClientError> {
        let id = match &request.id {
            Some(id) => id.clone(),
            None => random_id(self.url())?,
        };
        request.id = Some(id.clone());
        self.follow(id, Asked::Start(request)).await
    }

    /// Follows a native command that was started before, from an offset of its output on.
    pub async fn exec_follow(&self, id: &str, offset: u64) -> Result<ExecStream, ClientError> {
        self.follow(id.to_owned(), Asked::Known(offset)).await
    }

    async fn follow(&self, id: String, asked: Asked) -> Result<ExecStream, ClientError> {
        let mut stream = ExecStream {
            session: Arc::clone(&self.shared.session),
            asked,
            id,
            events: None,
            last_id: None,
            attempts: 0,
            ready: VecDeque::new(),
            ended: false,
        };
        match stream.connect().await {
            Ok(()) => Ok(stream),
            Err(error @ ClientError::Unreachable { .. }) => Err(error),
            Err(error) => {
                stream.connect_again(error).await?;
                Ok(stream)
            }
        }
    }

    /// The native commands that the server knows.
    pub async fn execs(&self) -> Result<Vec<ExecStatus>, ClientError> {
        let answer: Execs = self.session().once_json(&Call::get(PATH, self.session().limits.other)).await?;
        Ok(answer.execs)
    }

    /// How a native command stands.
    pub async fn exec_status(&self, id: &str) -> Result<ExecStatus, ClientError> {
        let path = format!("{PATH}/{}", segment(id));
        self.session().once_json(&Call::get(&path, self.session().limits.other)).await
    }

    /// Types text and Enter, or a key such as `C-c`, into a native command.
    pub async fn exec_input(&self, id: &str, text: &str) -> Result<(), ClientError> {
        let path = format!("{PATH}/{}/input", segment(id));
        let body = ExecInput { text: text.to_owned() };
        self.session().once(&Call::post(&path, &body, Some(self.session().limits.other))?).await.map(drop)
    }

    /// Interrupts a native command.
    pub async fn exec_interrupt(&self, id: &str) -> Result<(), ClientError> {
        let path = format!("{PATH}/{}/interrupt", segment(id));
        let call = Call { method: reqwest::Method::POST, ..Call::get(&path, self.session().limits.other) };
        self.session().once(&call).await.map(drop)
    }

    /// Gives a native command up: one that waits for its turn never begins, one that runs is interrupted, and then quit if
    /// it does not end. One that has ended stays as it is. Its end is to be seen by its stream or its status.
    pub async fn exec_cancel(&self, id: &str) -> Result<(), ClientError> {
        let path = format!("{PATH}/{}", segment(id));
        let call = Call { method: reqwest::Method::DELETE, ..Call::get(&path, self.session().limits.other) };
        self.session().once(&call).await.map(drop)
    }
}

impl ExecStream {
    /// The id of the command.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next event; none after the end.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, ClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            let url = format!("{}{PATH}", self.session.base());
            let Some(events) = &mut self.events else {
                let error = ClientError::Answer { url, reason: "the stream ended too early".to_owned() };
                self.connect_again(error).await?;
                continue;
            };
            match events.next().await {
                Ok(Some(event)) => self.take(event, &url)?,
                Ok(None) => self.events = None,
                Err(error @ ClientError::TooLarge { .. }) => return Err(error),
                Err(error) => self.connect_again(error).await?,
            }
        }
    }

    /// Reads the events to the end, and gives the output to a function.
    pub async fn finish<E: From<ClientError>>(
        mut self,
        mut output: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<ExecEnd, E> {
        loop {
            match self.next().await? {
                Some(ExecEvent::Output { bytes, .. }) => output(&bytes)?,
                Some(ExecEvent::Ended(end)) => return Ok(end),
                Some(ExecEvent::Gap { from, to }) => {
                    tracing::warn!(from, to, "a part of the output is no longer kept by the server");
                }
                Some(ExecEvent::Waiting(_) | ExecEvent::WaitingForSecret) => {}
                None => {
                    let url = format!("{}{PATH}", self.session.base());
                    return Err(ClientError::Answer { url, reason: "there is no end".to_owned() }.into());
                }
            }
        }
    }

    fn take(&mut self, event: Event, url: &str) -> Result<(), ClientError> {
        match event.name.as_str() {
            "output" => {
                let output: Output = event.json(url)?;
                let bytes = match (output.text, output.base64) {
                    (Some(text), _) => text.into_bytes(),
                    (None, encoded) => base64::engine::general_purpose::STANDARD
                        .decode(encoded.unwrap_or_default())
                        .map_err(|error| ClientError::Answer { url: url.to_owned(), reason: error.to_string() })?,
                };
                self.ready.push_back(ExecEvent::Output { offset: output.offset, bytes });
            }
            "gap" => {
                let Gap { from, to } = event.json(url)?;
                self.ready.push_back(ExecEvent::Gap { from, to });
            }
            "waiting" => {
                let Waiting { waiting_for_input, hides_input } = event.json(url)?;
                let secret = waiting_for_input && hides_input;
                self.ready.push_back(if secret {
                    ExecEvent::WaitingForSecret
                } else {
                    ExecEvent::Waiting(waiting_for_input)
                });
            }
            "exit" => {
                self.ended = true;
                self.ready.push_back(ExecEvent::Ended(event.json(url)?));
            }
            _ => {}
        }
        // A stream that only begins again and again makes no progress.
        if event.id.is_some() && event.id != self.last_id {
            self.last_id = event.id;
            self.attempts = 0;
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        self.events = None;
        let limit = self.session.limits.stream;
        let output;
        let mut call = match &self.asked {
            Asked::Start(request) => Call::post(PATH, request, Some(limit))?,
            Asked::Known(offset) => {
                output = format!("{PATH}/{}/output", segment(&self.id));
                let mut call = Call::get(&output, limit);
                call.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
                call.query.push(("offset", offset.to_string()));
                call
            }
        };
        if let Some(value) = self.last_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            call.headers.insert("last-event-id", value);
        }
        let response = self.session.send(&call).await?;
        self.events = Some(Events::new(response, limit));
        Ok(())
    }

    /// Connects again after a failure; what the server refuses stays refused.
    async fn connect_again(&mut self, mut last: ClientError) -> Result<(), ClientError> {
        loop {
            if matches!(last, ClientError::Status(_) | ClientError::Request { .. } | ClientError::Header { .. }) {
                return Err(last);
            }
            self.attempts += 1;
            if self.attempts > RECONNECTIONS || self.session.shutdown.is_cancelled() {
                return Err(ClientError::Lost { url: self.session.base().to_string(), last: Box::new(last) });
            }
            self.session.pause.pause(RECONNECTION_PAUSE * self.attempts).await;
            match self.connect().await {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
    }
}

/// An id as one segment of a path.
pub(crate) fn segment(id: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

pub(crate) fn random_id(url: &str) -> Result<String, ClientError> {
    gloveport_ids::random::<16>().map_err(|error| ClientError::Request {
        url: url.to_owned(),
        reason: format!("cannot make a random id: {error}"),
    })
}
