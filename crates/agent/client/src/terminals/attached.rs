//! A terminal as whoever is attached to it has it: events from it, and a handle to type into it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gloveport_protocol::terminals::{TerminalExit, TerminalSize};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    link::{Link, drive},
    path,
};
use crate::{ClientError, session::Session};

/// Events that wait to be taken; the server keeps the rest.
const EVENTS: usize = 16;
/// Pieces of input that wait, such as keys that are pressed while there is no connection.
const INPUTS: usize = 256;
/// Largest piece of input in one message.
pub(super) const PIECE: usize = 32 * 1024;
/// Time for what was typed last to leave, when the terminal is left.
const FAREWELL: Duration = Duration::from_secs(1);

/// How to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachOptions {
    /// Offset of the output to begin at; the oldest that is kept if there is none.
    pub offset: Option<u64>,
    /// Size to give to the terminal.
    pub size: Option<TerminalSize>,
    /// How often a lost connection is made again, without a sign of life between, before that is given up.
    pub attempts: u32,
}

impl Default for AttachOptions {
    fn default() -> Self {
        Self { offset: None, size: None, attempts: 10 }
    }
}

/// Something that happens to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    /// Programs wrote something, or what was typed was echoed.
    Output {
        /// Offset of the first byte.
        offset: u64,
        /// The bytes as they were written.
        bytes: Bytes,
    },
    /// Output was lost because it is no longer kept.
    Gap {
        /// Offset of the first byte that is lost.
        from: u64,
        /// Offset behind the last one.
        to: u64,
    },
    /// Something that was asked for was not done.
    Refused(String),
    /// The connection was lost, and is made again.
    Reconnecting {
        /// How it was lost, or why the last attempt failed.
        reason: String,
        /// Number of the attempt, from 1 on.
        attempt: u32,
    },
    /// The connection is there again.
    Reconnected {
        /// The last input may or may not have arrived; it is not typed again.
        input_in_doubt: bool,
    },
    /// The program ended. Nothing follows.
    Ended(TerminalExit),
}

/// An attached terminal. Dropping it detaches; the terminal lives on.
#[derive(Debug)]
pub struct AttachedTerminal {
    id: String,
    /// End of the output when the first connection was made.
    history_end: u64,
    events: mpsc::Receiver<Result<TerminalEvent, ClientError>>,
    input: TerminalInput,
    /// Ends the task that owns the connection.
    _detach: mpsc::Sender<()>,
}

/// Types into an attached terminal. Clones type into the same one.
#[derive(Debug, Clone)]
pub struct TerminalInput {
    pieces: mpsc::Sender<Piece>,
    size: Arc<watch::Sender<Option<TerminalSize>>>,
}

/// What is sent to a terminal.
#[derive(Debug)]
pub(super) enum Piece {
    Bytes(Bytes),
    Signal(String),
    /// Everything before this has left when this is answered.
    Flush(oneshot::Sender<()>),
}

impl AttachedTerminal {
    pub(super) async fn new(session: Arc<Session>, id: &str, options: AttachOptions) -> Result<Self, ClientError> {
        let (events_sender, events) = mpsc::channel(EVENTS);
        let (pieces, input) = mpsc::channel(INPUTS);
        let (detach, detached) = mpsc::channel(1);
        let (size_sender, size) = watch::channel(options.size);
        let link = Link::new(session, format!("{}/attach", path(id)), options.offset, size, events_sender)?;
        let (sender, receiver, history_end, _) = link.connect().await?;
        tokio::spawn(drive(link, input, detached, (sender, receiver), options.attempts));
        let input = TerminalInput { pieces, size: Arc::new(size_sender) };
        Ok(Self { id: id.to_owned(), history_end, events, input, _detach: detach })
    }

    /// The id of the terminal.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Offset behind the output that was there before this attached.
    pub const fn history_end(&self) -> u64 {
        self.history_end
    }

    /// A handle to type with.
    pub fn input(&self) -> TerminalInput {
        self.input.clone()
    }

    /// Detaches when what was typed has left, which is not waited for longer than a second.
    pub async fn detach(self) {
        let (sent, left) = oneshot::channel();
        let flush = async {
            if self.input.pieces.send(Piece::Flush(sent)).await.is_ok() {
                // An error means that the connection is not there, and then there is nothing to wait for.
                let _left = left.await;
            }
        };
        let _in_time = tokio::time::timeout(FAREWELL, flush).await;
    }

    /// The next event; none after the end. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Option<TerminalEvent>, ClientError> {
        self.events.recv().await.transpose()
    }
}

impl TerminalInput {
    /// Types bytes, in this order. Waits while the programs of the terminal read nothing. False if nobody is attached
    /// any more.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> bool {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            if self.pieces.send(Piece::Bytes(piece)).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Sets the size of the terminal, now and after each new connection.
    pub fn resize(&self, size: TerminalSize) {
        self.size.send_replace(Some(size));
    }

    /// Sends a signal to the programs in the foreground, by its name without `SIG`. It is lost if the connection is at
    /// this moment.
    pub async fn signal(&self, name: &str) -> bool {
        self.pieces.send(Piece::Signal(name.to_owned())).await.is_ok()
    }
}
