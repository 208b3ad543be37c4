//! The events of a history one after the other (event-stream 3).

use gloveport_protocol::Event;

use super::{
    EventFilter, EventStore,
    page::{PAGE_SIZE, Page},
};
use crate::error::HistoryError;

/// Which events are wanted, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Number of the first event.
    pub start: i64,
    /// Number of the last event; `None` for the last there is when the search begins.
    pub end: Option<i64>,
    /// From the last to the first.
    pub reverse: bool,
    /// What an event must be like.
    pub filter: EventFilter,
    /// How many events at most; `None` and 0 for all.
    pub limit: Option<usize>,
}

/// The events that a search finds, read when they are asked for.
///
/// Never more than one page of events is held, however long the history is.
#[derive(Debug)]
pub struct Events(StoredEvents);

impl Events {
    pub(crate) const fn stored(events: StoredEvents) -> Self {
        Self(events)
    }

    /// The next event; nothing after the last.
    ///
    /// A number without an event is passed over, and so is, with a warning that names the file, an event that cannot
    /// be understood: one bad file does not hide a conversation. [`EventStore::event`] tells what is wrong with it.
    /// A store that fails is an error, and the next call tries the same event again.
    pub async fn next(&mut self) -> Result<Option<Event>, HistoryError> {
        self.0.next().await
    }

    /// The next events, at most `bound` of them.
    pub async fn collect(&mut self, bound: usize) -> Result<Vec<Event>, HistoryError> {
        let mut found = Vec::new();
        while found.len() < bound {
            let Some(event) = self.next().await? else { break };
            found.push(event);
        }
        Ok(found)
    }
}

/// How many events a search still gives.
#[derive(Debug)]
pub(crate) struct Remaining(Option<usize>);

impl Remaining {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self(limit.filter(|limit| *limit > 0))
    }

    pub(crate) fn is_none_left(&self) -> bool {
        self.0 == Some(0)
    }

    pub(crate) fn count_one(&mut self) {
        if let Some(left) = &mut self.0 {
            *left = left.saturating_sub(1);
        }
    }
}

/// The events that a search finds in a store.
#[derive(Debug)]
pub(crate) struct StoredEvents {
    store: EventStore,
    start: i64,
    end: Option<i64>,
    reverse: bool,
    filter: EventFilter,
    remaining: Remaining,
    /// What is left to be looked at, both ends included; known after the first event was asked for.
    range: Option<(i64, i64)>,
    page: Option<Page>,
}

impl StoredEvents {
    pub(crate) fn new(store: EventStore, search: Search) -> Self {
        let Search { start, end, reverse, filter, limit } = search;
        let remaining = Remaining::new(limit);
        Self { store, start: start.max(0), end, reverse, filter, remaining, range: None, page: None }
    }

    async fn next(&mut self) -> Result<Option<Event>, HistoryError> {
        if self.remaining.is_none_left() {
            return Ok(None);
        }
        let (mut first, mut last) = match self.range {
            Some(range) => range,
            None => self.bounds().await?,
        };
        self.range = Some((first, last));
        while first <= last {
            let id = if self.reverse { last } else { first };
            let event = self.load(id).await?;
            if self.reverse {
                last -= 1;
            } else {
                first += 1;
            }
            self.range = Some((first, last));
            if let Some(event) = event.filter(|event| self.filter.includes(event)) {
                self.remaining.count_one();
                return Ok(Some(event));
            }
        }
        self.page = None;
        Ok(None)
    }

    /// The first and the last number. A far end is brought to the last event, so that nobody waits for millions of
    /// files that are not there.
    async fn bounds(&self) -> Result<(i64, i64), HistoryError> {
        let last = match self.end {
            Some(end) if end.saturating_sub(self.start) < 4 * PAGE_SIZE => end,
            Some(end) => end.min(self.store.latest_id().await?),
            None => self.store.latest_id().await?,
        };
        Ok((self.start, last))
    }

    async fn load(&mut self, id: i64) -> Result<Option<Event>, HistoryError> {
        let page = match self.page.take().filter(|page| page.covers(id)) {
            Some(page) => page,
            None => Page::load(self.store.files(), self.store.paths(), id).await?,
        };
        let event = self.page.insert(page).take(id);
        if let Some(event) = event {
            match Event::from_value(event) {
                Ok(event) => return Ok(Some(event)),
                Err(error) => tracing::warn!(id, %error, "an event of a page cannot be read"),
            }
        }
        match self.store.event(id).await {
            Ok(event) => Ok(Some(event)),
            Err(HistoryError::NoEvent { .. }) => Ok(None),
            Err(error @ HistoryError::Corrupt { .. }) => {
                tracing::warn!("{error}; it is left out");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
