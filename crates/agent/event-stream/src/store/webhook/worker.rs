//! The task that tells the service. It exists while there is something to tell.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::{Change, Delivery, Pause, pending::Pending, sender::Sender};

/// A batch is sent this long after its last change, or when it has this many bytes (event-stream 5.2).
const BATCH_TIME: Duration = Duration::from_secs(5);
const BATCH_BYTES: usize = 1 << 20;

/// Takes changes, and owns the task that sends them.
pub(super) struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    delivery: Delivery,
    sender: Sender,
    pause: Arc<dyn Pause>,
    /// Something is to be looked at before the time of the batch is over.
    changed: Notify,
    /// All changes with a smaller number are sent or dropped.
    done: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    pending: Pending,
    /// The batch is to be sent without waiting longer.
    due: bool,
    task: Option<JoinHandle<()>>,
}

impl Outbox {
    pub(super) fn new(sender: Sender, delivery: Delivery, pause: Arc<dyn Pause>) -> Self {
        let (done, _) = watch::channel(0);
        let shared = Shared { state: Mutex::default(), delivery, sender, pause, changed: Notify::new(), done };
        Self { shared: Arc::new(shared) }
    }

    /// Has the service told of a change.
    pub(super) fn put(&self, change: Change) {
        let mut state = self.shared.state();
        let dropped = state.pending.put(change, self.shared.delivery);
        if dropped > 0 {
            tracing::warn!(dropped, "the web hook of the file store is too slow: it is not told of the oldest changes");
        }
        self.run(&mut state);
    }

    /// Waits until the service is told of all changes so far, or they are dropped.
    pub(super) async fn flush(&self) {
        let all = {
            let mut state = self.shared.state();
            if !state.pending.is_empty() {
                state.due = true;
                self.run(&mut state);
            }
            state.pending.next()
        };
        // Fails only without a sender, which is here.
        let mut done = self.shared.done.subscribe();
        let _all_done = done.wait_for(|done| *done >= all).await;
    }

    /// Has the task look at the changes, and starts it if there is none.
    fn run(&self, state: &mut State) {
        if state.task.as_ref().is_some_and(|task| !task.is_finished()) {
            self.shared.changed.notify_one();
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => state.task = Some(runtime.spawn(run(Arc::clone(&self.shared)))),
            Err(error) => {
                let dropped = state.pending.take().len();
                self.shared.done.send_replace(state.pending.next());
                tracing::warn!(dropped, %error, "the web hook of the file store is not told of changes");
            }
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(task) = state.task.take() {
            task.abort();
        }
        let waiting = state.pending.len();
        if waiting > 0 {
            tracing::warn!(waiting, "the web hook of the file store is not told of changes that no flush waited for");
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next change; without one the task is over.
    fn next(&self) -> Option<(u64, Change)> {
        let mut state = self.state();
        let next = state.pending.pop();
        if next.is_none() {
            state.task = None;
        }
        next
    }

    /// The next batch, and the number after its last change; without one the task is over.
    async fn next_batch(&self) -> Option<(u64, Vec<Change>)> {
        while !self.is_due()? {
            tokio::select! {
                () = self.pause.pause(BATCH_TIME) => break,
                // A change: the time begins anew.
                () = self.changed.notified() => {}
            }
        }
        let mut state = self.state();
        state.due = false;
        Some((state.pending.next(), state.pending.take()))
    }

    /// Whether the batch is to be sent at once.
    fn is_due(&self) -> Option<bool> {
        let mut state = self.state();
        if state.pending.is_empty() {
            state.task = None;
            return None;
        }
        Some(state.due || state.pending.size() >= BATCH_BYTES)
    }
}

async fn run(shared: Arc<Shared>) {
    match shared.delivery {
        Delivery::Each => {
            while let Some((number, change)) = shared.next() {
                shared.sender.change(change).await;
                shared.done.send_replace(number + 1);
            }
        }
        Delivery::Batched => {
            while let Some((end, changes)) = shared.next_batch().await {
                shared.sender.batch(changes).await;
                shared.done.send_replace(end);
            }
        }
    }
}
