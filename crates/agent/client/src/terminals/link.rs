//! What keeps a terminal attached over any number of connections.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_protocol::terminals::{FromTerminal, TerminalSize, ToTerminal};
use tokio::sync::{Notify, mpsc, watch};

use super::{
    attached::{PIECE, Piece, TerminalEvent},
    connection::{self, Received, Receiver, Sender},
    typed::{Forgotten, Typed, WINDOW},
};
use crate::{ClientError, exec::random_id, session::Session};

/// The wait before the first new connection; each is longer by this.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What outlives a connection.
pub(super) struct Link {
    session: Arc<Session>,
    path: String,
    /// Our name, so that the server counts our input over all connections.
    client: String,
    /// Offset of the next byte of output, once it is known.
    cursor: Mutex<Option<u64>>,
    typed: Mutex<Typed>,
    /// The server told that input arrived.
    arrived: Notify,
    size: watch::Receiver<Option<TerminalSize>>,
    events: mpsc::Sender<Result<TerminalEvent, ClientError>>,
}

/// How a connection ended.
enum End {
    /// By the end of the program, or because nobody wants it any more.
    Done,
    /// By an error.
    Lost(ClientError),
}

/// Keeps a terminal connected until its program ended or nobody wants it any more.
pub(super) async fn drive(
    link: Link,
    mut input: mpsc::Receiver<Piece>,
    mut detached: mpsc::Receiver<()>,
    mut connection: (Sender, Receiver),
    attempts: u32,
) {
    let work = async {
        let mut attempt = 0;
        loop {
            let (mut sender, mut receiver) = connection;
            let (mut size, mut alive) = (link.size.clone(), false);
            let end = tokio::select! {
                end = link.receive(&mut receiver, &mut alive) => end,
                error = link.send(&mut sender, &mut input, &mut size) => End::Lost(error),
            };
            if alive {
                attempt = 0;
            }
            let mut last = match end {
                End::Done => {
                    sender.close().await;
                    return None;
                }
                End::Lost(error) => error,
            };
            drop((sender, receiver));
            connection = loop {
                attempt += 1;
                if is_final(&last) {
                    return Some(last);
                }
                if attempt > attempts || link.session.shutdown.is_cancelled() {
                    return Some(ClientError::Lost { url: link.session.base().to_string(), last: Box::new(last) });
                }
                link.tell(TerminalEvent::Reconnecting { reason: last.to_string(), attempt }).await;
                link.session.pause.pause((PAUSE * attempt).min(LONGEST_PAUSE)).await;
                match link.connect().await {
                    Ok((sender, receiver, _, input_in_doubt)) => {
                        link.tell(TerminalEvent::Reconnected { input_in_doubt }).await;
                        break (sender, receiver);
                    }
                    Err(error) => last = error,
                }
            };
        }
    };
    let failed = tokio::select! {
        failed = work => failed,
        // Nothing is ever sent: this is the end of the handle.
        _ = detached.recv() => None,
    };
    if let Some(error) = failed {
        let _nobody_listens = link.events.send(Err(error)).await;
    }
}

/// What the server refuses stays refused.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { .. } | ClientError::Request { .. } | ClientError::Header { .. } => true,
        // A gateway in between may say that the sandbox is not there for a moment.
        ClientError::Status(error) => !matches!(error.status.as_u16(), 429 | 502..=504),
        _ => false,
    }
}

impl Link {
    pub(super) fn new(
        session: Arc<Session>,
        path: String,
        offset: Option<u64>,
        size: watch::Receiver<Option<TerminalSize>>,
        events: mpsc::Sender<Result<TerminalEvent, ClientError>>,
    ) -> Result<Self, ClientError> {
        let client = random_id(session.base().as_str())?;
        let (cursor, typed, arrived) = (Mutex::new(offset), Mutex::default(), Notify::new());
        Ok(Self { session, path, client, cursor, typed, arrived, size, events })
    }

