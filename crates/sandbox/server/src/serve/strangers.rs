//! Connections that have not shown yet that they may be here: how many there may be, and what they make the server hold.
//!
//! Whoever reaches the port can open connections and send heads that do not end. What all of them together take up is
//! bounded, and at the bound the oldest one goes: who may be here shows it with the first request, which comes at once,
//! so a client with a key gets in however many others wait.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tokio_util::sync::CancellationToken;

/// Bytes of unfinished heads that all strangers together may have sent.
const HELD: usize = 4 * 1024 * 1024;

/// All connections that have not shown that they may be here.
#[derive(Debug)]
pub(super) struct Strangers {
    most: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// By age: the oldest has the least number.
    waiting: BTreeMap<u64, Waiting>,
    /// Sum of `held`.
    held: usize,
}

#[derive(Debug)]
struct Waiting {
    leave: CancellationToken,
    /// Bytes since its last whole head.
    held: usize,
}

impl Strangers {
    /// At most this many.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), table: Mutex::default() })
    }

    /// A new connection. The oldest stranger leaves if there are too many.
    pub(super) fn enter(self: &Arc<Self>) -> Arc<Stranger> {
        let leave = CancellationToken::new();
        let mut table = self.table();
        let id = table.next;
        table.next += 1;
        table.waiting.insert(id, Waiting { leave: leave.clone(), held: 0 });
        if table.waiting.len() > self.most {
            table.send_off(|_| true);
        }
        drop(table);
        Arc::new(Stranger { id, leave, known: AtomicBool::new(false), all: Arc::clone(self) })
    }

    /// Makes room, for example when there are no more files to open. False if there is no stranger.
    pub(super) fn make_room(&self) -> bool {
        self.table().send_off(|_| true)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Sends the oldest one off of those that are meant.
    fn send_off(&mut self, meant: impl Fn(&Waiting) -> bool) -> bool {
        let oldest = self.waiting.iter().find(|(_, waiting)| meant(waiting)).map(|(id, _)| *id);
        let Some(waiting) = oldest.and_then(|id| self.remove(id)) else { return false };
        waiting.leave.cancel();
        true
    }

    fn remove(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        self.held -= waiting.held;
        Some(waiting)
    }
}

/// One connection. It is known from [`admit`](Self::admit) on, and then never sent off.
#[derive(Debug)]
pub(super) struct Stranger {
    id: u64,
    leave: CancellationToken,
    known: AtomicBool,
    all: Arc<Strangers>,
}

impl Stranger {
    /// Whether it has shown that it may be here.
    pub(super) fn is_known(&self) -> bool {
        self.known.load(Relaxed)
    }

    /// It has shown that it may be here.
    pub(super) fn admit(&self) {
        self.known.store(true, Relaxed);
        self.all.table().remove(self.id);
    }

    /// It has sent this many bytes more of something that is not whole yet.
    pub(super) fn hold(&self, bytes: usize) {
        let mut table = self.all.table();
        let Some(waiting) = table.waiting.get_mut(&self.id) else { return };
        waiting.held += bytes;
        table.held += bytes;
        while table.held > HELD && table.send_off(|waiting| waiting.held > 0) {}
    }

    /// What it has sent is a whole head; tells how long it was.
    pub(super) fn heard(&self) -> usize {
        let mut table = self.all.table();
        let held = table.waiting.get_mut(&self.id).map_or(0, |waiting| std::mem::take(&mut waiting.held));
        table.held -= held;
        held
    }

    /// Ends when it has to leave.
    pub(super) async fn sent_off(&self) {
        self.leave.cancelled().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.table().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(strangers: &[Arc<Stranger>]) -> Vec<usize> {
        let leaves = strangers.iter().enumerate().filter(|(_, stranger)| stranger.leave.is_cancelled());
        leaves.map(|(index, _)| index).collect()
    }

    #[test]
    fn the_oldest_stranger_leaves_when_there_are_too_many_and_who_is_known_stays() {
        let all = Strangers::new(3);
        let mut strangers: Vec<_> = (0..3).map(|_| all.enter()).collect();
        strangers[0].admit();
        strangers.push(all.enter());
        assert_eq!(gone(&strangers), [0; 0]);
        strangers.push(all.enter());
        assert_eq!(gone(&strangers), [1]);
        assert!(all.make_room());
        assert_eq!(gone(&strangers), [1, 2]);
        drop(strangers);
        assert!(!all.make_room());
        assert_eq!(all.table().held, 0);
    }

    #[test]
    fn the_oldest_unfinished_head_goes_when_all_of_them_are_too_much() {
        let all = Strangers::new(100);
        let strangers: Vec<_> = (0..4).map(|_| all.enter()).collect();
        for stranger in &strangers[1..] {
            stranger.hold(HELD / 3);
        }
        assert_eq!(gone(&strangers), [0; 0]);
        assert_eq!(strangers[2].heard(), HELD / 3);
        strangers[3].hold(HELD / 3);
        assert_eq!(gone(&strangers), [0; 0]);
        strangers[0].hold(HELD / 3);
        assert_eq!(gone(&strangers), [0]);
        // Who is known is not counted.
        strangers[3].admit();
        strangers[3].hold(HELD * 2);
        assert_eq!(gone(&strangers), [0]);
        assert_eq!(all.table().held, HELD / 3);
    }
}
