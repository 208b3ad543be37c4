//! The events that a subscriber has still to be told of.

use std::{collections::VecDeque, sync::Arc};

use gloveport_protocol::Event;

/// What a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub(crate) events: usize,
    /// Bytes of JSON text.
    pub(crate) bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { events: 1_024, bytes: 16 << 20 }
    }
}

/// The events themselves up to a limit; the numbers of the rest, which are read back from the store.
#[derive(Debug)]
pub(crate) struct Queue {
    limits: QueueLimits,
    held: VecDeque<(i64, Arc<Event>, usize)>,
    bytes: usize,
    /// The first and the last number of those after the held ones.
    missed: Option<(i64, i64)>,
}

/// What a subscriber does next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Handle this event.
    Event(i64, Arc<Event>),
    /// Read the events from the first to the last of these numbers, and handle them.
    Missed(i64, i64),
}

impl Queue {
    pub(crate) const fn new(limits: QueueLimits) -> Self {
        Self { limits, held: VecDeque::new(), bytes: 0, missed: None }
    }

    /// Takes an event, whose number is higher than all before.
    pub(crate) fn push(&mut self, id: i64, event: &Arc<Event>, size: usize) {
        if let Some((_, last)) = &mut self.missed {
            *last = id;
        } else if self.held.len() >= self.limits.events || self.bytes.saturating_add(size) > self.limits.bytes {
            self.missed = Some((id, id));
        } else {
            self.held.push_back((id, Arc::clone(event), size));
            self.bytes += size;
        }
    }

    /// What comes next.
    ///
    /// Missed events come after all held ones; those that are pushed after this gave them come after them.
    pub(crate) fn pop(&mut self) -> Option<Next> {
        if let Some((id, event, size)) = self.held.pop_front() {
            self.bytes -= size;
            return Some(Next::Event(id, event));
        }
        self.missed.take().map(|(first, last)| Next::Missed(first, last))
    }
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::Action;

    use super::*;

    #[test]
    fn what_is_too_much_is_only_a_range_of_numbers() {
        let event = Arc::new(Event::from(Action::Null));
        let mut queue = Queue::new(QueueLimits { events: 2, bytes: 100 });
        for id in 0..10 {
            queue.push(id, &event, 10);
        }
        assert_eq!(queue.pop(), Some(Next::Event(0, Arc::clone(&event))));
        queue.push(10, &event, 10);
        assert_eq!(queue.pop(), Some(Next::Event(1, Arc::clone(&event))));
        assert_eq!(queue.pop(), Some(Next::Missed(2, 10)));
        queue.push(11, &event, 101);
        queue.push(12, &event, 1);
        assert_eq!(queue.pop(), Some(Next::Missed(11, 12)));
        assert_eq!(queue.pop(), None);
        queue.push(13, &event, 60);
        queue.push(14, &event, 60);
        assert_eq!(queue.pop(), Some(Next::Event(13, Arc::clone(&event))));
        assert_eq!(queue.pop(), Some(Next::Missed(14, 14)));
    }
}
