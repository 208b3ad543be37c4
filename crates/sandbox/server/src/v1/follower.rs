//! A reader that follows one command: it takes pieces from the log when they are wanted, so that a slow client costs no
//! memory.

use std::sync::Arc;

use gloveport_executor::Execution;
use gloveport_protocol::exec::ExecState;
use tokio::sync::watch;

/// Where a reader stands in the output of a command.
#[derive(Debug)]
pub(crate) struct Follower {
    execution: Arc<Execution>,
    state: watch::Receiver<ExecState>,
    /// Offset that was asked for, and then the offset of the next byte. It counts from the beginning of the command's
    /// output.
    cursor: Option<u64>,
    /// Where that is in the output of the session, once the command has begun.
    start: Option<u64>,
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowError {
    #[error("offset {asked} is behind the end of the output of exec `{id}`, which is {end}")]
    Ahead { id: String, asked: u64, end: u64 },
    #[error("the output of exec `{id}` cannot be read: {reason}")]
    Unreadable { id: String, reason: String },
}

/// What there is at the cursor.
#[derive(Debug)]
pub(crate) enum Found {
    /// The command waits for its turn.
    Nothing,
    /// Bytes at the cursor; none if more may come.
    Bytes(Vec<u8>),
    /// The bytes from the cursor to this offset are no longer kept.
    Gap(u64),
    /// There is nothing more, and nothing will come.
    End,
}

impl Follower {
    /// A reader that begins at `from`, or where the output of the command does. An offset behind the output is
    /// refused if that is known already.
    pub(crate) fn new(execution: Arc<Execution>, from: Option<u64>) -> Result<Self, FollowError> {
        let state = execution.watch();
        let follower = Self { execution, state, cursor: from, start: None };
        let length = match &*follower.state.borrow() {
            ExecState::Queued => None,
            ExecState::Running { start, .. } => Some(follower.execution.output().end().saturating_sub(*start)),
            ExecState::Ended(end) => Some(end.end.saturating_sub(end.start)),
        };
        if let (Some(asked), Some(end)) = (from, length)
            && asked > end
        {
            return Err(FollowError::Ahead { id: follower.execution.id().to_owned(), asked, end });
        }
        Ok(follower)
    }

    pub(crate) fn execution(&self) -> &Execution {
        &self.execution
    }

    /// How the command stands. Changes after this are told by [`Self::changed`].
    pub(crate) fn state(&mut self) -> ExecState {
        self.state.borrow_and_update().clone()
    }

    /// Offset of the next byte, once it is known where the output begins.
    pub(crate) fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// The bytes up to this offset are done with.
    pub(crate) fn advance(&mut self, to: u64) {
        self.cursor = Some(to);
    }

    /// Up to `most` bytes at the cursor, for a state that was just looked at.
    pub(crate) fn look(&mut self, state: &ExecState, most: usize) -> Result<Found, FollowError> {
        let (start, end) = match state {
            ExecState::Queued => return Ok(Found::Nothing),
            ExecState::Running { start, .. } => (*start, None),
            ExecState::Ended(end) => (end.start, Some(end.end)),
        };
        self.start = Some(start);
        let cursor = *self.cursor.get_or_insert(0);
        let at = start.saturating_add(cursor);
        if end.is_some_and(|end| at >= end) {
            return Ok(Found::End);
        }
        match self.execution.read(at, most) {
            Ok(piece) => Ok(Found::Bytes(piece.bytes)),
            Err(error) => {
                let oldest = self.execution.output().start();
                if at < oldest {
                    return Ok(Found::Gap(end.unwrap_or(oldest).min(oldest) - start));
                }
                Err(FollowError::Unreadable { id: self.execution.id().to_owned(), reason: error.to_string() })
            }
        }
    }

    /// Returns when there are bytes behind the cursor and the `seen` ones, or when the state changed.
    pub(crate) async fn changed(&mut self, seen: usize) {
        let Self { execution, state, cursor, start } = self;
        match start.zip(*cursor).map(|(start, cursor)| start.saturating_add(cursor)) {
            Some(at) => {
                tokio::select! {
                    _changed = state.changed() => {}
                    () = execution.grown_beyond(at.saturating_add(seen as u64)) => {}
                }
            }
            None => {
                // The sender is held by the command, and the command by us.
                let _changed = state.changed().await;
            }
        }
    }
}
