//! Twenty-five events in one file, which is faster to read than twenty-five files (event-stream 2, 3).

use bytes::Bytes;
use serde_json::Value;

use crate::{
    error::HistoryError,
    layout::ConversationPaths,
    store::{FileStore, StoreError},
};

/// How many events a page has (event-stream 3).
pub(crate) const PAGE_SIZE: i64 = 25;

/// The number of the first event of the page that has this one.
pub(crate) const fn page_start(id: i64) -> i64 {
    id - id.rem_euclid(PAGE_SIZE)
}

/// A page as a reader has it. It may be absent: then every event is read from its own file.
#[derive(Debug, Default)]
pub(crate) struct Page {
    start: i64,
    events: Option<Vec<Value>>,
}

impl Page {
    /// Reads the page that has this event.
    pub(crate) async fn load(store: &dyn FileStore, paths: &ConversationPaths, id: i64) -> Result<Self, HistoryError> {
        let start = page_start(id);
        let path = paths.page(start, start + PAGE_SIZE);
        let events = match store.read(&path).await {
            Ok(content) => {
                let events = parse(&content, start);
                if events.is_none() {
                    tracing::warn!(path, "a page of events is not used: it does not hold the events of its name");
                }
                events
            }
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { start, events })
    }

    /// Whether it is the page that has this event.
    pub(crate) const fn covers(&self, id: i64) -> bool {
        self.start == page_start(id)
    }

    /// Takes an event out of the page. Nothing is left in its place.
    pub(crate) fn take(&mut self, id: i64) -> Option<Value> {
        let at = usize::try_from(id - self.start).ok()?;
        self.events.as_mut()?.get_mut(at).map(Value::take).filter(|event| !event.is_null())
    }
}

/// The events of a page, if it has all of them and in order. The reference counts a page with `null` as absent, and
/// fails on all others that are not as they should be.
fn parse(content: &[u8], start: i64) -> Option<Vec<Value>> {
    let events: Vec<Value> = serde_json::from_slice(content).ok()?;
    let in_order = events.iter().zip(start..).all(|(event, id)| event.get("id").and_then(Value::as_i64) == Some(id));
    (in_order && i64::try_from(events.len()) == Ok(PAGE_SIZE)).then_some(events)
}

/// The page that is being filled.
///
/// Only whole pages with a start that readers look for are written; one that was begun before the stream was opened is
/// completed. The reference writes pages that nobody finds after a restart (event-stream 4.1).
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    start: i64,
    texts: Vec<Bytes>,
}

/// A page that is ready to be written.
#[derive(Debug)]
pub(crate) struct FullPage {
    pub(crate) start: i64,
    pub(crate) content: Bytes,
}

impl PageBuilder {
    /// Takes the text of the next event, and gives the page that it completes.
    pub(crate) fn push(&mut self, id: i64, text: &Bytes) -> Option<FullPage> {
        let expected = self.start + i64::try_from(self.texts.len()).unwrap_or(i64::MAX);
        if id != expected || self.texts.is_empty() {
            self.texts.clear();
            self.start = id;
            if id != page_start(id) {
                return None;
            }
        }
        self.texts.push(text.clone());
        if i64::try_from(self.texts.len()) != Ok(PAGE_SIZE) {
            return None;
        }
        let content = format_page(&std::mem::take(&mut self.texts));
        Some(FullPage { start: self.start, content })
    }
}

fn format_page(texts: &[Bytes]) -> Bytes {
    let mut content = Vec::with_capacity(texts.iter().map(|text| text.len() + 2).sum::<usize>() + 2);
    content.push(b'[');
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            content.extend_from_slice(b", ");
        }
        content.extend_from_slice(text);
    }
    content.push(b']');
    content.into()
}

/// Whether a text is the event with this number.
pub(crate) fn is_event(text: &[u8], id: i64) -> bool {
    serde_json::from_slice::<Value>(text)
        .is_ok_and(|event| event.is_object() && event.get("id").and_then(Value::as_i64) == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: i64) -> Bytes {
        Bytes::from(format!("{{\"id\": {id}}}"))
    }

    #[test]
    fn only_whole_pages_with_a_start_that_readers_look_for_are_written() {
        let mut builder = PageBuilder::default();
        let pages: Vec<_> = (10..80).filter_map(|id| builder.push(id, &text(id))).collect();
        assert_eq!(pages.iter().map(|page| page.start).collect::<Vec<_>>(), [25, 50]);
        for page in pages {
            let events = parse(&page.content, page.start).unwrap();
            assert_eq!(
                events,
                (page.start..page.start + 25).map(|id| serde_json::json!({"id": id})).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_page_with_a_gap_is_not_written() {
        let mut builder = PageBuilder::default();
        let pages = (0..50).filter(|id| *id != 7).filter_map(|id| builder.push(id, &text(id))).count();
        assert_eq!(pages, 1);
    }

    #[test]
    fn a_page_that_does_not_hold_its_events_is_absent() {
        let page = |ids: &mut dyn Iterator<Item = i64>| format_page(&ids.map(text).collect::<Vec<_>>());
        assert!(parse(&page(&mut (25..50)), 25).is_some());
        for content in [page(&mut (0..25)), page(&mut (25..49)), page(&mut (25..51)), Bytes::from("null"), Bytes::new()]
        {
            assert!(parse(&content, 25).is_none(), "{content:?}");
        }
    }
}
