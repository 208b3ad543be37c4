//! The sessions of a process: which it serves, takes up, and lets go.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gloveport_event_stream::{EventStream, HistoryError, StoreError};
use gloveport_protocol::Secret;
use gloveport_runtime::delete;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    SessionOptions,
    fault::Fault,
    ledger::Ledger,
    live::{InUse, LOST, Live, Rise, answer},
    owner::Owner,
    record::{Files, Hidden, Key, Record, State, Wanted},
};

/// How long a history is waited for that somebody else has open. Whoever is idle lets it go, and whoever puts one in order has
/// it for a moment.
const LOCKED: Duration = Duration::from_secs(2);
/// Pause between two attempts.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a start waits to be told that the tenant may have it.
const ADMISSION: Duration = Duration::from_secs(10);
/// So many answered events are not read again by whoever takes a session up.
const UNNOTED: i64 = 500;
/// The answer to actions of a session that is let go.
const ENDS: &str = "the gateway ended before this action had an answer: whether it was done is not known. Look before you do \
    it again.";
/// The answer to actions of a session that is deleted.
const DELETED: &str = "the session was deleted before this action had an answer";

/// Where a session is served, or will be. It is held while a session is taken up or let go.
type Slot = AsyncMutex<Option<Arc<Live>>>;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) files: Files,
    pub(crate) options: SessionOptions,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    pub(crate) followers: Mutex<HashMap<Key, usize>>,
    /// The server is about to end.
    pub(crate) stop: CancellationToken,
}

impl Sessions {
    /// None is served yet.
    pub(crate) fn new(options: SessionOptions) -> Result<Self, StoreError> {
        let files = Files::open(&options.directory)?;
        let (slots, followers, stop) = (Mutex::default(), Mutex::default(), CancellationToken::new());
        Ok(Self { files, options, slots, followers, stop })
    }

