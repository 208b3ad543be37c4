//! Which events somebody wants to see, in pages.

use uuid::Uuid;

use crate::event::{Key, Kind};

/// What somebody looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Events of this kind only.
    pub kind: Option<Kind>,
    /// Output of this command only.
    pub command: Option<Uuid>,
    /// Not older than this, in microseconds since 1970.
    pub from: Option<i64>,
    /// Older than this.
    pub before: Option<i64>,
    /// Output with a higher number only; commands pass.
    pub order_above: Option<i64>,
    /// The newest first.
    pub descending: bool,
    /// The first event of the page; one that is not there starts over.
    pub page: Option<Uuid>,
    /// Most events of a page.
    pub limit: usize,
}

impl Search {
    /// Whether an event is wanted.
    pub(crate) fn wants(&self, key: &Key, command: Option<Uuid>, order: u64) -> bool {
        let is_above = |least: i64| i64::try_from(order).unwrap_or(i64::MAX) > least;
        self.kind.is_none_or(|kind| kind == key.kind)
            && self.command.is_none_or(|wanted| command == Some(wanted))
            && self.from.is_none_or(|from| key.micros >= from)
            && self.before.is_none_or(|before| key.micros < before)
            && (command.is_none() || self.order_above.is_none_or(is_above))
    }
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Their keys, in order.
    pub keys: Vec<Key>,
    /// Bytes of their JSON.
    pub bytes: u64,
    /// The first event of the next page.
    pub next: Option<Uuid>,
}
