//! Clients of a terminal, and the numbering of what they type.
//!
//! A client counts the bytes that it types. When it comes again after a lost connection it is told how many of them the
//! terminal took, so nothing that was typed gets lost, and nothing is typed twice.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::NamedTerminal;
use crate::{error::TerminalsError, exec};

/// Clients that may be attached to one terminal.
pub(crate) const ATTACHED: usize = 64;
/// Clients whose input is remembered, attached ones included.
const REMEMBERED: usize = 2 * ATTACHED;
/// Time in which the connection that is replaced has to be given up.
const REPLACE_LIMIT: Duration = Duration::from_secs(5);

/// The clients of one terminal.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    count: Arc<AtomicUsize>,
    /// The one that came last is the last.
    lanes: Mutex<VecDeque<Arc<Lane>>>,
}

/// The input of one client over all its connections.
#[derive(Debug)]
struct Lane {
    client: String,
    taken: AtomicU64,
    /// One permit, held by the connection that may type.
    turn: Arc<Semaphore>,
    /// Asks that connection to give up.
    replace: Mutex<CancellationToken>,
}

impl Attachments {
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    fn lane(&self, client: &str) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lanes.iter().position(|lane| lane.client == client).and_then(|at| lanes.remove(at));
        let lane = known.unwrap_or_else(|| Arc::new(Lane::new(client)));
        lanes.push_back(Arc::clone(&lane));
        // There are fewer connections than places, so one without a connection is found.
        if lanes.len() > REMEMBERED
            && let Some(at) = lanes.iter().position(|lane| Arc::strong_count(lane) == 1)
        {
            lanes.remove(at);
        }
        lane
    }
}

impl Lane {
    fn new(client: &str) -> Self {
        Self {
            client: client.to_owned(),
            taken: AtomicU64::new(0),
            turn: Arc::new(Semaphore::new(1)),
            replace: Mutex::default(),
        }
    }

    /// Takes the turn from the connection that has it.
    async fn take(&self) -> Option<(CancellationToken, OwnedSemaphorePermit)> {
        let mine = CancellationToken::new();
        let before = std::mem::replace(&mut *self.replace.lock().unwrap_or_else(PoisonError::into_inner), mine.clone());
        before.cancel();
        let turn = tokio::time::timeout(REPLACE_LIMIT, Arc::clone(&self.turn).acquire_owned()).await.ok()?.ok()?;
        Some((mine, turn))
    }
}

/// A client that is attached; dropping it detaches the client.
#[derive(Debug)]
pub struct Attachment {
    named: Arc<NamedTerminal>,
    lane: Arc<Lane>,
    replaced: CancellationToken,
    _turn: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Attachment {
    pub(super) async fn new(named: Arc<NamedTerminal>, client: Option<&str>) -> Result<Self, TerminalsError> {
        let counted = Counted::new(&named.attachments)?;
        let lane = match client {
            Some(client) => {
                exec::check_id(client).map_err(|error| TerminalsError::Invalid(format!("client: {error}")))?;
                named.attachments.lane(client)
            }
            None => Arc::new(Lane::new("")),
        };
        let (replaced, turn) = lane.take().await.ok_or(TerminalsError::NotReplaced)?;
        Ok(Self { named, lane, replaced, _turn: turn, _counted: counted })
    }

    /// The terminal.
    pub fn named(&self) -> &NamedTerminal {
        &self.named
    }

    /// Bytes that this client typed and that the terminal took, over all its connections.
    pub fn taken(&self) -> u64 {
        self.lane.taken.load(Relaxed)
    }

    /// Returns when the same client comes over another connection; this one has to be dropped then.
    pub async fn replaced(&self) {
        self.replaced.cancelled().await;
    }

    /// Types bytes, and waits while programs read nothing. Dropping the future leaves the rest untyped and uncounted.
    pub async fn type_in(&self, bytes: &[u8]) -> Result<(), TerminalsError> {
        let count = |typed: usize| {
            self.lane.taken.fetch_add(typed as u64, Relaxed);
        };
        Ok(self.named.terminal.write(bytes, count).await?)
    }
}

#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(attachments: &Attachments) -> Result<Self, TerminalsError> {
        let counted = Self(Arc::clone(&attachments.count));
        if counted.0.fetch_add(1, Relaxed) >= ATTACHED {
            return Err(TerminalsError::TooManyAttached);
        }
        Ok(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
