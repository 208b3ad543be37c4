//! How the messages of a server are read and written: one line each (the transport `stdio` of the protocol).
//!
//! Results are not interpreted: what the SDK does not know of them passes, too. Notifications go past the SDK, which starts
//! a task for each: what is not taken in time is left out instead ([`Back`]).

use std::{
    borrow::Cow,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::{Buf as _, BytesMut};
use gloveport_plugin::ProgramLog;
use rmcp::{
    ErrorData, RoleClient,
    model::{
        ClientJsonRpcMessage, CustomResult, ErrorCode, GetExtensions as _, GetMeta as _, JsonRpcError, JsonRpcMessage,
        RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
    },
    transport::Transport,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe::{Receiver, Sender},
    sync::Mutex,
};

use crate::back::{Back, ProgressTo};

/// Longest message of a server, in bytes. A server that sends a longer one is ended.
pub(crate) const MOST_MESSAGE: usize = 64 * 1024 * 1024;
/// Questions of a server whose answers it has not read. One that asks more is ended.
const MOST_QUESTIONS: usize = 256;
/// Bytes that are kept of a buffer for the next message.
const KEPT: usize = 64 * 1024;

/// The messages of one server.
pub(crate) struct Lines {
    reader: Receiver,
    writer: Arc<Mutex<Option<Sender>>>,
    buffer: BytesMut,
    /// Bytes at the beginning of the buffer that have no end of a line.
    searched: usize,
    /// Whether the answer to `initialize` has come, the one that the SDK reads itself.
    is_greeted: bool,
    /// Questions of the server whose answers are not written yet.
    questions: Arc<AtomicUsize>,
    back: Arc<Back>,
    log: Arc<ProgramLog>,
}

/// What a message is, without a look at what it holds.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Lines {
    /// The messages that come from `reader` and go to `writer`.
    pub(crate) fn new(reader: Receiver, writer: Sender, back: Arc<Back>, log: Arc<ProgramLog>) -> Self {
        let writer = Arc::new(Mutex::new(Some(writer)));
        Self {
            reader,
            writer,
            buffer: BytesMut::new(),
            searched: 0,
            is_greeted: false,
            questions: Arc::default(),
            back,
            log,
        }
    }

    /// The next line, without its end; `None` when there is no more. Nothing is lost if it is given up.
    async fn line(&mut self) -> io::Result<Option<BytesMut>> {
        loop {
            let new = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(length) = new.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + length);
                self.buffer.advance(1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > MOST_MESSAGE {
                let text = format!("it sent a message of more than {} MiB", MOST_MESSAGE >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(KEPT.min(self.searched.max(8192)));
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// What a line says to the SDK, if anything.
    fn message(&mut self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else {
            if !line.trim_ascii().is_empty() {
                self.log.add(b"(on its standard output) ");
                self.log.add(line.get(..line.len().min(1000)).unwrap_or_default());
                self.log.add(b"\n");
            }
            return None;
        };
        match (head.method, head.id) {
            (Some(_), Some(id)) => {
                let question = parsed::<ServerRequest>(line)?;
                self.questions.fetch_add(1, Ordering::Relaxed);
                Some(JsonRpcMessage::request(question, id))
            }
            (Some(_), None) => match parsed::<ServerNotification>(line)? {
                cancelled @ ServerNotification::CancelledNotification(_) => {
                    Some(JsonRpcMessage::notification(cancelled))
                }
                other => {
                    self.back.told(other);
                    None
                }
            },
            (None, Some(id)) => {
                self.back.answered(&id);
                match (head.result, head.error) {
                    (Some(result), _) => {
                        let is_greeting = !std::mem::replace(&mut self.is_greeted, true);
                        let read = if is_greeting {
                            serde_json::from_str(result.get()).map(ServerResult::InitializeResult)
                        } else {
                            serde_json::from_str(result.get())
                                .map(|result| ServerResult::CustomResult(CustomResult(result)))
                        };
                        Some(match read {
                            Ok(result) => JsonRpcMessage::response(result, id),
                            Err(error) => unreadable(id, &error),
                        })
                    }
                    (None, Some(error)) => Some(match serde_json::from_str::<ErrorData>(error.get()) {
                        Ok(error) => JsonRpcMessage::Error(JsonRpcError::new(Some(id), error)),
                        Err(error) => unreadable(id, &error),
                    }),
                    (None, None) => None,
                }
            }
            (None, None) => None,
        }
    }
}

/// A message of one kind. All kinds at once would be tried one after the other.
fn parsed<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line)
        .inspect_err(|error| tracing::debug!(%error, "a message of an MCP server is left out"))
        .ok()
}

/// An answer that is JSON but cannot be read, as one that is nested too deeply.
fn unreadable(id: RequestId, error: &serde_json::Error) -> ServerJsonRpcMessage {
    let text = format!("the answer of the server cannot be read: {error}");
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(asked) = &mut message {
            let progress = asked.request.extensions().get::<ProgressTo>().cloned();
            let meta = asked.request.get_meta_mut();
            match (progress, meta.get_progress_token()) {
                (Some(progress), Some(token)) => self.back.expect_progress(asked.id.clone(), token, progress),
                // The SDK asks for progress in any case; nobody wants it here.
                _ => drop(meta.0.0.remove("progressToken")),
            }
        }
        let writer = Arc::clone(&self.writer);
        let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let questions = is_answer.then(|| Arc::clone(&self.questions));
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(&line).await?;
            if let Some(questions) = questions {
                questions.fetch_sub(1, Ordering::Relaxed);
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.line().await {
                Ok(Some(line)) => {
                    if let Some(message) = self.message(&line) {
                        if self.questions.load(Ordering::Relaxed) > MOST_QUESTIONS {
                            let text = format!("it did not read the answers to {MOST_QUESTIONS} questions");
                            self.back.ended(Some(text));
                            return None;
                        }
                        return Some(message);
                    }
                }
                Ok(None) => {
                    self.back.ended(None);
                    return None;
                }
                Err(error) => {
                    self.back.ended(Some(error.to_string()));
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // The end of its input is how a server is asked to end.
        self.writer.lock().await.take();
        Ok(())
    }
}
