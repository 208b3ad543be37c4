//! The tasks that read and write the pipes of a browser.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe::{Receiver, Sender},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    CdpError, Command, Connection, Listener, SessionId,
    message::{Answer, Incoming},
};

/// Longest message of Chromium: a snapshot of a large page has tens of megabytes.
const LONGEST: usize = 512 * 1024 * 1024;
/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// Begins to talk over two pipes. The connection ends when the handles are dropped.
pub(crate) fn start(
    input: OwnedFd,
    output: OwnedFd,
    listener: impl Listener,
) -> io::Result<(Connection, [AbortOnDropHandle<()>; 2])> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let unwritten = Arc::new(AtomicUsize::new(0));
    let connection = Connection::new(sender, Arc::clone(&unwritten));
    let input = Sender::from_owned_fd(input)?;
    let output = Receiver::from_owned_fd(output)?;
    let writer = tokio::spawn(write(input, receiver, unwritten));
    let reader = tokio::spawn(read(output, connection.clone(), listener));
    Ok((connection, [AbortOnDropHandle::new(reader), AbortOnDropHandle::new(writer)]))
}

async fn write(mut pipe: Sender, mut messages: mpsc::UnboundedReceiver<Vec<u8>>, unwritten: Arc<AtomicUsize>) {
    while let Some(message) = messages.recv().await {
        if pipe.write_all(&message).await.is_err() {
            return;
        }
        unwritten.fetch_sub(message.len(), Ordering::Relaxed);
    }
}

/// Ends the connection also when the task is aborted.
struct Close<L: Listener>(Connection, Arc<Mutex<L>>);

impl<L: Listener> Drop for Close<L> {
    fn drop(&mut self) {
        self.0.close();
        self.1.lock().unwrap_or_else(PoisonError::into_inner).closed();
    }
}

async fn read<L: Listener>(mut pipe: Receiver, connection: Connection, listener: L) {
    let listener = Arc::new(Mutex::new(listener));
    let _close = Close(connection.clone(), Arc::clone(&listener));
    let mut buffer: Vec<u8> = Vec::new();
    let mut searched = 0;
    let mut commands = Vec::new();
    loop {
        while let Some(end) = position(&buffer, searched) {
            if let Some(message) = buffer.get(..end).and_then(Incoming::read) {
                let mut listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
                take(message, &connection, &mut *listener, &mut commands);
            }
            for command in commands.drain(..) {
                connection.command(command);
            }
            buffer.drain(..=end);
            searched = 0;
        }
        searched = buffer.len();
        if searched > LONGEST {
            tracing::warn!("a message of the browser is longer than {LONGEST} bytes; the connection is ended");
            return;
        }
        buffer.reserve(PIECE);
        match pipe.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if buffer.is_empty() {
            buffer.shrink_to(PIECE);
        }
    }
}

fn position(buffer: &[u8], from: usize) -> Option<usize> {
    buffer.get(from..)?.iter().position(|byte| *byte == 0).map(|index| from + index)
}

fn take(message: Incoming, connection: &Connection, listener: &mut impl Listener, commands: &mut Vec<Command>) {
    match message {
        Incoming::Answer(answer) => answered(connection, answer, listener, commands),
        Incoming::Event { session, method, parameters } => {
            if let Some(session) = &session {
                let mut tunnels = connection.tunnels();
                if let Some(root) = tunnels.of(session) {
                    tunnels.event(&root, session, &method, &parameters);
                    return;
                }
            }
            let ended = match method.as_str() {
                "Target.detachedFromTarget" => {
                    let ended = parameters.get("sessionId").and_then(Value::as_str).map(SessionId::from);
                    ended.map(|session| (session, CdpError::Gone))
                }
                "Inspector.targetCrashed" => session.clone().map(|session| (session, CdpError::Crashed)),
                _ => None,
            };
            listener.event(session.as_ref(), &method, parameters, commands);
            for answered in ended.map(|(session, why)| connection.session_ended(&session, &why)).unwrap_or_default() {
                listener.answered(answered, commands);
            }
        }
    }
}

fn answered(connection: &Connection, answer: Answer, listener: &mut impl Listener, commands: &mut Vec<Command>) {
    if let Some(answered) = connection.answer(answer) {
        listener.answered(answered, commands);
    }
}
