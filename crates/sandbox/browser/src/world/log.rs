//! What pages wrote to the console, and what they fetched.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

/// Entries of each that are kept.
const MOST: usize = 1000;
/// Longest text of an entry, in bytes.
const LONGEST: usize = 8192;

/// A line of a page's console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsoleEntry {
    /// `log`, `info`, `warning`, `error`, `exception` and others.
    pub level: String,
    /// What was written.
    pub text: String,
    /// The address of the page or the script.
    pub url: String,
}

/// Something that a page fetched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkEntry {
    /// Chromium's id of it.
    pub request_id: String,
    /// `GET` and others.
    pub method: String,
    /// Its address.
    pub url: String,
    /// What it is for: `Document`, `Script`, `XHR` and others.
    pub kind: String,
    /// Seconds since 1970 at which it was asked for.
    pub started: f64,
    /// Headers of the request.
    pub request_headers: Value,
    /// What was sent with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
    /// Status of the answer.
    pub status: Option<i64>,
    /// Words of the status.
    pub status_text: String,
    /// Headers of the answer.
    pub response_headers: Value,
    /// Type of the answer.
    pub mime_type: String,
    /// Protocol of the answer.
    pub protocol: String,
    /// Bytes that came.
    pub encoded_bytes: Option<f64>,
    /// Seconds that it took, once it has ended.
    pub took: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Both, the last ones of them.
#[derive(Debug, Default)]
pub(crate) struct Log {
    console: VecDeque<ConsoleEntry>,
    network: VecDeque<NetworkEntry>,
    /// Entries that were put in since the start.
    console_count: u64,
    network_count: u64,
}

impl Log {
    pub(super) fn write(&mut self, level: &str, text: &str, url: &str) {
        self.console_count += 1;
        self.console.push_back(ConsoleEntry { level: level.to_owned(), text: bounded(text), url: bounded(url) });
        if self.console.len() > MOST {
            self.console.pop_front();
        }
    }

    /// A page asked somebody something.
    pub(super) fn dialog(&mut self, kind: &str, message: &str, url: &str) {
        self.write("dialog", &format!("{kind}: {message}"), url);
    }

    pub(super) fn asked(&mut self, entry: NetworkEntry) {
        self.network_count += 1;
        self.network.push_back(entry);
        if self.network.len() > MOST {
            self.network.pop_front();
        }
    }

    pub(super) fn request(&mut self, id: &str) -> Option<&mut NetworkEntry> {
        self.network.iter_mut().rev().find(|entry| entry.request_id == id)
    }

    /// How many entries of each there were.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.console_count, self.network_count)
    }

    /// The entries of the console since so many.
    pub(crate) fn console_since(&self, count: u64) -> Vec<ConsoleEntry> {
        last(&self.console, self.console_count.saturating_sub(count))
    }

    /// The requests since so many.
    pub(crate) fn network_since(&self, count: u64) -> Vec<NetworkEntry> {
        last(&self.network, self.network_count.saturating_sub(count))
    }
}

fn last<T: Clone>(entries: &VecDeque<T>, count: u64) -> Vec<T> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    entries.iter().skip(entries.len().saturating_sub(count)).cloned().collect()
}

/// The beginning of a text.
pub(super) fn bounded(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