    /// Lets go all of them, and takes up no more.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let slots: Vec<Arc<Slot>> = self.slots().drain().map(|(_, slot)| slot).collect();
        join_all(slots.iter().map(|slot| async {
            if let Some(live) = slot.lock().await.take() {
                live.let_go(ENDS).await;
            }
        }))
        .await;
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, key: &Key) -> Result<Arc<Slot>, Fault> {
        let mut slots = self.slots();
        if self.stop.is_cancelled() {
            return Err(Fault::later("the gateway is about to end; ask again"));
        }
        if let Some(slot) = slots.get(key) {
            return Ok(Arc::clone(slot));
        }
        if slots.len() >= self.options.served {
            return Err(Fault::later(format!("the gateway serves {} sessions already", self.options.served)));
        }
        let slot = Arc::new(Slot::default());
        slots.insert(key.clone(), Arc::clone(&slot));
        Ok(slot)
    }

    /// A session that is served here at this moment; nothing is taken up for it.
    pub(crate) async fn served(&self, key: &Key) -> Option<InUse> {
        let slot = self.slots().get(key).map(Arc::clone)?;
        let live = slot.lock().await.clone().filter(|live| !live.is_spent())?;
        Some(live.in_use())
    }

    /// Tells the number of the latest event, if the session is served here. Who listens does not keep it from being let go.
    pub(crate) fn latest(&self, key: &Key) -> Option<watch::Receiver<i64>> {
        let slot = self.slots().get(key).map(Arc::clone)?;
        let slot = slot.try_lock().ok()?;
        slot.as_ref().filter(|live| !live.is_spent()).map(|live| live.tracker.latest())
    }

    /// The record of a session, as whoever serves it has written it.
    pub(crate) async fn record(&self, key: &Key) -> Result<Record, Fault> {
        self.files.record(key).await?.ok_or_else(Fault::missing)
    }

    /// A session that is not over, served here from now on.
    pub(crate) async fn take_up(&self, key: &Key, owner: &Owner) -> Result<InUse, Fault> {
        self.take_up_within(key, owner, LOCKED).await
    }

    /// The same; another server that serves it is asked to let it go for so long, if at all.
    pub(crate) async fn take_up_within(&self, key: &Key, owner: &Owner, limit: Duration) -> Result<InUse, Fault> {
        // Nothing is made for ids that nobody has.
        not_over(&self.record(key).await?)?;
        let slot = self.slot(key)?;
        let mut slot = slot.lock().await;
        if let Some(spent) = slot.take_if(|live| live.is_spent() && !live.is_used()) {
            spent.let_go(ENDS).await;
        }
        if let Some(fault) = slot.as_ref().and_then(|live| live.over()) {
            return Err(fault);
        }
        if let Some(live) = &*slot {
            return Ok(Arc::clone(live).in_use());
        }
        let stream = self.open_within(key, limit).await?;
        let taken = async {
            let record = self.record(key).await?;
            not_over(&record)?;
            let is_starting = record.state == State::Starting;
            let live = Live::take_up(self.files.clone(), key.clone(), owner.clone(), stream.clone(), record).await?;
            if is_starting {
                live.rise();
            }
            Ok::<_, Fault>(live)
        };
        let live = self.or_closed(taken.await, key, &stream).await?;
        *slot = Some(Arc::clone(&live));
        Ok(live.in_use())
    }

    async fn or_closed<T>(&self, done: Result<T, Fault>, key: &Key, stream: &EventStream) -> Result<T, Fault> {
        if done.is_err() {
            let _tried = self.files.unmark(key).await;
            stream.close().await;
        }
        done
    }

    /// Opens a history, which nobody else may have open for long.
    async fn open(&self, key: &Key) -> Result<EventStream, Fault> {
        self.open_within(key, LOCKED).await
    }

    async fn open_within(&self, key: &Key, limit: Duration) -> Result<EventStream, Fault> {
        let began = Instant::now();
        let mut is_wanted = false;
        let opened = loop {
            match self.files.stream(key).await {
                Err(HistoryError::Locked { .. }) if began.elapsed() < limit => {
                    if !is_wanted {
                        self.files.want(key).await?;
                        is_wanted = true;
                    }
                    sleep(AGAIN).await;
                }
                opened => break opened,
            }
        };
        // Should it not be let go in time, it is wanted still.
        if is_wanted && opened.is_ok() {
            self.files.unwant(key).await?;
        }
        Ok(opened?)
    }

    /// A new session. It is answered when it is clear that the tenant may have it.
    pub(crate) async fn start(&self, key: &Key, owner: &Owner, wanted: Wanted, hidden: Hidden) -> Result<InUse, Fault> {
        let exists = || {
            let detail =
                format!("there is a session `{}` already; delete it with its history, or choose another id", key.id);
            Fault::conflict(detail).called("session_exists")
        };
        if self.files.record(key).await?.is_some() {
            return Err(exists());
        }
        if self.files.of_tenant(&key.tenant).await?.len() >= self.options.per_tenant {
            let most = self.options.per_tenant;
            return Err(Fault::too_many(format!(
                "the tenant has {most} sessions, those that have ended among them; delete some with ?history=true"
            )));
        }
        let slot = self.slot(key)?;
        let mut slot = slot.lock().await;
        let since = Instant::now();
        let stream = loop {
            match self.open_within(key, Duration::ZERO).await {
                Ok(stream) => break stream,
                Err(_) if self.files.record(key).await?.is_some() => return Err(exists()),
                Err(fault) if since.elapsed() >= LOCKED => return Err(fault),
                Err(_) => sleep(AGAIN).await,
            }
        };
        let begun = async {
            // Somebody else may have been faster.
            if self.files.record(key).await?.is_some() {
                return Err(exists());
            }
            // Should the start come no further, it is found by its mark.
            self.files.mark(key).await?;
            self.files.hide(key, &hidden).await?;
            let record = Record::new(wanted);
            Live::take_up(self.files.clone(), key.clone(), owner.clone(), stream.clone(), record).await
        };
        let live = self.or_closed(begun.await, key, &stream).await?;
        *slot = Some(Arc::clone(&live));
        live.rise();
        let mut rise = live.rise.subscribe();
        let decided = rise.wait_for(|rise| !matches!(rise, Rise::Coming { admitted: false } | Rise::Down));
        let refused = match timeout(ADMISSION, decided).await {
            Ok(Ok(rise)) => match &*rise {
                Rise::Over(fault) if fault.is_refusal() => Some(fault.clone()),
                _ => None,
            },
            Ok(Err(_)) | Err(_) => None,
        };
        if let Some(fault) = refused {
            *slot = None;
            live.let_go(DELETED).await;
            self.files.remove(key).await?;
            return Err(fault);
        }
        Ok(live.in_use())
    }

    /// Lets the sandbox of a session rest.
    pub(crate) async fn pause(&self, key: &Key, owner: &Owner) -> Result<(), Fault> {
        let record = self.record(key).await?;
        if record.state == State::Paused {
            return Ok(());
        }
        drop(self.take_up(key, owner).await?);
        let slot = self.slot(key)?;
        let mut slot = slot.lock().await;
        let Some(live) = &*slot else { return Err(Fault::later("the session is being let go; ask again")) };
        if live.is_rising() {
            return Err(Fault::conflict("the session is being started; pause it when it is ready"));
        }
        if !live.tracker.rests() {
            return Err(Fault::conflict("an action is being executed; pause the session when it is answered"));
        }
        let gone = || Fault::conflict("the sandbox of the session is gone");
        let sandbox = owner.provider.find_session(&key.id).await?.ok_or_else(gone)?;
        owner.provider.pause(&sandbox.id).await?;
        live.change(|record| record.state = State::Paused).await?;
        if let Some(live) = slot.take() {
            live.let_go(ENDS).await;
        }
        Ok(())
    }

    /// Ends a session, and removes its history, too, where that is wanted.
    pub(crate) async fn delete(&self, key: &Key, owner: &Owner, with_history: bool) -> Result<(), Fault> {
        let record = self.record(key).await?;
        let slot = self.slot(key)?;
        let mut slot = slot.lock().await;
        if let Some(live) = slot.take() {
            // Whoever is at it finds it closed.
            live.let_go(DELETED).await;
        }
        let stream = self.open(key).await?;
        let ended = async {
            delete(&owner.provider, &key.id).await?;
            let mut record = self.files.record(key).await?.unwrap_or(record);
            if !record.state.is_over() {
                stream.set_secrets(self.files.hidden(key).await?.masked());
                let (ledger, _) = Ledger::read(stream.store(), record.settled).await?;
                for id in ledger.open.into_keys() {
                    answer(&stream, id, DELETED).await?;
                }
                record.state = State::Ended;
                record.settled = stream.store().next_id().await?;
                self.files.save(key, &mut record).await?;
            }
            self.files.forget_hidden(key).await?;
            Ok::<_, Fault>(())
        };
        let ended = ended.await;
        let unmarked = self.files.unmark(key).await;
        stream.close().await;
        ended?;
        unmarked?;
        if with_history {
            self.files.remove(key).await?;
        }
        Ok(())
    }

    /// Adds variables or secrets: to the tools, to what is masked, and to what is kept.
    pub(crate) async fn add_variables(
        live: &Live,
        change: impl FnOnce(&mut Hidden),
        variables: &BTreeMap<String, Secret>,
    ) -> Result<(), Fault> {
        let mut hidden = live.hidden.lock().await;
        let mut changed = hidden.clone();
        change(&mut changed);
        // Masked before any tool can show them.
        live.stream.update_secrets(changed.masked());
        live.files.hide(&live.key, &changed).await?;
        *hidden = changed;
        drop(hidden);
        match live.runtime.add_env_vars(variables).await {
            Ok(()) => Ok(()),
            Err(error) => Err(live.fault(error).await),
        }
    }

    /// Lets go what nobody uses.
    pub(crate) async fn let_go_idle(&self) {
        let slots: Vec<(Key, Arc<Slot>)> = self.slots().iter().map(|(key, it)| (key.clone(), Arc::clone(it))).collect();
        for (key, slot) in slots {
            // Whoever holds it uses it.
            let Ok(mut held) = slot.try_lock() else { continue };
            let is_unused =
                |live: &mut Arc<Live>| live.is_idle(self.options.idle) || (live.is_spent() && !live.is_used());
            if let Some(live) = held.take_if(is_unused) {
                tracing::debug!(session = %key.id, tenant = key.tenant, "a session is let go");
                live.let_go(ENDS).await;
            } else if let Some(live) = &*held {
                live.note_settled(UNNOTED).await;
            }
            if held.is_none() {
                drop(held);
                let mut slots = self.slots();
                // Two are ours: that of the map, and the one here. A third is somebody who waits for it.
                if Arc::strong_count(&slot) == 2 {
                    slots.remove(&key);
                }
            }
        }
    }

    /// Answers what servers have left unanswered that have died.
    pub(crate) async fn put_in_order(&self) {
        let marked = match self.files.marked().await {
            Ok(marked) => marked,
            Err(error) => {
                tracing::warn!(%error, "what other servers have left cannot be seen");
                return;
            }
        };
        for key in marked {
            if self.slots().contains_key(&key) {
                continue;
            }
            if let Err(fault) = self.put_one_in_order(&key).await {
                tracing::warn!(session = %key.id, tenant = key.tenant, error = fault.detail, "it is left as it is for now");
            }
        }
    }

    /// Lets a session go that another server wants, if nobody uses it here.
    pub(crate) async fn hand_over(&self, key: &Key) {
        let Some(slot) = self.slots().get(key).map(Arc::clone) else { return };
        let Ok(mut held) = slot.try_lock() else { return };
        let Some(live) = held.take_if(|live| live.is_idle(Duration::ZERO)) else { return };
        tracing::debug!(session = %key.id, tenant = key.tenant, "a session is handed over");
        if let Err(error) = self.files.unwant(key).await {
            tracing::warn!(session = %key.id, %error, "a session will be let go once more than is wanted");
        }
        live.let_go(ENDS).await;
    }

    async fn put_one_in_order(&self, key: &Key) -> Result<(), Fault> {
        let stream = match self.files.stream(key).await {
            Ok(stream) => stream,
            // It is served, here or elsewhere.
            Err(HistoryError::Locked { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let done = async {
            let Some(mut record) = self.files.record(key).await? else {
                // Its start came no further.
                return Ok(self.files.remove(key).await?);
            };
            stream.set_secrets(self.files.hidden(key).await?.masked());
            let (mut ledger, _) = Ledger::read(stream.store(), record.settled).await?;
            let open = std::mem::take(&mut ledger.open);
            if !open.is_empty() {
                tracing::info!(session = %key.id, tenant = key.tenant, actions = open.len(), "answers what was left");
            }
            for id in open.into_keys() {
                answer(&stream, id, LOST).await?;
            }
            record.settled = ledger.settled(stream.store().next_id().await?);
            self.files.save(key, &mut record).await?;
            Ok::<_, Fault>(())
        };
        let done = done.await;
        // As long as it is open, nobody else marks it; and one that is not in order keeps its mark.
        let unmarked = if done.is_ok() { self.files.unmark(key).await } else { Ok(()) };
        stream.close().await;
        done?;
        Ok(unmarked?)
    }
}

fn not_over(record: &Record) -> Result<(), Fault> {
    match record.state {
        State::Starting | State::Ready | State::Paused => Ok(()),
        State::Ended => Err(Fault::conflict("the session has ended; its history is there to be read")),
        State::Failed => {
            let reason = record.reason.as_deref().unwrap_or("its sandbox is gone");
            Err(Fault::conflict(format!("the session has failed: {reason}")))
        }
    }
}
