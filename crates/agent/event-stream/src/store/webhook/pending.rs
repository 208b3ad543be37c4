//! The changes that the service has yet to be told of.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::Delivery;

/// Most bytes of contents that wait, and most changes.
const MOST_BYTES: usize = 64 << 20;
const MOST_CHANGES: usize = 10_000;

/// What was done with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: String,
    /// What was written; nothing if it was deleted.
    pub(super) content: Option<Bytes>,
}

impl Change {
    fn size(&self) -> usize {
        self.content.as_ref().map_or(0, Bytes::len)
    }
}

/// Changes in order, each with its number.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: BTreeMap<u64, Change>,
    /// The number of the change of each path, where only the last one counts.
    numbers: HashMap<String, u64>,
    /// The number of the next change.
    next: u64,
    size: usize,
}

impl Pending {
    /// Adds a change. Batched, it takes the place of an earlier one of its path, at that one's place in the order. Gives
    /// how many of the oldest had to be dropped.
    pub(super) fn put(&mut self, change: Change, delivery: Delivery) -> usize {
        let number = match (delivery, self.numbers.get(&change.path)) {
            (Delivery::Batched, Some(number)) => *number,
            (Delivery::Batched | Delivery::Each, _) => {
                let number = self.next;
                self.next += 1;
                if delivery == Delivery::Batched {
                    self.numbers.insert(change.path.clone(), number);
                }
                number
            }
        };
        self.size += change.size();
        if let Some(replaced) = self.changes.insert(number, change) {
            self.size -= replaced.size();
        }
        let mut dropped = 0;
        while self.changes.len() > 1 && (self.size > MOST_BYTES || self.changes.len() > MOST_CHANGES) {
            self.pop();
            dropped += 1;
        }
        dropped
    }

    /// Takes the oldest change, with its number.
    pub(super) fn pop(&mut self) -> Option<(u64, Change)> {
        let (number, change) = self.changes.pop_first()?;
        self.size -= change.size();
        self.numbers.remove(&change.path);
        Some((number, change))
    }

    /// Takes all changes, in order.
    pub(super) fn take(&mut self) -> Vec<Change> {
        self.numbers.clear();
        self.size = 0;
        std::mem::take(&mut self.changes).into_values().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many changes wait.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Bytes of the contents that wait.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// The number of the next change: all before have a smaller one.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, content: Option<&'static str>) -> Change {
        Change { path: path.to_owned(), content: content.map(Bytes::from) }
    }

    #[test]
    fn the_last_change_of_a_path_counts_at_the_place_of_the_first() {
        let mut pending = Pending::default();
        for (path, content) in [("a", Some("12345")), ("b", Some("1")), ("a", Some("12")), ("c", None), ("b", None)] {
            assert_eq!(pending.put(change(path, content), Delivery::Batched), 0);
        }
        assert_eq!((pending.size(), pending.len()), (2, 3));
        assert_eq!(pending.take(), [change("a", Some("12")), change("b", None), change("c", None)]);
        assert_eq!((pending.size(), pending.is_empty()), (0, true));
        pending.put(change("a", None), Delivery::Batched);
        assert_eq!(pending.pop(), Some((3, change("a", None))));
    }

    #[test]
    fn each_change_counts_if_it_is_sent_alone() {
        let mut pending = Pending::default();
        for content in [Some("1"), None, Some("2")] {
            pending.put(change("a", content), Delivery::Each);
        }
        let popped: Vec<_> = std::iter::from_fn(|| pending.pop()).collect();
        assert_eq!(popped, [(0, change("a", Some("1"))), (1, change("a", None)), (2, change("a", Some("2")))]);
    }

    #[test]
    fn the_oldest_are_dropped_at_the_bound() {
        let mut pending = Pending::default();
        let half = Bytes::from(vec![0; MOST_BYTES / 2]);
        let large = |path: &str| Change { path: path.to_owned(), content: Some(half.clone()) };
        assert_eq!(pending.put(large("a"), Delivery::Batched), 0);
        assert_eq!(pending.put(large("b"), Delivery::Batched), 0);
        assert_eq!(pending.put(change("c", Some("x")), Delivery::Batched), 1);
        assert_eq!(pending.take().iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        for number in 0..=MOST_CHANGES {
            let dropped = pending.put(change(&number.to_string(), None), Delivery::Each);
            assert_eq!(dropped, usize::from(number == MOST_CHANGES));
        }
        let huge = Change { path: "huge".to_owned(), content: Some(Bytes::from(vec![0; MOST_BYTES + 1])) };
        assert_eq!(pending.put(huge.clone(), Delivery::Each), MOST_CHANGES);
        assert_eq!(pending.take(), [huge]);
    }
}