    /// Makes a connection, up to the first message. Answers also with the end of the output, and whether it is not known
    /// what became of the last input.
    pub(super) async fn connect(&self) -> Result<(Sender, Receiver, u64, bool), ClientError> {
        let mut query = vec![("client", self.client.clone())];
        if let Some(offset) = *lock(&self.cursor) {
            query.push(("offset", offset.to_string()));
        }
        let size = *self.size.borrow();
        if let Some(size) = size {
            query.extend([("columns", size.columns.to_string()), ("rows", size.rows.to_string())]);
        }
        let (mut sender, mut receiver) = connection::open(&self.session, &self.path, query).await?;
        let Received::Message(message @ FromTerminal::Start { offset, end, .. }) = receiver.next().await? else {
            return Err(self.session.bad_answer(&self.path, "the terminal does not begin with `start`"));
        };
        let (open, forgotten) = {
            let mut typed = lock(&self.typed);
            let noted = typed.note(&message);
            (typed.open().to_vec(), noted == Err(Forgotten))
        };
        lock(&self.cursor).get_or_insert(offset);
        if !open.is_empty() {
            sender.bytes(&open).await?;
        }
        Ok((sender, receiver, end, forgotten))
    }

    /// Hands over what comes.
    async fn receive(&self, receiver: &mut Receiver, alive: &mut bool) -> End {
        loop {
            // A place comes first: what is taken from the connection then counts as handed over.
            let Ok(place) = self.events.reserve().await else { return End::Done };
            let arrival = match receiver.next().await {
                Ok(arrival) => arrival,
                Err(error) => return End::Lost(error),
            };
            *alive = true;
            let event = match arrival {
                Received::Bytes(bytes) => {
                    let mut cursor = lock(&self.cursor);
                    let offset = cursor.unwrap_or_default();
                    *cursor = Some(offset + bytes.len() as u64);
                    TerminalEvent::Output { offset, bytes }
                }
                Received::Message(message) => {
                    // A server counts from what it told at the start, so there is no doubt here.
                    let _known = lock(&self.typed).note(&message);
                    match message {
                        FromTerminal::Gap { from, to } => {
                            *lock(&self.cursor) = Some(to);
                            TerminalEvent::Gap { from, to }
                        }
                        FromTerminal::Error { message } => TerminalEvent::Refused(message),
                        FromTerminal::Exit(exit) => {
                            place.send(Ok(TerminalEvent::Ended(exit)));
                            return End::Done;
                        }
                        FromTerminal::Start { .. } | FromTerminal::Input { .. } => {
                            self.arrived.notify_one();
                            continue;
                        }
                    }
                }
            };
            place.send(Ok(event));
        }
    }

    /// Sends what is typed and asked for, until that fails.
    async fn send(
        &self,
        sender: &mut Sender,
        input: &mut mpsc::Receiver<Piece>,
        size: &mut watch::Receiver<Option<TerminalSize>>,
    ) -> ClientError {
        let mut typing = true;
        loop {
            let has_room = lock(&self.typed).has_room();
            let sent = tokio::select! {
                piece = input.recv(), if has_room && typing => match piece {
                    Some(Piece::Bytes(bytes)) => {
                        lock(&self.typed).push(&bytes);
                        sender.bytes(&bytes).await
                    }
                    Some(Piece::Flush(left)) => {
                        // Who asked may have lost patience.
                        let _asked = left.send(());
                        Ok(())
                    }
                    Some(Piece::Signal(name)) => sender.message(&ToTerminal::Signal { name }).await,
                    None => {
                        typing = false;
                        Ok(())
                    }
                },
                () = self.arrived.notified(), if !has_room => Ok(()),
                Ok(()) = size.changed() => {
                    let now = *size.borrow_and_update();
                    match now {
                        Some(size) => sender.message(&ToTerminal::Resize(size)).await,
                        None => Ok(()),
                    }
                }
                // Nobody types or resizes any more; what comes is still of interest.
                else => std::future::pending().await,
            };
            if let Err(error) = sent {
                return error;
            }
        }
    }

    async fn tell(&self, event: TerminalEvent) {
        // Whoever does not listen has gone, which is seen elsewhere.
        let _listening = self.events.send(Ok(event)).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pieces fit into a message together with what may be sent again.
const _: () = assert!(WINDOW + PIECE <= 256 * 1024);
