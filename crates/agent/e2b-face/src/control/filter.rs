//! Which sandboxes a list has.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gloveport_provider::Sandbox;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;

use crate::{
    Refusal,
    mark::{self, Mark},
};

/// Sandboxes on one page, if nothing is said.
const PAGE: usize = 100;
/// The most that can be said.
const LARGEST: usize = 100;

/// Which sandboxes a list has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter {
    metadata: BTreeMap<String, String>,
    is_running: bool,
    is_paused: bool,
    template: Option<String>,
    started_after: Option<SystemTime>,
    pub(super) oldest_first: bool,
    pub(super) limit: usize,
    after: Option<Place>,
}

/// Where in the order of a list a sandbox is.
pub(super) type Place = (u128, String);

pub(super) fn place(sandbox: &Sandbox) -> Place {
    let since = mark::created(sandbox).duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    (since.as_nanos(), sandbox.id.to_string())
}

impl Filter {
    /// Reads a query. A list of running ones takes fewer words.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Refusal> {
        let mut filter = Self {
            metadata: BTreeMap::new(),
            is_running: true,
            is_paused: true,
            template: None,
            started_after: None,
            oldest_first: false,
            limit: PAGE,
            after: None,
        };
        let mut states: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "metadata" => filter.metadata.extend(pairs(&value)?),
                "state" => states.extend(value.split(',').filter(|state| !state.is_empty()).map(str::to_owned)),
                "template" => filter.template = Some(value.into_owned()).filter(|template| !template.is_empty()),
                "order" => filter.oldest_first = is_ascending(&value)?,
                "startedAfter" => filter.started_after = Some(moment(&value)?),
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=LARGEST).contains(limit));
                    filter.limit = limit.ok_or_else(|| Refusal::wrong(format!("limit must be from 1 to {LARGEST}")))?;
                }
                "nextToken" if !value.is_empty() => filter.after = Some(cursor(&value)?),
                // Whoever asks for less than there is notices.
                _ => {}
            }
        }
        if !states.is_empty() {
            if let Some(state) = states.iter().find(|state| !["running", "paused"].contains(&state.as_str())) {
                return Err(Refusal::wrong(format!("state must be running or paused, not `{state}`")));
            }
            filter.is_running = states.iter().any(|state| state == "running");
            filter.is_paused = states.iter().any(|state| state == "paused");
        }
        Ok(filter)
    }

    /// The same with those alone that run.
    pub(super) fn running(self) -> Self {
        Self { is_running: true, is_paused: false, ..self }
    }

    /// Whether a sandbox is one of them.
    pub(super) fn takes(&self, sandbox: &Sandbox, mark: &Mark) -> bool {
        let has_state = match mark::is_paused(sandbox) {
            Some(true) => self.is_paused,
            Some(false) => self.is_running,
            None => false,
        };
        let is_behind = self.after.as_ref().is_none_or(|after| {
            let place = place(sandbox);
            if self.oldest_first { place > *after } else { place < *after }
        });
        has_state
            && is_behind
            && self.metadata.iter().all(|(name, value)| mark.metadata.get(name) == Some(value))
            && self.template.as_ref().is_none_or(|template| *template == mark.template)
            && self.started_after.is_none_or(|after| mark::created(sandbox) > after)
    }
}

/// Where the next page begins.
pub(super) fn token((nanos, id): &Place) -> String {
    URL_SAFE_NO_PAD.encode(format!("{nanos}/{id}"))
}

fn cursor(text: &str) -> Result<Place, Refusal> {
    let wrong = || Refusal::wrong("nextToken is none that this server has given");
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (nanos, id) = text.split_once('/').ok_or_else(wrong)?;
    Ok((nanos.parse().map_err(|_| wrong())?, id.to_owned()))
}

/// Names and values are encoded twice, one by one, within a value that is encoded itself.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let once = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let plain = |text: &str| once(&once(&text.replace('+', " ")));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((plain(name), plain(value)))
    };
    let pairs: Option<Vec<_>> = text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    pairs.ok_or_else(|| Refusal::wrong("metadata must be like name=value&other=value, each part percent-encoded"))
}

fn is_ascending(value: &str) -> Result<bool, Refusal> {
    match value {
        "asc" => Ok(true),
        "desc" => Ok(false),
        other => Err(Refusal::wrong(format!("order must be asc or desc, not `{other}`"))),
    }
}

fn moment(value: &str) -> Result<SystemTime, Refusal> {
    let time: Result<Timestamp, _> = value.parse();
    time.map(SystemTime::from)
        .map_err(|_| Refusal::wrong(format!("startedAfter must be a time like 2026-11-25T12:00:00Z, not `{value}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_or_the_wrong_word_in_it_is_named() {
        let filter =
            Filter::read(Some("metadata=a%252520b%3Dc%252526d%26e%3Df&state=paused&limit=5&order=asc")).unwrap();
        let metadata = [("a b", "c&d"), ("e", "f")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(filter.metadata, metadata.into());
        assert_eq!((filter.is_running, filter.is_paused, filter.limit, filter.oldest_first), (false, true, 5, true));
        for wrong in
            ["state=gone", "limit=0", "limit=101", "order=up", "startedAfter=now", "nextToken=%21", "metadata=a"]
        {
            let word = wrong.split('=').next().unwrap();
            assert!(Filter::read(Some(wrong)).unwrap_err().message.starts_with(word), "{wrong}");
        }
    }

    #[test]
    fn a_token_says_where_it_was_given() {
        let place = (12_345, "abc".to_owned());
        assert_eq!(cursor(&token(&place)).unwrap(), place);
    }
}
