//! Streams of server-sent events.

use reqwest::Response;
use serde::de::DeserializeOwned;
use std::time::Duration;

use crate::{ClientError, session::next_chunk};

/// Longest event: an image of a cell. All others have at most some hundred kilobytes.
const LONGEST: usize = 96 * 1024 * 1024;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// Cuts bytes into events.
#[derive(Debug, Default)]
struct Cutter {
    buffer: Vec<u8>,
    /// So many bytes of the buffer are known to hold no end of an event.
    seen: usize,
}

impl Cutter {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event; comments are left out.
    fn next(&mut self) -> Option<Event> {
        loop {
            let found = memchr::memmem::find(&self.buffer[self.seen..], b"\n\n").map(|at| self.seen + at);
            let Some(at) = found else {
                self.seen = self.buffer.len().saturating_sub(1);
                return None;
            };
            let block: Vec<u8> = self.buffer.drain(..at + 2).collect();
            self.seen = 0;
            let event = Event::parse(&String::from_utf8_lossy(&block));
            if event != Event::default() {
                return Some(event);
            }
        }
    }
}

impl Event {
    fn parse(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.name),
                "id" => event.id = Some(value.to_owned()),
                "data" => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                }
                _ => {}
            }
        }
        event
    }

    /// The data as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, url: &str) -> Result<T, ClientError> {
        serde_json::from_str(&self.data).map_err(|error| ClientError::Answer {
            url: url.to_owned(),
            reason: format!("the event `{}`: {error}", self.name),
        })
    }
}

/// The events of an answer.
#[derive(Debug)]
pub(crate) struct Events {
    response: Response,
    cutter: Cutter,
    limit: Duration,
}

impl Events {
    pub(crate) fn new(response: Response, limit: Duration) -> Self {
        Self { response, cutter: Cutter::default(), limit }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(event) = self.cutter.next() {
                return Ok(Some(event));
            }
            if self.cutter.buffer.len() > LONGEST {
                return Err(ClientError::TooLarge { url: self.response.url().to_string(), limit: LONGEST as u64 });
            }
            match next_chunk(&mut self.response, Some(self.limit)).await? {
                Some(chunk) => self.cutter.push(&chunk),
                None => return Ok(None),
            }
        }
    }
}

/// Cuts a stream, given in two pieces, into events; none is larger than the stream.
#[cfg(fuzzing)]
pub fn fuzz(first: &[u8], second: &[u8]) {
    let mut cutter = Cutter::default();
    let mut taken = 0;
    for piece in [first, second] {
        cutter.push(piece);
        while let Some(event) = cutter.next() {
            taken += event.data.len();
        }
    }
    // Each byte that is no text becomes three.
    assert!(taken <= 3 * (first.len() + second.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_the_bytes_are_cut() {
        let text =
            b": comment\n\n: another\nevent: output\nid: 12\ndata: {\"a\":\ndata:1}\n\nevent: ready\n\nevent: cut";
        let expected = [
            Event { name: "output".into(), id: Some("12".into()), data: "{\"a\":\n1}".into() },
            Event { name: "ready".into(), ..Event::default() },
        ];
        for size in 1..=text.len() {
            let mut cutter = Cutter::default();
            let mut events = Vec::new();
            for piece in text.chunks(size) {
                cutter.push(piece);
                while let Some(event) = cutter.next() {
                    events.push(event);
                }
            }
            assert_eq!(events, expected, "pieces of {size}");
        }
    }
}
